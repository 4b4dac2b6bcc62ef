"""The driver's two steps, on whatever crew: complete the seed lists, run what remains of a plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from evalkit.core.trial import TrialSpec
from evalkit.plan.seed_files import SeedFiles
from evalkit.plan.seeds import SeedList
from evalkit.pool.history_work import HistorySeedWork, HistoryTrialWork
from evalkit.pool.observer import Observer
from evalkit.pool.scheduler import GRACE_S, Crew, CrewLostError, Scheduler, Work
from evalkit.pool.seed_work import SeedNeed, SeedWork
from evalkit.pool.trial_work import TrialWork
from evalkit.protocol.config import TaskConfig
from evalkit.store.run import Run

SeedLists = dict[tuple[str, str], SeedList]


@dataclass(frozen=True, kw_only=True)
class Session:
    """What a session of trials came to."""

    complete: bool
    """Whether every trial that was to run has a record."""
    interrupted: bool
    stop_reason: str | None
    """Why the session was cut short, if the fuse did it."""
    wall_s: float
    simulator_s: float
    workers: int

    @property
    def efficiency(self) -> float | None:
        """Time in simulators over workers x wall, or None for a session that did nothing."""
        return self.simulator_s / (self.workers * self.wall_s) if self.wall_s > 0 and self.simulator_s > 0 else None


def find_seeds(
    crew: Crew,
    needs: Sequence[SeedNeed],
    files: SeedFiles,
    observer: Observer,
    *,
    stop: Callable[[], bool] = lambda: False,
    grace_s: float = GRACE_S,
    hopeless: dict[tuple[str, str], str] | None = None,
) -> SeedLists | None:
    """Complete the lists; None if told to stop before that.

    Args:
        crew: the workers.
        needs: lists wanted.
        files: open seed files.
        observer: told about progress.
        stop: asked often.
        grace_s: see ``evalkit.pool.scheduler``.
        hopeless: if given, lists that can't be completed are left out, and why is noted here.

    Raises:
        UserError: a search is hopeless, or a candidate failed for a reason that is no rejection.
    """
    work: SeedWork | HistorySeedWork
    if any(need.rule.history for need in needs):
        work = HistorySeedWork(needs, files, observer)
    else:
        work = SeedWork(needs, files, observer, keep_going=hopeless is not None)
    Scheduler(crew, work, stop=stop, on_tick=observer.tick, grace_s=grace_s).run()
    if hopeless is not None:
        hopeless.update(work.hopeless)
    return work.results() if work.is_done else None


def run_trials(
    crew: Crew,
    run: Run,
    remaining: Sequence[TrialSpec],
    configs: Mapping[str, TaskConfig],
    observer: Observer,
    *,
    video: bool = False,
    task_order: Sequence[str] = (),
    trial_limit_s: float | None = None,
    stop: Callable[[], bool] = lambda: False,
    grace_s: float = GRACE_S,
) -> Session:
    """Run trials, each appended to the run as it ends.

    Args:
        crew: the workers.
        run: takes the records.
        remaining: trials to run.
        configs: name -> configuration.
        observer: told about progress.
        video: whether workers write videos into the run's folder.
        task_order: tasks in the order to start them; all evenly, longest first, if empty.
        trial_limit_s: wall limit of a trial, if it isn't to follow from its horizon.
        stop: asked often; trials then in flight are lost and remain to be run.
        grace_s: see ``evalkit.pool.scheduler``.
    """
    if run.info.bug_compatible:
        in_order = HistoryTrialWork(run, remaining, configs, observer, video=video)
        return work_through(crew, in_order, observer, stop=stop, grace_s=grace_s)
    work = TrialWork(run, remaining, configs, observer, video=video, task_order=task_order, trial_limit_s=trial_limit_s)
    return work_through(crew, work, observer, stop=stop, grace_s=grace_s)


class TrialsOfASession(Work, Protocol):
    """Work that can be cut short and knows how long simulators were busy with it."""

    @property
    def stop_reason(self) -> str | None:
        """Why it was cut short, if it was."""
        ...

    @property
    def simulator_s(self) -> float:
        """Time in simulators so far."""
        ...


def work_through(
    crew: Crew, work: TrialsOfASession, observer: Observer, *, stop: Callable[[], bool], grace_s: float
) -> Session:
    """Run the work to its end, or until told to stop."""
    started = time.monotonic()
    lost: str | None = None
    scheduler = Scheduler(crew, work, stop=stop, on_tick=observer.tick, grace_s=grace_s)
    try:
        ended = scheduler.run()
    except CrewLostError as error:  # what was done is kept and reported; the same command goes on later
        ended, lost = True, str(error)
    reason = lost or work.stop_reason
    return Session(
        complete=ended and reason is None and not scheduler.left_undone,
        interrupted=not ended,
        stop_reason=reason,
        wall_s=time.monotonic() - started,
        simulator_s=work.simulator_s,
        workers=crew.size,
    )
