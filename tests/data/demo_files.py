"""Small demonstration files for tests."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from evalkit.data.episode_file import Episode, Provenance, write_episode
from evalkit.data.jpeg import encode_rgb
from evalkit.data.layout import DatasetFolder, seed_text

CAMERAS = ("head_camera", "left_camera", "right_camera")


def picture(seed: int, size_px: int = 32) -> NDArray[np.uint8]:
    """A noise picture."""
    return np.random.default_rng(seed).integers(0, 256, (size_px, size_px, 3), dtype=np.uint8)


def red(size_px: int = 32) -> NDArray[np.uint8]:
    """A picture that is pure red."""
    image = np.zeros((size_px, size_px, 3), dtype=np.uint8)
    image[:, :, 0] = 250
    return image


def encode_legacy(image: NDArray[np.uint8]) -> bytes:
    """As RoboTwin's own collector: an encoder that takes BGR is handed RGB."""
    stream = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(image[:, :, ::-1])).save(stream, "JPEG", quality=95)
    return stream.getvalue()


def make_episode(seed: int = 0, frames: int = 6, config: str = "demo_clean", task: str = "click_bell") -> Episode:
    """An episode with distinct numbers everywhere."""
    rng = np.random.default_rng(seed)
    return Episode(
        state=rng.normal(size=(frames, 14)),
        endpose=rng.normal(size=(frames, 16)),
        images={name: [encode_rgb(picture(100 * seed + frame)) for frame in range(frames)] for name in CAMERAS},
        provenance=Provenance(
            task=task,
            config=config,
            config_digest="c" * 64,
            seed=seed,
            assets="stand-in",
            assets_digest="a" * 64,
            backend="b" * 16,
            evalkit_version="0.1.0",
        ),
    )


def make_dataset(root: Path, episodes: int = 3, task: str = "click_bell", config: str = "demo_clean") -> DatasetFolder:
    """A clean data set with seeds 0, 2, 4, ..."""
    dataset = DatasetFolder.of(root, task, config)
    seeds = [2 * number for number in range(episodes)]
    for number, seed in enumerate(seeds):
        write_episode(dataset.episode(number), make_episode(seed, config=config, task=task))
        dataset.instructions(number).parent.mkdir(exist_ok=True)
        dataset.instructions(number).write_text(json.dumps({"seen": ["Click the bell."], "unseen": ["Ring it."]}))
    dataset.seed_file.write_text(seed_text(seeds))
    entry = {"cluttered_table_info": [], "texture_info": {}, "info": {"{a}": "left"}}
    dataset.scene_info_file.write_text(json.dumps({f"episode_{number}": entry for number in range(episodes)}))
    return dataset


def foreign_episode(path: Path) -> None:
    """An episode file as RoboTwin itself writes it: no attributes, colour-swapped images."""
    images = {name: [encode_legacy(picture(frame)) for frame in range(6)] for name in CAMERAS}
    write_episode(path, replace(make_episode(), images=images, provenance=None))


def edit(path: Path, change: Callable[[h5py.File], None]) -> None:
    """Change an HDF5 file in place."""
    with h5py.File(path, "r+") as file:
        change(file)


def put(file: h5py.File, name: str, values: NDArray[np.generic]) -> None:
    """Replace a dataset."""
    del file[name]
    file[name] = values
