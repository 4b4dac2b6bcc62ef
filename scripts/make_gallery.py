"""Make docs/gallery: what the policy sees, for each stand-in task under each configuration.

Each picture shows one moment of the expert's run from the head camera and both wrist cameras, as a policy gets them
(320x240). Run from a set-up checkout: ``.venv/bin/python scripts/make_gallery.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from evalkit.core.errors import UnstableSceneError
from evalkit.core.tasks import STANDIN_TASKS, STEP_LIMITS
from evalkit.protocol.config import load_config
from evalkit.sim.contract import ExpertResult, Scene
from evalkit.sim.robotwin.factory import make_simulator
from evalkit.sim.robotwin.host import RoboTwinSimulator

CAMERAS = ("head_camera", "left_camera", "right_camera")
MOMENT = 0.55
"""Fraction of the expert's run at which the picture is taken."""
EARLIER = {"shake_bottle": 0.3, "handover_block": 0.3}
"""Tasks that lift their object out of the head camera's view."""
FIRST_SEED = 100000
SEEDS_APART = 20
"""A seed decides the textures as well: tasks start at different ones, to show several."""
RECORD_EVERY_STEPS = 120
"""Physics steps between pictures; RoboTwin's own 15 would take eight times as long."""
WIDTH_PX = 320


def first_success(simulator: RoboTwinSimulator, task: str, config_name: str) -> ExpertResult:
    """The recorded run of the first seed the expert solves."""
    config = load_config(config_name)
    first = FIRST_SEED + SEEDS_APART * STANDIN_TASKS.index(task)
    for seed in range(first, first + SEEDS_APART):
        scene = Scene(
            task=task, config=config.name, settings=config.settings, seed=seed, horizon_steps=STEP_LIMITS[task]
        )
        try:
            simulator.reset(scene)
        except UnstableSceneError:
            continue
        result = simulator.expert(record_every=RECORD_EVERY_STEPS, cameras=CAMERAS)
        if result.success:
            return result
    raise SystemExit(f"{task} under {config_name}: no success in {SEEDS_APART} seeds")


def overview(folder: Path, config: str) -> None:
    """One sheet of the head camera's pictures."""
    tiles = []
    for task in STANDIN_TASKS:
        with Image.open(folder / f"{task}.{config}.jpg") as strip:
            tile = strip.crop((0, 0, WIDTH_PX, strip.height))
        ImageDraw.Draw(tile).text((6, 4), task, fill=(20, 20, 20), stroke_width=2, stroke_fill=(255, 255, 255))
        tiles.append(np.asarray(tile))
    rows = [np.concatenate(tiles[start : start + 4], axis=1) for start in range(0, len(tiles), 4)]
    Image.fromarray(np.concatenate(rows)).save(folder / f"overview.{config}.jpg", quality=88)


def main() -> None:
    """Write one JPEG per task and configuration that isn't there yet, and one overview per configuration."""
    folder = Path(__file__).parents[1] / "docs" / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    simulator = make_simulator("gallery")
    for config in ("demo_clean", "demo_randomized"):
        for task in STANDIN_TASKS:
            path = folder / f"{task}.{config}.jpg"
            if path.exists():
                continue
            frames = first_success(simulator, task, config).frames
            frame = frames[int(len(frames) * EARLIER.get(task, MOMENT))]
            Image.fromarray(np.concatenate([frame.images[name] for name in CAMERAS], axis=1)).save(path, quality=90)
            print(f"{config} {task}", file=sys.stderr)
        overview(folder, config)
    simulator.close()


if __name__ == "__main__":
    main()
