"""The drill: every fault in turn, each on its own run, in one Ray session."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from evalkit.core.errors import HarnessError, UnknownNameError, UserError
from evalkit.drill.command_faults import command_cases
from evalkit.drill.ground import TASKS, WORLD, Ground, drill_scenes, prepare_ground
from evalkit.drill.lost_node import node_case
from evalkit.drill.processes import all_left, crew_left, marked, marked_session
from evalkit.drill.row import Case, Place, Played, Row, judge
from evalkit.drill.run_faults import run_cases
from evalkit.drill.trial_faults import WORKERS, play_faults, trial_cases
from evalkit.sim.fake.fault_file import Faults, read_faults


def all_cases() -> list[Case]:
    """Every fault, in the table's order."""
    return [*trial_cases(), *run_cases(), *command_cases(), node_case()]


def choose(kinds: Sequence[str]) -> list[Case]:
    """The cases of some kinds; all if none is named.

    Raises:
        UnknownNameError: no such kind.
    """
    cases = all_cases()
    known = list(dict.fromkeys(case.kind for case in cases))
    for kind in kinds:
        if kind not in known:
            raise UnknownNameError("fault", kind, known)
    return [case for case in cases if not kinds or case.kind in kinds]


def case_of_file(path: Path) -> Case:
    """A case of somebody's own fault file: its faulty trials may end as they will, the others may not.

    Raises:
        UserError: it can't be read.
    """
    faults = read_faults(path, WORLD)
    return Case(
        kind="file",
        fault=f"the faults of {path.name}",
        play=partial(_play_file, faults),
        free=_places(faults),
        expected="nothing",
    )


def run_drill(cases: Sequence[Case], folder: Path, show: Callable[[Row], None] = lambda row: None) -> list[Row]:
    """Play faults one after another.

    Args:
        cases: the faults.
        folder: empty folder for runs and logs.
        show: told about each row.
    """
    from evalkit.pool.ray_session import ray_session

    rows = []
    ground = prepare_ground(folder)
    with marked_session() as mark:
        with ray_session(WORKERS):
            if not marked(mark):
                raise HarnessError("Ray runs here already, unmarked: the drill needs a process of its own")
            for case in cases:
                rows.append(_row(ground, case, mark))
                show(rows[-1])
        if rows and (left := all_left(mark)):  # Ray's own, which no single fault can be blamed for
            rows[-1] = replace(rows[-1], left=left, problems=(*rows[-1].problems, f"Ray left {', '.join(left)}"))
    return rows


def _row(ground: Ground, case: Case, mark: str) -> Row:
    started = time.monotonic()
    try:
        return judge(ground, case, case.play(ground, mark), time.monotonic() - started)
    except Exception as error:  # whatever it is, it belongs to this row, and the others are wanted all the same
        seconds = round(time.monotonic() - started, 1)
        problem = f"{type(error).__name__}: {error}"
        return Row(
            kind=case.kind,
            fault=case.fault,
            happened="the run broke",
            recorded="",
            others=0,
            others_planned=len(ground.reference.plan) - len(case.ends or {}),
            identical=False,
            left=crew_left(mark),
            seconds=seconds,
            problems=(problem,),
        )


def _play_file(faults: Faults, ground: Ground, mark: str) -> Played:
    return play_faults(faults, None, ground, mark, "file")


def _places(faults: Faults) -> tuple[Place, ...]:
    """The trials that a file's faults strike.

    Raises:
        UserError: one strikes no trial of the drill.
    """
    scenes = drill_scenes()
    places: list[Place] = []
    named = [(fault.task, fault.seed) for fault in faults.world.faults]
    named += [(fault.task, fault.seed) for fault in faults.policy]
    for where_task, seed in named:
        struck = [(task, seed) for task in TASKS if where_task in (None, task) and seed in scenes]
        if not struck:
            where = f"{where_task or 'any task'} seed {seed}"
            raise UserError(
                f"{where} isn't a trial of the drill: tasks {', '.join(TASKS)}, seeds {', '.join(map(str, scenes))}"
            )
        places += struck
    return tuple(dict.fromkeys(places))
