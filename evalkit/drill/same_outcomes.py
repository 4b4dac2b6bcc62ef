"""Trial by trial the same, whoever runs them: in this process, by 1, 2, 4 workers, and after random kills.

Works on any backend and policy. What is compared is ``ground.essence``: outcome, steps, decisions, the step of success,
planner failures, and the digest of the final state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evalkit.drill.ground import Notes, essence
from evalkit.drill.processes import crew_left, marked_session
from evalkit.drill.run_faults import KILLS, Killer
from evalkit.pool.drive import Session, run_trials
from evalkit.pool.inline import InlineCrew
from evalkit.pool.jobs import PolicyFactory, SimulatorFactory
from evalkit.pool.scheduler import Crew
from evalkit.protocol.config import TaskConfig
from evalkit.store.run import Run

WORKERS = (1, 2, 4)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What is run: a backend, a policy, and a run of it for each way."""

    make_simulator: SimulatorFactory
    make_policy: PolicyFactory
    open_run: Callable[[str], Run]
    """Name of a way -> an empty run of the same plan."""
    configs: Mapping[str, TaskConfig]


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to run the plan, and how it compares with the first."""

    name: str
    trials: int
    differing: tuple[str, ...]
    """Trials that came out otherwise than the first way's, and how."""
    killed: tuple[str, ...]
    left: tuple[str, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether nothing differs and nothing is left behind."""
        return not self.differing and not self.left


def run_ways(
    stage: Stage, workers: Sequence[int] = WORKERS, show: Callable[[Way], None] = lambda way: None
) -> list[Way]:
    """Run the plan in every way.

    Args:
        stage: what to run.
        workers: numbers of workers to try; the kills happen to the second of them.
        show: told about each way.
    """
    from evalkit.pool.ray_session import ray_session

    first: Run | None = None
    ways = []
    with marked_session() as mark, ray_session(max(workers)):
        for name, number, kills in _ways(workers):
            started = time.monotonic()
            run = stage.open_run(name.replace(" ", "-"))
            notes = Killer(mark, len(run.plan)) if kills else Notes()
            with_crew(stage, number, run, notes)
            first = first or run
            left = crew_left(mark) if number else ()
            killed = tuple(notes.killed) if isinstance(notes, Killer) else ()
            way = Way(
                name=name,
                trials=len(run.records()),
                differing=_differences(first, run),
                killed=killed,
                left=left,
                seconds=round(time.monotonic() - started, 1),
            )
            ways.append(way)
            show(way)
    return ways


def with_crew(stage: Stage, workers: int, run: Run, notes: Notes) -> Session:
    """Run the plan with so many workers; 0 is this process alone."""
    from evalkit.pool.ray_crew import RayCrew

    crew: Crew
    if workers:
        crew = RayCrew(workers, stage.make_simulator, stage.make_policy)
    else:
        crew = InlineCrew(1, stage.make_simulator, stage.make_policy)
    try:
        return run_trials(crew, run, run.remaining(), stage.configs, notes)
    finally:
        crew.close()
        run.close()


def _ways(workers: Sequence[int]) -> Iterator[tuple[str, int, bool]]:
    yield "in this process", 0, False
    for number in workers:
        yield f"{number} worker{'s' if number > 1 else ''}", number, False
    number = workers[min(1, len(workers) - 1)]
    yield f"{number} worker{'s' if number > 1 else ''} and {KILLS} random kills", number, True


def _differences(first: Run, run: Run) -> tuple[str, ...]:
    here, there = essence(run), essence(first)
    found = []
    for spec in run.plan:
        if here.get(spec.key) != there.get(spec.key):
            what = f"{spec.task} {spec.config} seed {spec.seed}"
            found.append(f"{what}: {here.get(spec.key)} instead of {there.get(spec.key)}")
    return tuple(found)
