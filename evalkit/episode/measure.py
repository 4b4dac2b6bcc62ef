"""What one task costs on this machine: a scene, its expert, actions, observations, each timed by itself."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from evalkit.core.errors import SimulatorError, UnstableSceneError
from evalkit.episode.run_trial import RECORD_EVERY_STEPS
from evalkit.sim.contract import ExpertResult, Scene, Simulator

Result = TypeVar("Result")
CHUNK_STEPS = 8
"""Actions between two observations."""
OBSERVATIONS = 5


@dataclass(frozen=True, kw_only=True)
class SceneCost:
    """One accepted scene."""

    seed: int
    setup_s: float
    expert_s: float
    expert_steps: int
    """Actions of the expert's demonstration."""
    action_s: float
    """One action with its success check, by the whole demonstration."""
    observation_s: float
    """Median over observations of all the cameras asked for."""
    rejected: int
    """Candidates before it that were no use."""


def measure_scene(sim: Simulator, candidates: Iterable[Scene], cameras: Sequence[str]) -> SceneCost | None:
    """Measure the first candidate whose expert succeeds.

    The expert's demonstration is executed by the robot again, as a policy's actions would be, with pictures in between.

    Args:
        sim: a simulator that is warm: its first picture lies behind it.
        candidates: scenes to try, in order.
        cameras: cameras of one observation.

    Returns:
        The cost, or None if no candidate was of use.

    Raises:
        SimulatorError: the simulator failed otherwise than by an unstable scene.
    """
    for rejected, scene in enumerate(candidates):
        found = _demonstration(sim, scene)
        if found is None:
            continue
        setup_s, result = found
        actions = np.stack([frame.state for frame in result.frames[1:]])
        again_s, _ = _timed(lambda scene=scene: sim.reset(scene))  # type: ignore[misc]
        looks = [_timed(lambda: sim.observe(cameras))[0] for _ in range(OBSERVATIONS)]
        acting_s, done = 0.0, 0
        for start in range(0, len(actions), CHUNK_STEPS):
            chunk = actions[start : start + CHUNK_STEPS]
            elapsed_s, step = _timed(lambda chunk=chunk: sim.apply(chunk, "qpos"))  # type: ignore[misc]
            acting_s, done = acting_s + elapsed_s, step.total_steps
            if step.finished:
                break
            looks.append(_timed(lambda: sim.observe(cameras))[0])
        return SceneCost(
            seed=scene.seed,
            setup_s=min(setup_s, again_s),
            expert_s=result.expert_s,
            expert_steps=len(actions),
            action_s=acting_s / done,
            observation_s=statistics.median(looks),
            rejected=rejected,
        )
    return None


def _demonstration(sim: Simulator, scene: Scene) -> tuple[float, ExpertResult] | None:
    try:
        setup_s, _ = _timed(lambda: sim.reset(scene))
        result = sim.expert(record_every=RECORD_EVERY_STEPS)
    except UnstableSceneError:
        return None
    except SimulatorError as error:
        if error.kind != "task_code":
            raise
        return None
    return (setup_s, result) if result.success and len(result.frames) > 1 else None


def _timed(call: Callable[[], Result]) -> tuple[float, Result]:
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result
