"""The drill's policy: follows the instruction, misses some scenes on purpose, and breaks where it is told to."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from evalkit.core.rng import stream_seed
from evalkit.policy.contract import ActionChunk, CameraSpec, EpisodeInfo, Observation, PolicySpec
from evalkit.sim.fake.fault_file import PolicyFault
from evalkit.sim.fake.simulator import HOME
from evalkit.sim.fake.world import strikes

CHUNK_STEPS = 10
MISS_RAD = 0.3
SPEC = PolicySpec(
    name="drill",
    cameras=(CameraSpec(name="head_camera"),),
    action_type="qpos",
    chunk_steps=CHUNK_STEPS,
    execute_steps=CHUNK_STEPS,
    needs_instruction=True,
    stateful=True,
)


@dataclass
class _Episode:
    goal_rad: float
    faults: list[PolicyFault]
    actions_given: int = 0


class DrillPolicy:
    """Stateful: an episode's goal is kept from its reset on, and every third scene is missed. Batches.

    Args:
        faults: what goes wrong.
        marks: folder in which faults that strike a limited number of times leave their marks.
    """

    spec = SPEC

    def __init__(self, faults: Sequence[PolicyFault] = (), marks: Path | None = None) -> None:
        self._marks = marks
        self._targets = [(stream_seed(fault.seed, "policy", fault.task, 0), fault) for fault in faults]
        self._episodes: dict[str, _Episode] = {}

    def reset(self, info: EpisodeInfo) -> None:
        """Start an episode."""
        miss_rad = MISS_RAD if info.policy_seed % 3 == 0 else 0.0
        goal_rad = float(info.instruction.split()[4]) + miss_rad
        faults = [fault for seed, fault in self._targets if seed == info.policy_seed]
        self._episodes[info.session] = _Episode(goal_rad, faults)

    def act(self, observation: Observation) -> ActionChunk:
        """(10, 14): joint 0 goes to the goal."""
        episode = self._episodes[observation.session]
        if observation.step != episode.actions_given:
            raise ValueError(f"step {observation.step} after {episode.actions_given} actions: not this episode's turn")
        episode.actions_given += CHUNK_STEPS
        chunk = np.tile(HOME, (CHUNK_STEPS, 1))
        chunk[:, 0] = episode.goal_rad
        for fault in episode.faults:
            row = fault.step - observation.step
            name = f"policy-{fault.task}-{fault.kind}-{fault.seed}-{fault.step}"
            if 0 <= row < CHUNK_STEPS and strikes(name, fault.times, self._marks):
                chunk = _break(fault, chunk, row)
        return chunk

    def act_batch(self, observations: Sequence[Observation]) -> list[ActionChunk]:
        """One after another: a batch for the server, no more."""
        return [self.act(observation) for observation in observations]

    def close(self) -> None:
        """Forget all episodes."""
        self._episodes.clear()


@dataclass(frozen=True, kw_only=True)
class DrillPolicyMaker:
    """Makes the policy where it runs. Travels to the policy server."""

    faults: tuple[PolicyFault, ...] = ()
    marks: Path | None = field(default=None)

    def __call__(self) -> DrillPolicy:
        """A new one."""
        return DrillPolicy(self.faults, self.marks)


def _break(fault: PolicyFault, chunk: ActionChunk, row: int) -> ActionChunk:
    if fault.kind in ("segfault", "kill"):
        os.kill(os.getpid(), signal.SIGSEGV if fault.kind == "segfault" else signal.SIGKILL)
        time.sleep(60.0)  # Ray prints a trace before the process ends
    if fault.kind == "hang":
        while True:
            time.sleep(3600.0)
    if fault.kind == "exception":
        raise RuntimeError(f"the drill's policy breaks at step {fault.step}")
    if fault.kind == "slow":
        time.sleep(fault.slow_s)
    if fault.kind in ("nan", "inf"):
        chunk[row, 3] = np.nan if fault.kind == "nan" else np.inf
    if fault.kind == "gripper":
        chunk[row:, 6] = 255.0
    return np.zeros((8, 16)) if fault.kind == "shape" else chunk
