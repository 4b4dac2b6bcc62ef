"""Faults of a run: its log is torn, the clock jumps, parts of the crew are killed at random, a task never works."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from unittest.mock import patch

from evalkit.core.errors import HarnessError
from evalkit.core.record import TrialRecord
from evalkit.drill.ground import TASKS, WORLD, Ground, Notes, SimMaker, json_lines, work
from evalkit.drill.policy import DrillPolicyMaker
from evalkit.drill.processes import PARTS, crew_left, part
from evalkit.drill.row import Case, Played
from evalkit.drill.trial_faults import LONG_LIMIT_S, WORKERS
from evalkit.pool.scheduler import Crew
from evalkit.sim.contract import Simulator
from evalkit.sim.fake.world import AT_RESET, Fault
from evalkit.store.run import TRIALS_FILE

KILLS = 3
SEED = 7
TORN_AFTER = 38
JUMP = timedelta(hours=3)
_FOR_GOOD = ExitStack()
"""Keeps the clock of a worker's process broken until the process ends."""
CLOCKS = ("evalkit.episode.run_trial.datetime", "evalkit.pool.trial_work.datetime", "evalkit.store.run.datetime")


def run_cases() -> list[Case]:
    """The cases."""
    kept = "nothing"
    return [
        Case(kind="torn", fault="record file: its last line is torn", play=_torn, expected=kept),
        Case(kind="clock", fault="the clock jumps three hours back and forth", play=_clock, expected=kept),
        Case(
            kind="kills",
            fault=f"{KILLS} parts of the crew, chosen at random, are killed",
            play=_kills,
            expected="failed attempts only",
        ),
        Case(
            kind="start",
            fault="no simulator starts",
            play=_start,
            expected="nothing; the run ends with the reason",
        ),
        Case(
            kind="task",
            fault="one task crashes in every scene",
            play=_task,
            expected="sim_error crash, the rest not run; recovered by --retry-errors",
        ),
    ]


class Killer(Notes):
    """Kills a part of the crew after some trials. Which and when is drawn from a seed.

    Args:
        mark: mark of the session's processes.
        parts: kinds of parts to draw from.
        trials: trials of the run; a kill falls into each third of it.
    """

    def __init__(self, mark: str, trials: int, seed: int = SEED, parts: tuple[str, ...] = tuple(PARTS)) -> None:
        super().__init__()
        self._mark, self._parts, self._random = mark, parts, random.Random(seed)
        # Apart from each other: what was killed is tried again first, and three kills would be all its attempts.
        apart = max(1, trials // KILLS)
        self._moments = [1 + number * apart + self._random.randrange(max(1, apart // 2)) for number in range(KILLS)]
        self.killed: list[str] = []

    def trial(self, record: TrialRecord) -> None:
        """See ``Observer``."""
        super().trial(record)
        if self._moments and len(self.trials) >= self._moments[0]:
            living = {name: found for name in self._parts if (found := part(self._mark, name))}
            if living:  # else all of them are being replaced: at the next trial, then
                self._moments.pop(0)
                name = self._random.choice(list(living))
                self._random.choice(living[name]).kill()
                self.killed.append(name)


def _crew(ground: Ground, world: Any = WORLD) -> Crew:
    from evalkit.pool.ray_crew import RayCrew

    return RayCrew(WORKERS, SimMaker(world, ground.logs), DrillPolicyMaker())


def _torn(ground: Ground, mark: str) -> Played:
    run, notes = ground.open("torn"), Notes()
    crew = _crew(ground)
    try:
        work(crew, run, notes, stop=lambda: len(notes.trials) >= TORN_AFTER)
    finally:
        crew.close()
    log = run.folder / TRIALS_FILE
    log.write_bytes(log.read_bytes()[:-200])
    again, crew = ground.open("torn"), _crew(ground)
    left = len(again.remaining())
    try:
        work(crew, again, Notes())
    finally:
        crew.close()
    torn = len(run.plan) - len(notes.trials) + 1
    problems = () if left == torn else (f"{left} trials were left after the tear, not {torn}",)
    json_lines(log)
    return Played(
        run=again, happened=f"the torn trial and {left - 1} more ran", problems=problems, left=crew_left(mark)
    )


class JumpingClock(datetime):
    """A wall clock that somebody sets back and forth by hours between any two looks."""

    _looks = 0

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> JumpingClock:
        """Hours off, every time otherwise."""
        cls._looks += 1
        moment = datetime.now(tz) + (JUMP if cls._looks % 2 else -JUMP)
        return cls.fromtimestamp(moment.timestamp(), tz)


@contextmanager
def jumping_clock() -> Iterator[None]:
    """Let everything that looks at the wall clock here see a jumping one."""
    with ExitStack() as stack:
        for name in CLOCKS:
            stack.enter_context(patch(name, JumpingClock))
        stack.enter_context(patch("time.time", lambda: JumpingClock.now(UTC).timestamp()))
        yield


@dataclass(frozen=True)
class _ClockBreaker:
    """Makes simulators in a worker whose clock jumps from then on."""

    maker: SimMaker

    def __call__(self, worker_name: str) -> Simulator:
        _FOR_GOOD.enter_context(jumping_clock())
        return self.maker(worker_name)


def _clock(ground: Ground, mark: str) -> Played:
    from evalkit.pool.ray_crew import RayCrew

    run = ground.open("clock")
    maker = _ClockBreaker(SimMaker(WORLD, ground.logs))
    crew = RayCrew(WORKERS, maker, DrillPolicyMaker())
    try:
        with jumping_clock():
            work(crew, run, Notes(), trial_limit_s=LONG_LIMIT_S)
    finally:
        crew.close()
    records = run.records().values()
    started = sorted(datetime.fromisoformat(record.started_at) for record in records)
    walls = [record.timings.wall_s for record in records]
    problems = []
    if started[-1] - started[0] < JUMP:
        problems.append("the clock didn't jump")
    if not all(0.0 < wall < LONG_LIMIT_S for wall in walls):
        problems.append(f"a trial took {min(walls):.1f} s or {max(walls):.1f} s by the clock")
    happened = f"start times {(started[-1] - started[0]).total_seconds() / 3600:.0f} h apart, no duration above "
    happened += f"{max(walls):.1f} s"
    return Played(run=run, happened=happened, problems=tuple(problems), left=crew_left(mark))


def _kills(ground: Ground, mark: str) -> Played:
    run = ground.open("kills")
    killer = Killer(mark, len(run.plan))
    crew = _crew(ground, replace(WORLD, step_s=0.01))
    try:
        work(crew, run, killer)
    finally:
        crew.close()
    problems = () if len(killer.killed) == KILLS else (f"only {len(killer.killed)} parts were killed",)
    return Played(run=run, happened=f"killed: {', '.join(killer.killed)}", problems=problems, left=crew_left(mark))


def _start(ground: Ground, mark: str) -> Played:
    run, notes, words = ground.open("start"), Notes(), "RuntimeError: no Vulkan device"
    said = ""
    crew = _crew(ground, replace(WORLD, no_start=words.partition(": ")[2]))
    try:
        work(crew, run, notes)
    except HarnessError as error:
        said = str(error)
    finally:
        crew.close()
    problems = [f"it said {said!r}"] if words not in said or ".log" not in said else []
    if run.records():
        problems.append(f"{len(run.records())} trials were recorded")
    tries = len(notes.incidents)
    again = ground.open("start")
    crew = _crew(ground)
    try:
        work(crew, again, Notes())
    finally:
        crew.close()
    times = f"{tries} {'try' if tries == 1 else 'tries'}"
    happened = f"ended after {times} with the simulator's own words and its log's path; then resumed"
    return Played(run=again, happened=happened, problems=tuple(problems), left=crew_left(mark))


def _task(ground: Ground, mark: str) -> Played:
    run, task = ground.open("task"), TASKS[1]
    scenes = [spec.seed for spec in run.plan if spec.task == task]
    faults = tuple(Fault(kind="crash", seed=seed, step=AT_RESET, task=task) for seed in scenes)
    crew = _crew(ground, replace(WORLD, faults=faults))
    try:
        session = work(crew, run, Notes())
    finally:
        crew.close()
    reason = session.stop_reason or "nothing"
    problems = [] if f"{task} demo_clean was set aside with" in reason else [f"it said {reason}"]
    others = sum(record.outcome.is_scored for record in run.records().values())
    if others != len(run.plan) - len(scenes):
        problems.append(f"{others} trials of the other tasks have a score")
    missing = len(run.records()) - others
    again = ground.open("task")
    crew = _crew(ground)
    try:
        work(crew, again, Notes(), retry_errors=True)
    finally:
        crew.close()
    happened = f"set aside after {missing} missing trials; the other tasks finished; then --retry-errors"
    return Played(run=again, happened=happened, problems=tuple(problems), left=crew_left(mark))
