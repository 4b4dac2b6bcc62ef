"""Plays the expert's actions of the trial's own scene back through the action interface. Privileged.

It measures what is lost between a demonstration and its execution action by action, so it bounds what a policy that
imitates such demonstrations can reach.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evalkit.core.errors import PolicyError, UserError
from evalkit.policy.contract import ActionChunk, EpisodeInfo, Observation, PolicySpec

NEEDS_CHECKPOINT = False
CHUNK_STEPS = 32


class ReplayPolicy:
    """Returns the demonstration's next actions; after its end the last one."""

    spec = PolicySpec(
        name="replay",
        cameras=(),
        action_type="qpos",
        chunk_steps=CHUNK_STEPS,
        execute_steps=CHUNK_STEPS,
        needs_instruction=False,
        stateful=True,
        drive="demonstration",
    )

    def __init__(self) -> None:
        self._demonstrations: dict[str, ActionChunk] = {}

    def reset(self, info: EpisodeInfo) -> None:
        """Take the demonstration of a new episode.

        Raises:
            PolicyError: there is none, or it isn't (steps, 14) with at least one step.
        """
        if info.demonstration is None:
            raise PolicyError("demonstration", f"policy replay got no demonstration for session {info.session!r}")
        actions = np.array(info.demonstration, np.float64)
        if actions.ndim != 2 or actions.shape[0] < 1 or actions.shape[1] != 14:
            what = f"demonstration of session {info.session!r} has shape {actions.shape}, expected (steps, 14)"
            raise PolicyError("demonstration", what)
        self._demonstrations[info.session] = actions

    def act(self, observation: Observation) -> ActionChunk:
        """(32, 14): the demonstration from the present step on, its last action repeated after its end.

        Raises:
            PolicyError: the session was never reset.
        """
        actions = self._demonstrations.get(observation.session)
        if actions is None:
            raise PolicyError("session", f"policy replay got session {observation.session!r} before its reset")
        steps = np.minimum(np.arange(observation.step, observation.step + CHUNK_STEPS), len(actions) - 1)
        chunk: ActionChunk = actions[steps]
        return chunk

    def end(self, session: str, success: bool | None) -> None:
        """Forget the episode's demonstration."""
        self._demonstrations.pop(session, None)

    def close(self) -> None:
        """Forget all demonstrations."""
        self._demonstrations.clear()


def load(checkpoint: Path | None, *, device: str) -> ReplayPolicy:
    """The policy; ``device`` doesn't matter.

    Raises:
        UserError: a checkpoint was given.
    """
    if checkpoint is not None:
        raise UserError(f"policy replay takes no checkpoint, got {checkpoint}: leave --ckpt out")
    return ReplayPolicy()
