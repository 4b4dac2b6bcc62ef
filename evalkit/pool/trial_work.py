"""Running the trials of a plan with a crew, each finished one appended to the run at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from evalkit.core.errors import HarnessError
from evalkit.core.outcome import Outcome
from evalkit.core.record import ErrorInfo, TrialRecord
from evalkit.core.trial import TrialSpec
from evalkit.pool.error_rule import ErrorRule
from evalkit.pool.fair_queue import FairQueue, stratum_of
from evalkit.pool.fuse import Fuse, StratumFuse
from evalkit.pool.jobs import Failed, Finished, Job, TrialJob
from evalkit.pool.observer import Observer
from evalkit.pool.seed_work import scene_of
from evalkit.protocol.config import TaskConfig
from evalkit.store.run import MEDIA_FOLDER, Run

TRIAL_LIMIT_S = 300.0
STEP_LIMIT_S = 3.0
"""A trial may take ``TRIAL_LIMIT_S`` plus this for each action of its horizon: some ten times the usual."""


class TrialWork:
    """A ``Work`` over what remains of a run.

    All tasks and configurations advance evenly, long trials first (see ``FairQueue``), unless an order is given. No
    outcome depends on it. A task whose trials can't be run here is set aside, and the others go on.

    Args:
        run: where records go.
        remaining: trials to run.
        configs: name -> configuration.
        observer: told about every record.
        video: whether workers write a video of each trial.
        task_order: tasks in the order their trials are to start; all of them, or none for longest first.
        trial_limit_s: wall limit of a trial; None for ``TRIAL_LIMIT_S`` and ``STEP_LIMIT_S``.
    """

    def __init__(
        self,
        run: Run,
        remaining: Sequence[TrialSpec],
        configs: Mapping[str, TaskConfig],
        observer: Observer,
        *,
        video: bool = False,
        task_order: Sequence[str] = (),
        trial_limit_s: float | None = None,
    ) -> None:
        self._run, self._configs, self._observer, self._video = run, configs, observer, video
        self._queue = FairQueue(remaining, run.plan, task_order)
        self._trial_limit_s = trial_limit_s
        self._fuse, self._stratum_fuse = Fuse(), StratumFuse()
        self._blown: str | None = None
        self._set_aside: list[str] = []
        self.simulator_s = 0.0
        """Time simulators worked in the trials finished so far."""
        self._error_rule = ErrorRule(run)
        for record in run.records().values():
            self._apply_error_rule(record)

    @property
    def stop_reason(self) -> str | None:
        """Why trials remain that don't start: the fuse blew, or tasks were set aside."""
        return self._blown or "; ".join(self._set_aside) or None

    def next_job(self) -> Job | None:
        """See ``Work``."""
        spec = None if self._blown else self._queue.pop()
        return None if spec is None else self.job(spec)

    def done(self, job: Job, result: Finished, attempts: int) -> None:
        """See ``Work``."""
        record = result.value
        if not isinstance(record, TrialRecord):
            raise HarnessError(f"{job.title} gave {type(record).__name__}")
        record = replace(record, attempts=attempts, worker=result.worker, node=result.node)
        if record.outcome.is_scored:
            self._queue.learn(record)
        self.simulator_s += record.timings.simulator_s
        self._take(record)

    def give_up(self, job: Job, failure: Failed, attempts: int) -> None:
        """Record why the trial has no score, or that the policy hangs in it."""
        if not isinstance(job, TrialJob):
            raise HarnessError(f"{job.title} is no trial")
        outcome = Outcome.SIM_ERROR if failure.scope == "simulator" else Outcome.HARNESS_ERROR
        if failure.error.kind == "policy_timeout":  # its last attempt ran alone: nobody else can be to blame
            outcome = Outcome.POLICY_ERROR
        record = failed_trial(job.spec, outcome, failure.error)
        self._take(replace(record, attempts=attempts, worker=failure.worker, node=failure.node))

    def incident(self, job: Job, failure: Failed, attempt: int) -> None:
        """See ``Work``."""
        self._run.append_incident(job.key, job.title, attempt, failure.worker, failure.error)
        self._observer.incident(job.title, failure, attempt)

    def _take(self, record: TrialRecord) -> None:
        self._run.append(record)
        self._observer.trial(record)
        self._blown = self._blown or self._fuse.check(record)
        reason = self._stratum_fuse.check(record)
        stratum = stratum_of(record.spec)
        self._apply_error_rule(record)
        if reason and not self._blown and self._queue.holds(stratum) and (left := self._queue.drop(stratum)):
            self._set_aside.append(f"{' '.join(stratum)} was set aside with {left} trials not run: {reason}")

    def _apply_error_rule(self, record: TrialRecord) -> None:
        for stratum, reason in self._error_rule.ended_by(record):
            if self._queue.holds(stratum) and self._queue.drop(stratum) and reason not in self._set_aside:
                self._set_aside.append(reason)

    def job(self, spec: TrialSpec) -> TrialJob:
        """The job that runs a trial."""
        return TrialJob(
            spec=spec,
            scene=scene_of(spec, self._configs[spec.config]),
            limit_s=self._trial_limit_s or usual_limit_s(spec),
            media_root=self._run.folder.resolve() if self._video else None,
            video=video_name(spec) if self._video else None,
        )


def usual_limit_s(spec: TrialSpec) -> float:
    """Wall limit of a trial, if the user has set none."""
    return TRIAL_LIMIT_S + STEP_LIMIT_S * spec.horizon_steps


def video_name(spec: TrialSpec) -> str:
    """Path of a trial's video, relative to its run's folder."""
    return f"{MEDIA_FOLDER}/{spec.config}/{spec.task}/{spec.seed}-{spec.key[:8]}.mp4"


def failed_trial(spec: TrialSpec, outcome: Outcome, error: ErrorInfo) -> TrialRecord:
    """The record of a trial that didn't come to its end."""
    return TrialRecord(
        spec=spec,
        outcome=outcome,
        steps=0,
        policy_calls=0,
        success_step=None,
        error=error,
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )
