"""Jobs: what a worker does with a simulator, and what comes back. All values travel between processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from evalkit.core.errors import HarnessError, SimulatorError, UnstableSceneError
from evalkit.core.record import ErrorInfo, TrialRecord
from evalkit.core.rng import stream
from evalkit.core.trial import Split, TrialSpec
from evalkit.episode.decide import Decider
from evalkit.episode.run_trial import run_trial
from evalkit.plan.seeds import SeedEntry
from evalkit.policy.contract import Policy
from evalkit.protocol.variant import ROBOTWINS, SeedRule
from evalkit.sim.contract import Scene, Simulator

SimulatorFactory = Callable[[str], Simulator]
"""Worker name -> simulator. Travels to the workers."""
PolicyFactory = Callable[[], Policy]
"""Makes the policy where it runs. Travels to the policy server."""
INSTRUCTION_CANDIDATES = 100
"""RoboTwin draws the sentence from so many."""
Scope = Literal["simulator", "policy_server", "harness"]


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What a worker gives a job."""

    sim: Simulator
    decider: Decider | None
    """The policy; None where no job needs one."""
    worker: str
    """Name of the worker."""
    attempt: int
    """1 for the first attempt at the job."""


class Job(Protocol):
    """A piece of work for one simulator."""

    @property
    def key(self) -> str:
        """Names the job within its run."""
        ...

    @property
    def title(self) -> str:
        """For people: what the job is about."""
        ...

    @property
    def limit_s(self) -> float:
        """Wall time after which the job counts as hanging and its simulator is killed."""
        ...

    def run(self, tools: Tools) -> Any:
        """Do it. Must not depend on what the simulator did before.

        Raises:
            SimulatorError, HarnessError: the job may be tried again on a fresh simulator.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A job that came to its end."""

    value: Any
    worker: str
    node: str


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A job that didn't. It may be tried again."""

    scope: Scope
    error: ErrorInfo
    worker: str
    node: str = ""
    policy_generation: int = 0
    """Which policy server was in use, so that one death isn't mended twice."""


@dataclass(frozen=True, kw_only=True)
class TrialJob:
    """One trial."""

    spec: TrialSpec
    scene: Scene
    limit_s: float
    media_root: Path | None = None
    video: str | None = None
    """Path of the video relative to ``media_root``."""

    @property
    def key(self) -> str:
        """The trial's key."""
        return self.spec.key

    @property
    def title(self) -> str:
        """Task, configuration, seed."""
        return f"{self.spec.task} {self.spec.config} seed {self.spec.seed}"

    def run(self, tools: Tools) -> TrialRecord:
        """See ``evalkit.episode.run_trial``."""
        if tools.decider is None:
            raise HarnessError("a trial needs a policy, this crew has none")
        session = f"{self.key}-{tools.attempt}"
        return run_trial(
            tools.sim,
            tools.decider,
            self.spec,
            self.scene,
            session=session,
            media_root=self.media_root,
            video=self.video,
        )


def makers_of(make_policy: PolicyFactory | Mapping[str, PolicyFactory] | None) -> dict[str, PolicyFactory]:
    """The policies of a crew by digest; a single one may go without a name."""
    if make_policy is None:
        return {}
    return dict(make_policy) if isinstance(make_policy, Mapping) else {"": make_policy}


def policy_of(job: Job, policies: Collection[str]) -> str:
    """Name of the policy that a job needs: its trial names it, and the crew may have it no more; else the first."""
    if isinstance(job, TrialJob) and "" not in policies:
        return job.spec.policy
    return next(iter(policies), "")


@dataclass(frozen=True, kw_only=True)
class SeedJob:
    """Try one candidate seed: is its scene stable, and does the expert succeed?"""

    scene: Scene
    config_digest: str
    split: Split
    limit_s: float
    rule: SeedRule = ROBOTWINS
    """Whether the candidate is tried, and what the policy is told."""
    judged: SeedEntry | None = None
    """The candidate as another list has it, which has other sentences for the same scenes: it isn't tried again."""

    @property
    def key(self) -> str:
        """Task, configuration and seed."""
        return f"{self.scene.task}/{self.scene.config}/{self.scene.seed}"

    @property
    def title(self) -> str:
        """For people."""
        return f"candidate {self.scene.task} {self.scene.config} seed {self.scene.seed}"

    def run(self, tools: Tools) -> SeedEntry:
        """Judge the candidate as RoboTwin's evaluation does, and choose the instruction of an accepted one.

        An exception of the task code rejects the candidate; a crash, a hang or a missing instruction template is
        raised.
        """
        if not self.rule.checked:
            return self._unchecked(tools.sim)
        if self.judged is not None:
            told = self._instruction(tools.sim, self.judged.info) if self.judged.accepted else ""
            return replace(self.judged, instruction=told, instruction_split=self.split)
        scene, sim = self.scene, tools.sim
        started = time.perf_counter()
        try:
            built = sim.reset(scene)
            result = sim.expert()
        except UnstableSceneError as error:
            return self._entry(reason=f"unstable: {error}", setup_s=round(time.perf_counter() - started, 4))
        except SimulatorError as error:
            if error.kind != "task_code":
                raise
            return self._entry(reason=f"error: {error}")
        setup_s, expert_s = round(built.setup_s, 4), round(result.expert_s, 4)
        if not result.success:
            return self._entry(
                reason=result.reason,
                scene_digest=built.state_digest,
                setup_s=setup_s,
                expert_s=expert_s,
                plan_failures=dict(result.plan_failures),
            )
        return self._entry(
            accepted=True,
            reason="ok",
            info=dict(result.info),
            instruction=self._instruction(sim, result.info),
            scene_digest=built.state_digest,
            setup_s=setup_s,
            expert_s=expert_s,
        )

    def _unchecked(self, sim: Simulator) -> SeedEntry:
        """Accept the candidate as it is. Where it has a sentence, the expert is asked what is in the scene."""
        info: Mapping[str, str] = {}
        if self.rule.sentences:
            try:
                sim.reset(self.scene)
                info = sim.expert().info
            except UnstableSceneError:
                pass  # the trial will meet it again, and say so
        told = self._instruction(sim, info) if info else self._task_name
        return self._entry(accepted=True, reason="unchecked", info=dict(info), instruction=told)

    @property
    def _task_name(self) -> str:
        return self.scene.task.replace("_", " ")

    def _instruction(self, sim: Simulator, info: Mapping[str, str]) -> str:
        task, seed = self.scene.task, self.scene.seed
        if not self.rule.sentences:
            return self._task_name
        sentences = sim.instructions(task, info, self.split, seed, INSTRUCTION_CANDIDATES)
        return sentences[stream(seed, "instruction", self.split, task).integers(len(sentences))]

    def rejected(self, error: ErrorInfo) -> SeedEntry:
        """The entry of a candidate on which the simulator failed every time."""
        return self._entry(reason=f"error: {error.kind}: {error.message}")

    def _entry(self, *, reason: str, accepted: bool = False, **values: Any) -> SeedEntry:
        return SeedEntry(
            seed=self.scene.seed,
            accepted=accepted,
            reason=reason,
            config_digest=self.config_digest,
            instruction_split=self.split,
            **values,
        )
