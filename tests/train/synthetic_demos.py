"""Tiny demonstrations in RoboTwin's layout: the picture and the sentence say where the arm goes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from evalkit.core.rng import stream
from evalkit.data.episode_file import Episode, Provenance, write_episode
from evalkit.data.jpeg import encode_rgb
from evalkit.data.layout import DatasetFolder, seed_text

CAMERAS = ("head_camera", "left_camera", "right_camera")


def write_demos(root: Path, *, tasks=("click_bell", "grab_roller"), config="demo_clean", episodes=2, frames=12) -> Path:
    for number_of_task, task in enumerate(tasks):
        folder = DatasetFolder.of(root, task, config)
        folder.path.mkdir(parents=True)
        for number in range(episodes):
            _write_episode(folder, task, config, number, frames, number_of_task)
        folder.seed_file.write_text(seed_text(range(10, 10 + episodes)))
    return root


def _write_episode(folder: DatasetFolder, task: str, config: str, number: int, frames: int, which: int) -> None:
    goal = stream(number, "goal", task).uniform(-1, 1, 14)
    ramp = np.linspace(0.1, 1, frames)[:, None]
    state = ramp * goal
    state[:, [6, 13]] = 1 - ramp * [[number % 2, (number + 1) % 2]]
    images = {}
    for index, camera in enumerate(CAMERAS):
        picture = np.full((24, 32, 3), 40 * index, np.uint8)
        picture[4 + 6 * (number % 2) :, :16] = (200, 30 + 60 * which, 90)
        images[camera] = [encode_rgb(picture)] * frames
    provenance = Provenance(
        task=task,
        config=config,
        config_digest="c" * 64,
        seed=10 + number,
        assets="stand-in",
        assets_digest="a" * 64,
        backend="b" * 16,
        evalkit_version="0.1.0",
    )
    episode = Episode(state=state, endpose=np.zeros((frames, 16)), images=images, provenance=provenance)
    write_episode(folder.episode(number), episode)
    sentences = {"seen": [f"Do {task} now.", f"Please do {task}."], "unseen": ["never trained on"]}
    folder.instructions(number).parent.mkdir(exist_ok=True)
    folder.instructions(number).write_text(json.dumps(sentences))


TINY_NETWORK = {
    "image_height_px": 16,
    "image_width_px": 32,
    "chunk_steps": 8,
    "width": 32,
    "heads": 2,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "stem_channels": 8,
    "trunk_channels": [16, 16, 16],
    "trunk_blocks": [1, 1, 1],
    "keypoints": 4,
    "text_buckets": 64,
    "text_dim": 8,
}


def tiny_config(root: Path, **changes) -> dict:
    """A training configuration that takes seconds on a CPU."""
    values = {
        "policy": "house",
        "data": {"root": str(root), "tasks": ["click_bell", "grab_roller"], "configs": ["demo_clean"]},
        "steps": 60,
        "batch_size": 16,
        "learning_rate": 3.0e-3,
        "warmup_steps": 5,
        "ema_decay": 0.9,
        "log_every_steps": 10,
        "settings": {
            "execute_steps": 4,
            "network": TINY_NETWORK,
            "augmentation": {"shift_fraction": 0.0, "state_noise_rad": 0.0},
            "options": {"euler_steps": 3},
        },
    }
    return values | changes
