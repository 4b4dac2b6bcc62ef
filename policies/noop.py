"""Holds still: commands the state it is told. The floor every policy must beat."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evalkit.core.errors import UserError
from evalkit.policy.chunk import GRIPPER_COLUMNS
from evalkit.policy.contract import ActionChunk, EpisodeInfo, Observation, PolicySpec

NEEDS_CHECKPOINT = False
CHUNK_STEPS = 16


class NoopPolicy:
    """Repeats the commanded state."""

    spec = PolicySpec(
        name="noop",
        cameras=(),
        action_type="qpos",
        chunk_steps=CHUNK_STEPS,
        execute_steps=CHUNK_STEPS,
        needs_instruction=False,
        stateful=False,
    )

    def reset(self, info: EpisodeInfo) -> None:
        """Nothing to forget."""

    def act(self, observation: Observation) -> ActionChunk:
        """(16, 14): the present state, grippers clipped to [0, 1]."""
        held = np.array(observation.state, np.float64)
        columns = list(GRIPPER_COLUMNS["qpos"])
        held[columns] = np.clip(held[columns], 0.0, 1.0)
        return np.tile(held, (CHUNK_STEPS, 1))

    def close(self) -> None:
        """Nothing to release."""


def load(checkpoint: Path | None, *, device: str) -> NoopPolicy:
    """The policy; ``device`` doesn't matter.

    Raises:
        UserError: a checkpoint was given.
    """
    if checkpoint is not None:
        raise UserError(f"policy noop takes no checkpoint, got {checkpoint}: leave --ckpt out")
    return NoopPolicy()
