"""A row of the drill's table: one fault, what became of it, and whether everything else came out as without it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from evalkit.drill.ground import Ground, essence, key_of, recorded, table
from evalkit.store.run import Run

Place = tuple[str, int]
"""Task and seed."""


@dataclass(frozen=True, kw_only=True)
class Played:
    """A fault that was played."""

    run: Run
    happened: str
    """What was seen, for people."""
    problems: tuple[str, ...] = ()
    """What went otherwise than promised, if the play itself could tell."""
    left: tuple[str, ...] = ()
    """Processes left behind."""
    undisturbed: Run | None = None
    """The same run without the fault, if it isn't the ground's."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A fault of the drill."""

    kind: str
    """Its word for ``--only``."""
    fault: str
    """What goes wrong, for people."""
    play: Callable[[Ground, str], Played]
    """Ground and mark of the session's processes -> what was played."""
    ends: Mapping[Place, str] | None = None
    """Trials that can't end as without the fault -> how they must: outcome and kind of error."""
    free: tuple[Place, ...] = ()
    """Trials that may end in any way."""
    expected: str = ""
    """For a fault that leaves no such trial: what is recorded of it, for people."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """What the table says of one fault."""

    kind: str
    fault: str
    happened: str
    recorded: str
    others: int
    """Trials without the fault that have a score."""
    others_planned: int
    identical: bool
    """Whether table and trials are those of the undisturbed run, without trials that can't end as there."""
    left: tuple[str, ...]
    seconds: float
    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether everything is as promised."""
        return not self.problems


def judge(ground: Ground, case: Case, played: Played, seconds: float) -> Row:
    """Compare what was played with the undisturbed run."""
    run, ends = played.run, dict(case.ends or {}) | dict.fromkeys(case.free, "")
    faulty = {key_of(run.plan, *place): expected for place, expected in ends.items()}
    records = run.records()
    others = [record for key, record in records.items() if key not in faulty]
    finished = sum(record.outcome.is_scored for record in others)
    planned = len(run.plan) - len(faulty)
    identical = _identical(played.undisturbed or ground.reference, run, faulty)
    problems = list(played.problems)
    if finished != planned:
        problems.append(f"{planned - finished} trials without a fault have no score")
    if not identical:
        problems.append("the table isn't the undisturbed run's")
    if sum(record.outcome.is_scored for record in run.history()) > sum(r.outcome.is_scored for r in records.values()):
        problems.append("a trial was recorded twice")
    for key, expected in faulty.items():
        seen = recorded([records[key]]) if key in records else "nothing"
        if expected and seen != expected:
            problems.append(f"recorded as {seen} instead of {expected}")
    if played.left:
        problems.append(f"left behind: {', '.join(played.left)}")
    return Row(
        kind=case.kind,
        fault=case.fault,
        happened=played.happened,
        recorded=recorded([records[key] for key in faulty if key in records]) or case.expected or "nothing",
        others=finished,
        others_planned=planned,
        identical=identical,
        left=played.left,
        seconds=round(seconds, 1),
        problems=tuple(problems),
    )


def _identical(undisturbed: Run, run: Run, faulty: Collection[str]) -> bool:
    if essence(run, faulty) != essence(undisturbed, faulty):
        return False
    folder = run.folder.with_name(f"{run.folder.name}-compared")
    return table(run, faulty, folder / "this") == table(undisturbed, faulty, folder / "undisturbed")
