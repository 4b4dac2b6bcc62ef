"""What the fake simulator simulates: which seeds are valid, where the goal lies, and what goes wrong when."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evalkit.core.rng import stream

FaultKind = Literal["crash", "hang", "exception", "nan_state", "black_frame", "slow", "memory", "unstable"]
AT_RESET = -1


def always(seed: int) -> bool:
    """Every seed."""
    return True


def never(seed: int) -> bool:
    """No seed."""
    return False


def unstable_by_sevenths(seed: int) -> bool:
    """Seeds with remainder 1 by seven: every seventh scene doesn't settle."""
    return seed % 7 == 1


def unsolvable_by_sevenths(seed: int) -> bool:
    """Seeds with remainder 4 by seven, and 100010 to 100030: the expert fails."""
    return seed % 7 == 4 or 100010 <= seed <= 100030


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something that goes wrong in one scene at one moment.

    ``crash`` sends ``signal`` to the simulator's own process, ``hang`` ignores SIGTERM and sleeps, ``exception``
    raises as task code would, ``nan_state`` and ``black_frame`` spoil an observation, ``slow`` sleeps ``slow_s``,
    ``memory`` fills memory up to a limit that the process sets itself, ``unstable`` lets the scene not settle.
    """

    kind: FaultKind
    seed: int
    step: int
    """Strikes when this many actions have been executed; ``AT_RESET`` for while the scene is built."""
    times: int | None = None
    """Strikes so often over all processes (needs ``FakeWorld.memory``), or None for always."""
    signal: int = signal.SIGSEGV
    slow_s: float = 1.0
    task: str | None = None
    """The scene's task; None for whichever has the seed."""


@dataclass(frozen=True, kw_only=True)
class FakeWorld:
    """A world in which arm joint 0 must reach a goal that depends on task and seed alone."""

    unstable: Callable[[int], bool] = never
    """Seed -> whether its scene fails the stability test."""
    unsolvable: Callable[[int], bool] = never
    """Seed -> whether the expert fails."""
    broken: str = ""
    """If set, building any scene raises a task code error with this text."""
    no_start: str = ""
    """If set, the simulator's process ends at its start with this as its last words."""
    faults: tuple[Fault, ...] = ()
    memory: Path | None = None
    """Folder in which faults with a limited number of strikes leave their marks."""
    success_after_steps: int = 3
    """Success isn't judged before so many actions."""
    step_s: float = 0.0
    """Wall time an action takes."""
    setup_s: float = 0.0
    """Wall time a reset takes."""

    def goal_rad(self, task: str, seed: int) -> float:
        """Target of left arm joint 0, rad, between 0.3 and 1, rounded to 3 decimals."""
        return round(float(stream(seed, "fake-goal", task).uniform(0.3, 1.0)), 3)

    def fault(self, kind: FaultKind, seed: int, step: int, task: str = "") -> Fault | None:
        """The fault of this kind that strikes now, if one does; counts the strike."""
        for fault in self.faults:
            here = (fault.kind, fault.seed, fault.step) == (kind, seed, step) and fault.task in (None, task)
            name = f"{fault.task or 'any'}-{fault.kind}-{fault.seed}-{fault.step}"
            if here and strikes(name, fault.times, self.memory):
                return fault
        return None


def strikes(name: str, times: int | None, memory: Path | None) -> bool:
    """Whether a fault strikes once more; counts it over all processes.

    Args:
        name: the fault's own name.
        times: how often it strikes; None for always.
        memory: folder in which strikes leave their marks.

    Raises:
        ValueError: a limited number of strikes, and no folder.
    """
    if times is None:
        return True
    if memory is None:
        raise ValueError("a fault with a limited number of strikes needs a folder for its marks: set memory")
    for number in range(times):
        try:
            os.close(os.open(memory / f"{name}-{number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        return True
    return False


SEVENTHS = FakeWorld(unstable=unstable_by_sevenths, unsolvable=unsolvable_by_sevenths)
"""Rejects two seeds of seven and a stretch of 21; the 100th accepted seed from 100000 is 100159."""
