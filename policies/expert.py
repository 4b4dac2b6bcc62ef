"""RoboTwin's scripted expert drives the robot itself. Privileged: shows that a scene can be solved, scores nothing."""

from __future__ import annotations

from pathlib import Path

from evalkit.core.errors import PolicyError, UserError
from evalkit.policy.contract import ActionChunk, EpisodeInfo, Observation, PolicySpec

NEEDS_CHECKPOINT = False


class ExpertPolicy:
    """Stands for the expert in a plan; the episode runs the expert instead of asking it."""

    spec = PolicySpec(
        name="expert",
        cameras=(),
        action_type="qpos",
        chunk_steps=1,
        execute_steps=1,
        needs_instruction=False,
        stateful=False,
        drive="expert",
    )

    def reset(self, info: EpisodeInfo) -> None:
        """Nothing to forget."""

    def act(self, observation: Observation) -> ActionChunk:
        """Never called for an expert drive.

        Raises:
            PolicyError: always.
        """
        raise PolicyError("drive", "policy expert has no actions of its own: the simulator's expert drives the robot")

    def close(self) -> None:
        """Nothing to release."""


def load(checkpoint: Path | None, *, device: str) -> ExpertPolicy:
    """The policy; ``device`` doesn't matter.

    Raises:
        UserError: a checkpoint was given.
    """
    if checkpoint is not None:
        raise UserError(f"policy expert takes no checkpoint, got {checkpoint}: leave --ckpt out")
    return ExpertPolicy()
