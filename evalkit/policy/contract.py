"""The policy contract: what an adapter declares, receives and returns.

Layout (RoboTwin's, source: ``get_obs`` and ``take_action`` of RoboTwin 2.0):
    state    float64 (14,) = left arm 6 joints (rad), left gripper, right arm 6 joints (rad), right gripper.
             Commanded targets, as RoboTwin reports them. Grippers: 0 closed, 1 open.
    qpos     action float64 (14,), same layout, absolute targets.
    ee       action float64 (16,) = per arm xyz (m) + quaternion wxyz in the world frame, gripper.
    images   uint8 (height, width, 3), RGB; cameras ``head_camera``, ``left_camera``, ``right_camera`` and
             ``front_camera``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from evalkit.core.trial import ActionType

CameraName = Literal["head_camera", "left_camera", "right_camera", "front_camera"]
ACTION_DIMS: Mapping[ActionType, int] = {"qpos": 14, "ee": 16}
ActionChunk = NDArray[np.float64]
"""(steps, dimension) actions, executed in order."""


@dataclass(frozen=True, kw_only=True)
class CameraSpec:
    """A camera the policy needs, at the resolution it was trained on."""

    name: CameraName
    height_px: int = 240
    width_px: int = 320


@dataclass(frozen=True, kw_only=True)
class PolicySpec:
    """What a policy needs and gives. A mismatch with the robot or the task configuration stops a run before trial 1."""

    name: str
    cameras: tuple[CameraSpec, ...]
    action_type: ActionType
    chunk_steps: int
    """Length of the chunks ``act`` returns."""
    execute_steps: int
    """How many actions of a chunk are executed before the next call; at most ``chunk_steps``."""
    needs_instruction: bool
    stateful: bool
    """Whether ``act`` depends on earlier calls of the episode; sessions are then kept apart by ``session``."""
    history_steps: int = 1
    """How many observations a decision sees: the present one and those before it, one action apart. With more than 1
    the robot is looked at between the actions of a chunk, as often as the next decision needs it and never more."""
    one_at_a_time: bool = False
    """The policy holds the state of one episode and can't tell episodes apart: a run then has one worker for
    each copy of it (``--policy-copies``)."""
    drive: Literal["act", "demonstration", "expert"] = "act"
    """``act``: an ordinary policy. ``demonstration``: is handed the expert's actions for the trial's own scene.
    ``expert``: RoboTwin's scripted expert moves the robot itself. The last two are privileged: never a leaderboard
    entry."""

    @property
    def is_privileged(self) -> bool:
        """Whether the policy is told what no robot could know."""
        return self.drive != "act"


@dataclass(frozen=True, kw_only=True)
class EpisodeInfo:
    """Told to a policy at the start of a trial."""

    session: str
    """Names the episode: unique among those running at the same time."""
    instruction: str
    policy_seed: int
    """Seed for all randomness of the policy in this episode."""
    horizon_steps: int
    demonstration: ActionChunk | None = None
    """(steps, 14), for ``ee`` (steps, 16): the expert's actions in this scene; for ``drive="demonstration"`` only."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What a policy sees at one decision."""

    session: str
    step: int
    """Number of actions executed so far in the episode."""
    instruction: str
    state: NDArray[np.float64]
    """(14,) commanded joint targets and grippers."""
    endpose: NDArray[np.float64] | None = None
    """(16,) per arm xyz + wxyz + gripper in the world frame."""
    images: Mapping[str, NDArray[np.uint8]] = field(default_factory=dict)
    """Camera name → (height, width, 3) RGB."""
    history: tuple[Observation, ...] = ()
    """The observations before this one, one action apart, oldest first: ``history_steps - 1``, and fewer where the
    episode hasn't had so many yet."""


@runtime_checkable
class Policy(Protocol):
    """A policy. Local, subprocess and remote policies are wrappers of the same type."""

    @property
    def spec(self) -> PolicySpec:
        """What the policy needs and gives."""
        ...

    def reset(self, info: EpisodeInfo) -> None:
        """Start an episode. Called once before its first ``act``; must forget everything of ``info.session``."""
        ...

    def act(self, observation: Observation) -> ActionChunk:
        """Decide. Returns ``(spec.chunk_steps, dimension)`` finite float64 actions; fewer if it is one at a time."""
        ...

    def close(self) -> None:
        """Release what the policy holds."""
        ...


@runtime_checkable
class EndingPolicy(Policy, Protocol):
    """A policy that wants to know when an episode is over: to free what it keeps of it, or to write it down."""

    def end(self, session: str, success: bool | None) -> None:
        """An episode is over. Called once after each ``reset``, whatever happened in between.

        Args:
            session: names the episode.
            success: the verdict; None where there is none, because the policy or the simulator failed.
        """
        ...


@runtime_checkable
class BatchPolicy(Policy, Protocol):
    """A policy that decides for several sessions at once.

    Row i of the result must be bitwise what ``act`` gives for observation i alone: batching may never change a score.
    """

    def act_batch(self, observations: Sequence[Observation]) -> list[ActionChunk]:
        """Decide for each observation."""
        ...
