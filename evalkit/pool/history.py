"""RoboTwin's own order of things, for ``--bug-compatible``: one process goes through all candidates of a task.

For each candidate the scene and its expert; if it is accepted the scene once more, and the trial. Nothing that a scene
leaves in the process is undone, so a task can neither be divided among workers nor taken up in its middle: it is one
job, which a failure starts from the beginning.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from evalkit.core.errors import HarnessError, SimulatorError, UnstableSceneError
from evalkit.core.outcome import Outcome
from evalkit.core.record import ErrorInfo, TrialRecord
from evalkit.core.tasks import STEP_LIMITS
from evalkit.core.trial import TrialSpec
from evalkit.episode.run_trial import run_trial
from evalkit.plan.seeds import SeedEntry, first_candidate
from evalkit.pool.jobs import SeedJob, Tools
from evalkit.pool.seed_work import SEED_LIMIT_S, SeedNeed, make_scene, scene_of
from evalkit.pool.trial_work import failed_trial, usual_limit_s, video_name
from evalkit.protocol.config import TaskConfig
from evalkit.sim.contract import Scene


@dataclass(frozen=True, kw_only=True)
class HistorySeedJob:
    """Find the accepted seeds of one task and configuration, as RoboTwin's loop meets them."""

    need: SeedNeed
    wants_fresh_simulator: bool = True

    @property
    def key(self) -> str:
        """Task and configuration."""
        return f"{self.need.task}/{self.need.config.name}/in history"

    @property
    def title(self) -> str:
        """For people."""
        return f"candidates of {self.need.task} {self.need.config.name} in RoboTwin's order"

    @property
    def limit_s(self) -> float:
        """Wall limit: that of every candidate it may try."""
        return SEED_LIMIT_S * (self.need.count + self.need.give_up_after)

    def run(self, tools: Tools) -> tuple[SeedEntry, ...]:
        """Try candidates in order, each accepted one with the scene of its trial, until there are enough.

        Ends early, with the candidates tried, if too many in a row are rejected.
        """
        need = self.need
        first = need.rule.first if need.rule.first is not None else first_candidate(need.seed_base)
        entries: list[SeedEntry] = []
        accepted = rejected_in_a_row = 0
        while accepted < need.count and rejected_in_a_row <= need.give_up_after:
            scene = _scene(need.task, need.config, first + len(entries))
            entry = candidate(need, scene).run(tools)
            entries.append(entry)
            accepted += entry.accepted
            rejected_in_a_row = 0 if entry.accepted else rejected_in_a_row + 1
            if entry.accepted:
                _build_again(tools, scene)
        return tuple(entries)


@dataclass(frozen=True, kw_only=True)
class HistoryTrialJob:
    """All trials of one task and configuration, in RoboTwin's loop."""

    specs: tuple[TrialSpec, ...]
    """In increasing order of their seeds."""
    need: SeedNeed
    stops_at_error: bool
    """Whether an error ends the task."""
    media_root: Path | None = None
    wants_fresh_simulator: bool = True

    @property
    def key(self) -> str:
        """The first trial's key, and that there are more."""
        return f"{self.specs[0].key} and {len(self.specs) - 1} more"

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.specs[0].task} {self.specs[0].config} in RoboTwin's order"

    @property
    def limit_s(self) -> float:
        """Wall limit: that of all candidates and trials together."""
        return sum(map(usual_limit_s, self.specs)) + SEED_LIMIT_S * (self.specs[-1].seed - self._first + 1)

    @property
    def _first(self) -> int:
        first = self.need.rule.first
        return first if first is not None else first_candidate(self.need.seed_base)

    def run(self, tools: Tools) -> tuple[TrialRecord, ...]:
        """Every candidate up to the last trial: scene and expert; of accepted ones the scene again, and the trial."""
        if tools.decider is None:
            raise HarnessError("a trial needs a policy, this crew has none")
        by_seed = {spec.seed: spec for spec in self.specs}
        records: list[TrialRecord] = []
        for seed in range(self._first, self.specs[-1].seed + 1):
            spec = by_seed.get(seed)
            entry = candidate(self.need, _scene(self.need.task, self.need.config, seed)).run(tools)
            if entry.accepted and spec is None:
                _build_again(tools, _scene(self.need.task, self.need.config, seed))  # its trial, which isn't planned
            if spec is not None:
                records.append(self._trial(spec, tools) if entry.accepted else _differs(spec, entry))
                if self.stops_at_error and records[-1].outcome in (Outcome.POLICY_ERROR, Outcome.SIM_ERROR):
                    break
        return tuple(records)

    def _trial(self, spec: TrialSpec, tools: Tools) -> TrialRecord:
        assert tools.decider is not None
        try:
            return run_trial(
                tools.sim,
                tools.decider,
                spec,
                scene_of(spec, self.need.config),
                session=f"{spec.key}-{tools.attempt}",
                media_root=self.media_root,
                video=video_name(spec) if self.media_root else None,
            )
        except SimulatorError as error:
            if error.kind in ("crash", "hang"):
                raise  # the process is gone, and its history with it
            info = ErrorInfo(kind=error.kind, message=str(error), traceback_tail=error.traceback_tail)
            return failed_trial(spec, Outcome.SIM_ERROR, info)


def candidate(need: SeedNeed, scene: Scene) -> SeedJob:
    """The job that judges a candidate."""
    return SeedJob(
        scene=scene, config_digest=need.config.digest, split=need.split, limit_s=SEED_LIMIT_S, rule=need.rule
    )


def _scene(task: str, config: TaskConfig, seed: int) -> Scene:
    return replace(make_scene(task, config, seed), horizon_steps=STEP_LIMITS[task], history="task")


def _build_again(tools: Tools, scene: Scene) -> None:
    """The scene of a trial without the trial."""
    try:
        tools.sim.reset(scene)
    except UnstableSceneError:
        pass  # what the trial would meet: for its record to say
    except SimulatorError as error:
        if error.kind in ("crash", "hang"):
            raise


def _differs(spec: TrialSpec, entry: SeedEntry) -> TrialRecord:
    message = (
        f"seed {spec.seed} was accepted when the list was made, and is rejected now ({entry.reason}): the policy's "
        "actions changed what its planner or task code remembers"
    )
    return failed_trial(spec, Outcome.SIM_ERROR, ErrorInfo(kind="history_differs", message=message))
