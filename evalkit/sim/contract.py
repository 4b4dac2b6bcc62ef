"""The simulator contract. Pictures are taken when an observation is asked for, never otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evalkit.core.trial import ActionType, BackendFingerprint, History, Split, SuccessRule


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Which scene to build."""

    task: str
    config: str
    """Name of the configuration, for messages."""
    settings: Mapping[str, Any]
    """The configuration in RoboTwin's schema."""
    seed: int
    horizon_steps: int
    evaluation: bool = True
    """True: unseen textures and the step limit (evaluation). False: seen textures (demonstrations)."""
    success: SuccessRule = "any_instant"
    """When the success check counts; under ``any_instant`` a trial ends with its first success."""
    history: History = "fresh"
    """``task``: leave what earlier scenes of the process left, as RoboTwin's own loop does. Scenes of one task alone
    may then follow each other in one process."""


@dataclass(frozen=True, kw_only=True)
class SceneInfo:
    """What a reset built."""

    setup_s: float
    clutter: tuple[str, ...] = ()
    textures: Mapping[str, str | None] = field(default_factory=dict)
    state_digest: str = ""
    """Digest of the settled scene."""


@dataclass(frozen=True, kw_only=True)
class SimObservation:
    """State of the robot, with pictures of the cameras asked for. Layout: see ``evalkit.policy.contract``."""

    state: NDArray[np.float64]
    """(14,)"""
    endpose: NDArray[np.float64]
    """(16,)"""
    images: Mapping[str, NDArray[np.uint8]]
    """Camera name → (height, width, 3) RGB; owned by the caller."""
    render_s: float


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """After executing part of a chunk. Execution stops at the step limit, and at a success that counts."""

    steps: int
    """Actions executed by this call."""
    total_steps: int
    """Actions executed since reset."""
    success: bool
    success_step: int | None
    """1-based number, since reset, of the action during which success was first true."""
    finished: bool
    """Success, or the step limit is reached."""
    planner_failures: int
    """Failed time parametrisations or plans in this call, both arms counted."""
    physics_s: float
    check_s: float


@dataclass(frozen=True, kw_only=True)
class Frame:
    """One recorded frame of an expert run."""

    state: NDArray[np.float64]
    """(14,) commanded."""
    endpose: NDArray[np.float64]
    """(16,)"""
    images: Mapping[str, NDArray[np.uint8]]
    """Camera name → (height, width, 3) RGB; empty unless cameras were asked for."""
    jpegs: Mapping[str, bytes] = field(default_factory=dict)
    """Camera name → the picture as a standard JPEG; in the place of ``images`` where JPEGs were asked for."""


@dataclass(frozen=True, kw_only=True)
class ExpertResult:
    """RoboTwin's scripted expert on the present scene; the scene is used up afterwards."""

    success: bool
    reason: str
    """``"ok"``, or why the seed is rejected: ``"plan_failed"``, ``"check_failed"``, ``"error: …"``."""
    info: Mapping[str, str]
    """Values of the instruction's placeholders, e.g. ``{"{A}": "050_bell/base1", "{a}": "left"}``."""
    expert_s: float
    frames: tuple[Frame, ...] = ()
    state_digest: str = ""
    plan_failures: Mapping[str, int] = field(default_factory=dict)
    """What the planner couldn't plan, by kind, if it counts that."""


class Simulator(Protocol):
    """A simulator: one scene at a time. A trial's outcome may not depend on what ran before in the same object."""

    def fingerprint(self) -> BackendFingerprint:
        """What the simulator is made of."""
        ...

    def reset(self, scene: Scene) -> SceneInfo:
        """Build and settle a scene from its seed.

        Raises:
            UnstableSceneError: RoboTwin's stability test failed.
            SimulatorError: anything else; the simulator is usable again after the next ``reset``.
        """
        ...

    def observe(self, cameras: Sequence[str]) -> SimObservation:
        """Robot state, and a fresh picture of each camera named."""
        ...

    def apply(self, actions: NDArray[np.float64], action_type: ActionType) -> StepResult:
        """Execute (steps, dimension) actions in order until they end, success, or the step limit."""
        ...

    def expert(
        self, *, record_every: int | None = None, cameras: Sequence[str] = (), jpeg_quality: int | None = None
    ) -> ExpertResult:
        """Run the scripted expert; with ``record_every``, keep a frame each so many physics steps (RoboTwin: 15).

        With ``jpeg_quality`` (1 to 100) pictures come compressed: an episode is then some 10 MB instead of 200.
        """
        ...

    def instructions(self, task: str, info: Mapping[str, str], split: Split, seed: int, limit: int) -> list[str]:
        """Up to ``limit`` instruction sentences, a pure function of the arguments.

        Raises:
            SimulatorError: no template matches; the task's name is never used instead.
        """
        ...

    def state_digest(self) -> str:
        """16 hex digits over joint positions and object poses."""
        ...

    def close(self) -> None:
        """End the simulator."""
        ...
