"""Trials of several policies on the same scenes, in lock-step: whenever it ends, all have met the same scenes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalkit.core.errors import HarnessError
from evalkit.core.trial import TrialSpec
from evalkit.pool.jobs import Failed, Finished, Job, TrialJob
from evalkit.pool.observer import Observer
from evalkit.pool.trial_work import TrialWork
from evalkit.protocol.config import TaskConfig
from evalkit.store.run import Run


class LockstepWork:
    """A ``Work`` over the trials of several runs, strictly in the order given.

    Args:
        runs: where records go: one run of each policy.
        order: trials to run, each of one of the runs' policies.
        configs: name -> configuration.
        observer: told about every record.
        enough: asked before each trial; when it says True, no more start. Those in flight end and are recorded.
        together: whether a run whose fuse blows stops all of them, or itself alone.
        video: whether workers write a video of each trial.
        trial_limit_s: see ``TrialWork``.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        order: Sequence[TrialSpec],
        configs: Mapping[str, TaskConfig],
        observer: Observer,
        *,
        enough: Callable[[], bool] = lambda: False,
        together: bool = True,
        video: bool = False,
        trial_limit_s: float | None = None,
    ) -> None:
        options: dict[str, Any] = {"video": video, "trial_limit_s": trial_limit_s}
        self._sides = {run.info.policy.digest: TrialWork(run, (), configs, observer, **options) for run in runs}
        if len(self._sides) < len(runs):
            raise HarnessError("several runs have one policy: their trials can't be told apart")
        self._waiting, self._enough, self._together = deque(order), enough, together

    @property
    def stop_reasons(self) -> dict[str, str]:
        """Policy digest -> why no more of its trials start, of those whose fuse blew."""
        return {policy: side.stop_reason for policy, side in self._sides.items() if side.stop_reason}

    @property
    def stop_reason(self) -> str | None:
        """Why not all trials started, if a fuse blew."""
        return next(iter(self.stop_reasons.values()), None)

    @property
    def simulator_s(self) -> float:
        """Time simulators worked in the trials finished so far."""
        return sum(side.simulator_s for side in self._sides.values())

    def next_job(self) -> Job | None:
        """See ``Work``."""
        while self._waiting and not self._enough() and not (self._together and self.stop_reason):
            spec = self._waiting.popleft()
            side = self._sides[spec.policy]
            if side.stop_reason is None:
                return side.job(spec)
        return None

    def done(self, job: Job, result: Finished, attempts: int) -> None:
        """See ``Work``."""
        self._side(job).done(job, result, attempts)

    def give_up(self, job: Job, failure: Failed, attempts: int) -> None:
        """See ``Work``."""
        self._side(job).give_up(job, failure, attempts)

    def incident(self, job: Job, failure: Failed, attempt: int) -> None:
        """See ``Work``."""
        self._side(job).incident(job, failure, attempt)

    def _side(self, job: Job) -> TrialWork:
        if not isinstance(job, TrialJob):
            raise HarnessError(f"{job.title} is no trial")
        return self._sides[job.spec.policy]
