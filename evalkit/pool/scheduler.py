"""The scheduler: hands jobs to idle workers, tries failed ones again, kills what hangs. Knows neither Ray nor trials.

A job has ``MAX_ATTEMPTS`` attempts. When the policy server dies, every job in flight is a suspect: suspects are tried
again one at a time with nothing else in flight, so that a poisonous one is found out and the others are not blamed.

A simulator that doesn't start says nothing about the job, which keeps its attempts; but if none starts at all, or
suddenly none any more, the run ends at once with the simulator's own words (``evalkit.pool.starts``).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from evalkit.core.errors import HarnessError
from evalkit.core.record import ErrorInfo
from evalkit.pool.jobs import Failed, Finished, Job
from evalkit.pool.starts import Starts
from evalkit.sim.start import START

MAX_ATTEMPTS = 3
GRACE_S = 60.0
"""A worker kills a hanging simulator itself; if it hasn't answered so long after, the worker is killed."""
POLL_S = 0.5
NODE_LOST = "node_lost"
"""Kind of the failure of a job whose node is gone."""


class CrewLostError(HarnessError):
    """There is nothing left to work on. The run can go on later: nothing that was done is lost."""


class Crew(Protocol):
    """Workers, numbered from 0."""

    @property
    def size(self) -> int:
        """Number of workers."""
        ...

    def usable(self, worker: int) -> bool:
        """Whether the worker can take jobs: one whose node is lost may have nowhere to go."""
        ...

    def serves(self, job: Job) -> bool:
        """Whether it can do the job: one of several policies may have been given up."""
        ...

    def start(self, worker: int, job: Job, attempt: int) -> None:
        """Give an idle worker a job."""
        ...

    def wait(self, timeout_s: float) -> list[tuple[int, Finished | Failed]]:
        """Results that have come in; returns empty-handed after ``timeout_s``. Dead workers are replaced.

        Raises:
            CrewLostError: nothing is left to work on.
        """
        ...

    def kill(self, worker: int) -> None:
        """Kill a busy worker and replace it; its job gives no result."""
        ...

    def renew_policy(self, generation: int) -> None:
        """Replace the policy server if it is still the one of this generation.

        Raises:
            CrewLostError: it can't be replaced.
        """
        ...

    def close(self) -> None:
        """End all workers."""
        ...


class Work(Protocol):
    """Where jobs come from and where results go. Called in the driver only."""

    def next_job(self) -> Job | None:
        """The next job, or None if there is none at present: a result may bring more."""
        ...

    def done(self, job: Job, result: Finished, attempts: int) -> None:
        """Take a result."""
        ...

    def give_up(self, job: Job, failure: Failed, attempts: int) -> None:
        """Take the last failure of a job that used up its attempts."""
        ...

    def incident(self, job: Job, failure: Failed, attempt: int) -> None:
        """Take note of a failed attempt."""
        ...


@dataclass(frozen=True, kw_only=True)
class _Flight:
    job: Job
    started: float
    alone: bool
    worker: int


class Scheduler:
    """Runs a ``Work`` on a ``Crew``.

    Args:
        crew: the workers; not closed here.
        work: the jobs.
        stop: asked often; when it says True, nothing new starts and ``run`` returns soon.
        on_tick: called often with the number of busy workers.
        grace_s: see ``GRACE_S``.
    """

    def __init__(
        self,
        crew: Crew,
        work: Work,
        *,
        stop: Callable[[], bool] = lambda: False,
        on_tick: Callable[[int], None] = lambda busy: None,
        grace_s: float = GRACE_S,
    ) -> None:
        self._crew, self._work, self._stop, self._on_tick, self._grace_s = crew, work, stop, on_tick, grace_s
        self._attempts: dict[str, int] = {}
        self._retries: deque[Job] = deque()
        self._suspects: deque[Job] = deque()
        self._busy: dict[int, _Flight] = {}
        self._late: set[int] = set()
        self._starts = Starts()
        self.left_undone = 0
        """Jobs that the crew couldn't serve any more."""

    def run(self) -> bool:
        """Work until nothing is left (True) or until told to stop (False).

        Told to stop, nothing new starts; what is in flight may end until ``stop.at_once()``, and is lost then. A
        ``stop`` without ``at_once`` means at once.

        Raises:
            HarnessError: no simulator starts.
            CrewLostError: nothing is left to work on.
        """
        at_once: Callable[[], bool] = getattr(self._stop, "at_once", self._stop)
        while True:
            stopping = self._stop()
            if stopping and (not self._busy or at_once()):
                return not self._busy and self._is_finished()
            if not stopping:
                self._fill()
            self._on_tick(len(self._busy))
            if not self._busy:
                return True
            # What came to its end first: a failure may end the run, and it isn't to take anything along.
            for worker, result in sorted(self._crew.wait(POLL_S), key=lambda one: isinstance(one[1], Failed)):
                flight = self._busy.pop(worker)
                self._settle(flight, result)
            self._kill_hanging()

    def _is_finished(self) -> bool:
        return not self._retries and not self._suspects and self._work.next_job() is None

    def _fill(self) -> None:
        for worker in range(self._crew.size):
            if worker in self._busy or not self._crew.usable(worker):
                continue
            if self._busy and self._starts.rests(worker):
                continue
            chosen = self._choose()
            if chosen is None:
                return
            job, alone = chosen
            self._attempts[job.key] = self._attempts.get(job.key, 0) + 1
            self._busy[worker] = _Flight(job=job, started=time.monotonic(), alone=alone, worker=worker)
            self._crew.start(worker, job, self._attempts[job.key])

    def _choose(self) -> tuple[Job, bool] | None:
        """The next job and whether it must be alone. One that the crew can't serve any more stays undone."""
        if any(flight.alone for flight in self._busy.values()):
            return None
        while True:
            alone = bool(self._suspects)
            if alone and self._busy:
                return None
            waiting = self._suspects or self._retries
            job = waiting.popleft() if waiting else self._work.next_job()
            if job is None or self._crew.serves(job):
                return None if job is None else (job, alone)
            self.left_undone += 1

    def _settle(self, flight: _Flight, result: Finished | Failed) -> None:
        job = flight.job
        attempts = self._attempts[job.key]
        if isinstance(result, Finished):
            self._starts.came_up(flight.worker)
            self._work.done(job, result, attempts)
            return
        if result.error.kind == START:
            self._not_started(flight, result)
            return
        self._work.incident(job, result, attempts)
        if result.error.kind == NODE_LOST:  # says nothing about the job, which keeps its attempts
            self._attempts[job.key] -= 1
            self._retries.append(job)
            return
        if result.scope == "simulator":  # any other failure of a simulator comes after its start
            self._starts.came_up(flight.worker)
        if result.scope == "policy_server":
            self._crew.renew_policy(result.policy_generation)
        if attempts >= MAX_ATTEMPTS:
            self._work.give_up(job, result, attempts)
        elif result.scope == "policy_server":
            self._suspects.append(job)
        else:
            self._retries.append(job)

    def _not_started(self, flight: _Flight, result: Failed) -> None:
        job = flight.job
        if self._starts.is_news(result.error.message.partition("; log: ")[0]):
            self._work.incident(job, result, self._attempts[job.key])
        self._starts.failed(flight.worker)
        usable = [worker for worker in range(self._crew.size) if self._crew.usable(worker)]
        if verdict := self._starts.verdict(usable):
            raise HarnessError(f"{verdict}: {result.error.message}")
        self._attempts[job.key] -= 1
        self._retries.append(job)

    def _kill_hanging(self) -> None:
        """Kill who is late, and was so before the last look at results.

        Nobody looks while a large policy is loaded again: what came in time may still wait.
        """
        now = time.monotonic()
        late = {worker for worker, one in self._busy.items() if now - one.started > one.job.limit_s + self._grace_s}
        for worker in sorted(late & self._late):
            flight = self._busy.pop(worker)
            self._crew.kill(worker)
            what = f"no answer within {flight.job.limit_s + self._grace_s:g} s; the worker was killed"
            error = ErrorInfo(kind="hang", message=what)
            self._settle(flight, Failed(scope="simulator", error=error, worker=f"worker-{worker}"))
        self._late = late - self._late
