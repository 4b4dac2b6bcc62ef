"""Who goes through which task for ``--bug-compatible``: one job for each task and configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evalkit.core.errors import HarnessError, UserError
from evalkit.core.outcome import Outcome
from evalkit.core.record import TrialRecord
from evalkit.core.trial import TrialSpec
from evalkit.plan.seed_files import SeedFiles
from evalkit.plan.seeds import SeedList
from evalkit.pool.fair_queue import Stratum, stratum_of
from evalkit.pool.history import HistorySeedJob, HistoryTrialJob
from evalkit.pool.jobs import Failed, Finished, Job
from evalkit.pool.observer import Observer
from evalkit.pool.seed_work import SeedNeed, open_search
from evalkit.pool.trial_work import failed_trial
from evalkit.protocol.config import TaskConfig
from evalkit.protocol.protocols import load_protocol
from evalkit.store.run import Run

_STOPPING = ("stops_task", "stops_run")


class HistorySeedWork:
    """A ``Work`` that completes lists in RoboTwin's order, one job each.

    Args:
        needs: lists wanted; all with ``rule.history``.
        files: where entries come from and go to; open for writing.
        observer: told about every list.
    """

    def __init__(self, needs: Sequence[SeedNeed], files: SeedFiles, observer: Observer) -> None:
        self._files, self._observer = files, observer
        self._needs = {(need.task, need.config.name): need for need in needs}
        self._lists: dict[Stratum, SeedList] = {}
        self.hopeless: dict[Stratum, str] = {}
        """Always empty: a list that can't be completed ends the search."""
        for key, need in self._needs.items():
            search = open_search(need, files)
            if search.is_done:
                self._lists[key] = search.result()
        self._waiting = [key for key in self._needs if key not in self._lists]
        for task, config in self._needs:
            self._tell(task, config)

    @property
    def is_done(self) -> bool:
        """Whether all lists are complete."""
        return len(self._lists) == len(self._needs)

    def results(self) -> dict[Stratum, SeedList]:
        """(task, configuration) -> complete list."""
        return {key: self._lists[key] for key in self._needs}

    def next_job(self) -> Job | None:
        """See ``Work``."""
        return HistorySeedJob(need=self._needs[self._waiting.pop(0)]) if self._waiting else None

    def done(self, job: Job, result: Finished, attempts: int) -> None:
        """See ``Work``.

        Raises:
            UserError: too many candidates in a row were rejected.
        """
        assert isinstance(job, HistorySeedJob)
        need, entries = job.need, result.value
        task, config = need.task, need.config.name
        if sum(entry.accepted for entry in entries) < need.count:
            raise UserError(
                f"{job.title}: {need.give_up_after + 1} in a row, to seed {entries[-1].seed}, were rejected, the last "
                f"for {entries[-1].reason}: the task doesn't work on this backend"
            )
        known = {entry.seed for entry in self._files.read(task, config, need.rule.folder)}
        for entry in entries:
            if entry.seed not in known:
                self._files.append(task, config, entry, need.rule.folder)
        self._lists[task, config] = SeedList(task=task, config=config, entries=tuple(entries))
        self._tell(task, config)

    def give_up(self, job: Job, failure: Failed, attempts: int) -> None:
        """See ``Work``.

        Raises:
            HarnessError: always: no process gets through the candidates.
        """
        raise HarnessError(f"{job.title} failed {attempts} times: {failure.error.kind}: {failure.error.message}")

    def incident(self, job: Job, failure: Failed, attempt: int) -> None:
        """See ``Work``."""
        self._observer.incident(job.title, failure, attempt)

    def _tell(self, task: str, config: str) -> None:
        need, found = self._needs[task, config], self._lists.get((task, config))
        self._observer.seeds(task, config, len(found.accepted) if found else 0, need.count)


class HistoryTrialWork:
    """A ``Work`` over the tasks of a run of which trials remain, each from its first candidate on.

    Args:
        run: where records go; those that it has are made again and kept as they were.
        remaining: trials without a record.
        configs: name -> configuration.
        observer: told about every record.
        video: whether workers write a video of each trial.
    """

    def __init__(
        self,
        run: Run,
        remaining: Sequence[TrialSpec],
        configs: Mapping[str, TaskConfig],
        observer: Observer,
        *,
        video: bool = False,
    ) -> None:
        self._run, self._observer = run, observer
        rules = load_protocol(run.info.protocol).rules
        stops, self._stops_run = rules.errors in _STOPPING, rules.errors == "stops_run"
        self._wanted = {spec.key for spec in remaining}
        self._jobs: list[HistoryTrialJob] = []
        for task, config in dict.fromkeys(map(stratum_of, remaining)):
            specs = sorted((s for s in run.plan if stratum_of(s) == (task, config)), key=lambda spec: spec.seed)
            rule = rules.seed_rule(task, config, run.info.seed_base, history=True)
            need = SeedNeed(
                task=task, config=configs[config], count=len(specs), seed_base=run.info.seed_base, rule=rule
            )
            root = run.folder.resolve() if video else None
            self._jobs.append(HistoryTrialJob(specs=tuple(specs), need=need, stops_at_error=stops, media_root=root))
        self.stop_reason: str | None = None
        """Why trials remain, if an error ended them."""
        self.simulator_s = 0.0

    def next_job(self) -> Job | None:
        """See ``Work``."""
        ended = self._stops_run and self.stop_reason is not None
        return self._jobs.pop(0) if self._jobs and not ended else None

    def done(self, job: Job, result: Finished, attempts: int) -> None:
        """See ``Work``."""
        assert isinstance(job, HistoryTrialJob)
        records: tuple[TrialRecord, ...] = result.value
        for record in records:
            self.simulator_s += record.timings.simulator_s
            if record.key in self._wanted:
                self._take(replace(record, attempts=attempts, worker=result.worker, node=result.node))
        if len(records) < len(job.specs):
            left = len(job.specs) - len(records)
            self.stop_reason = f"{job.title}: an error ended it, with {left} trials not run"

    def give_up(self, job: Job, failure: Failed, attempts: int) -> None:
        """Record why the trials have no score."""
        assert isinstance(job, HistoryTrialJob)
        outcome = Outcome.SIM_ERROR if failure.scope == "simulator" else Outcome.HARNESS_ERROR
        for spec in job.specs:
            if spec.key in self._wanted:
                record = failed_trial(spec, outcome, failure.error)
                self._take(replace(record, attempts=attempts, worker=failure.worker, node=failure.node))

    def incident(self, job: Job, failure: Failed, attempt: int) -> None:
        """See ``Work``."""
        self._run.append_incident(job.key, job.title, attempt, failure.worker, failure.error)
        self._observer.incident(job.title, failure, attempt)

    def _take(self, record: TrialRecord) -> None:
        self._run.append(record)
        self._observer.trial(record)
