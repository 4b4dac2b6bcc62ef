"""The small world and the small policy that every harness of ``throughput.py`` runs. Needs numpy alone.

The world costs next to nothing, or a fixed sleep, an action, and shows three smooth pictures, or none. The policy
reads a pixel of each picture, so that a harness that loses, mixes up or re-uses one ends with other numbers.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

CAMERAS = ("head_camera", "left_camera", "right_camera")
HEIGHT_PX, WIDTH_PX = 240, 320
ACTION_DIM = 14


class ToyWorld:
    """Episodes of ``horizon`` actions; nothing ends one sooner.

    Args:
        horizon: actions of an episode.
        step_ms: wall time of an action, slept.
        images: pictures in an observation: 3 or 0.
        stamps: folder that takes one line for each finished episode; None for none.
    """

    def __init__(self, horizon: int, step_ms: float, images: int, stamps: Path | None = None) -> None:
        self.horizon, self._step_s, self._images, self._stamps = horizon, step_ms / 1000.0, images, stamps
        rows, columns = np.arange(HEIGHT_PX) / 2.0, np.arange(WIDTH_PX + 256) / 2.0
        shades = [np.add.outer(rows, columns * share) for share in (1.0, 0.7, 0.4)]
        self._wide = np.stack(shades, axis=2).astype(np.uint8)
        self._name, self._seed, self.steps, self._total, self._started = "", 0, 0, 0.0, 0.0
        self._state = np.zeros(ACTION_DIM)

    def reset(self, name: str, seed: int) -> None:
        """Begin an episode."""
        self._name, self._seed, self.steps, self._total, self._started = name, seed, 0, 0.0, time.time()
        self._state = np.full(ACTION_DIM, (seed % 97) / 97.0)

    def state(self) -> np.ndarray:
        """(14,) float64."""
        return self._state.copy()

    def pictures(self) -> dict[str, np.ndarray]:
        """Fresh (240, 320, 3) uint8 pictures; what they show depends on the seed and on the actions so far."""
        first = int(self._state[0] * 1e6) % 256
        return {
            camera: np.ascontiguousarray(self._wide[:, (first + 31 * index) % 256 :][:, :WIDTH_PX])
            for index, camera in enumerate(CAMERAS[: self._images])
        }

    def step(self, action: np.ndarray) -> bool:
        """Execute one (14,) action. Returns whether the episode is over."""
        if self._step_s:
            time.sleep(self._step_s)
        self._state = np.asarray(action, dtype=np.float64).copy()
        self._total += float(self._state.sum())
        self.steps += 1
        if self.steps == self.horizon:
            self._stamp()
        return self.steps >= self.horizon

    @property
    def value(self) -> str:
        """What the episode came to; equal for equal actions only."""
        return self._total.hex()

    def _stamp(self) -> None:
        if self._stamps is None:
            return
        line = {"name": self._name, "seed": self._seed, "steps": self.steps, "value": self.value}
        line.update(started=self._started, ended=time.time())
        with open(self._stamps / f"{os.getpid()}.jsonl", "a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")


def decide(state: np.ndarray, images: Mapping[str, Any], chunk_steps: int) -> np.ndarray:
    """(chunk_steps, 14) float64 actions."""
    seen = sum(int(np.asarray(images[camera])[7, 11, 0]) for camera in CAMERAS if camera in images)
    drift = np.arange(1, chunk_steps + 1)[:, None] * (0.001 + seen * 1e-6)
    # vla-eval hands actions on as float32: numbers that survive that make the episodes comparable to the bit
    return ((np.asarray(state, dtype=np.float64)[None, :] + drift) % 1.0).astype(np.float32).astype(np.float64)
