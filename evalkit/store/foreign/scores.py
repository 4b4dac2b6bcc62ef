"""What a foreign result is: one rate per task, and what is known about it. Unknown facts are None, never a guess."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from evalkit.core.errors import UnknownNameError, UserError
from evalkit.core.tasks import TASKS

CONFIGS = ("demo_clean", "demo_randomized")
_TOLERANCE = 5e-4
"""Tools round rates to three or four decimals."""


@dataclass(frozen=True, kw_only=True)
class ImportedTask:
    """One task's result as a file states it."""

    task: str
    config: str | None
    """Task configuration, or None if the source doesn't name it."""
    rate: float
    """Success rate from 0 to 1, over the trials that ended without an error."""
    trials: int | None
    """Trials that the rate is made of, or None if the source doesn't say."""
    successes: int | None
    """None exactly if ``trials`` is."""
    errors: int = 0
    """Trials that ended in an error and aren't in ``trials``."""
    instruction_split: str | None = None
    """``"seen"`` or ``"unseen"``, or None if the source doesn't say."""
    source: str
    """File, relative to the path that was read."""


@dataclass(frozen=True, kw_only=True)
class ImportedScores:
    """Everything read from one path."""

    kind: str
    """Which tool's form it was read as."""
    path: str
    policy: str | None
    """Name of the policy and checkpoint as the source gives it, or None."""
    tasks: tuple[ImportedTask, ...]
    """By configuration and task; each pair once."""
    notes: tuple[str, ...]
    """What a reader must know before comparing, one line each."""


def canonical_task(name: str) -> str:
    """RoboTwin's file name of a task: ``"Blocks Ranking RGB"`` is ``"blocks_ranking_rgb"``.

    Raises:
        UnknownNameError: no such task; near names are suggested, none is taken.
    """
    cleaned = re.sub(r"[\s\-_]+", "_", name.strip().lower())
    if cleaned not in TASKS:
        raise UnknownNameError("task", name, TASKS)
    return cleaned


def collect(
    kind: str, path: str, tasks: Iterable[ImportedTask], *, policy: str | None = None, notes: Iterable[str] = ()
) -> ImportedScores:
    """Put a source's tasks together.

    Raises:
        UserError: there are none, or a task has two results under one configuration.
    """
    found: dict[tuple[str, str], ImportedTask] = {}
    for item in tasks:
        key = (item.config or "", item.task)
        if key in found:
            under = f" under {item.config}" if item.config else ""
            raise UserError(
                f"{path} holds two results for {item.task}{under} ({found[key].source} and {item.source}): "
                "give the path of the one that counts"
            )
        found[key] = item
    if not found:
        raise UserError(f"{path} holds no {kind} result")
    ordered = tuple(found[key] for key in sorted(found))
    return ImportedScores(kind=kind, path=path, policy=policy, tasks=ordered, notes=tuple(dict.fromkeys(notes)))


def with_stated(scores: ImportedScores, *, config: str | None = None, trials: int | None = None) -> ImportedScores:
    """The scores with what a person states about them, where the source is silent.

    Args:
        scores: as read.
        config: the configuration.
        trials: trials per task.

    Raises:
        UnknownNameError: no such configuration.
        UserError: the source says otherwise, or a rate can't be made of so many trials.
    """
    notes = list(scores.notes)
    tasks = scores.tasks
    if config is not None:
        if config not in CONFIGS:
            raise UnknownNameError("configuration", config, CONFIGS)
        other = next((item for item in tasks if item.config not in (None, config)), None)
        if other:
            raise UserError(f"{other.source} was measured under {other.config}: leave --config {config} out")
        if any(item.config is None for item in tasks):
            notes.append(f"{config} is stated by whoever imported the result, not by the source")
        tasks = tuple(replace(item, config=config) for item in tasks)
    if trials is not None:
        if any(item.trials is None for item in tasks):
            notes.append(f"{trials} trials per task is stated by whoever imported the result, not by the source")
        tasks = tuple(_with_trials(item, trials) for item in tasks)
    return replace(scores, tasks=tasks, notes=tuple(notes))


def successes_of(rate: float, trials: int) -> int | None:
    """Number of successes that gives a rate, or None if no whole number does."""
    successes = math.floor(rate * trials + 0.5)
    return successes if abs(successes / trials - rate) <= _TOLERANCE else None


def check_rate(value: object, where: str) -> float:
    """A success rate from 0 to 1.

    Raises:
        UserError: it isn't one (a percentage, NaN, a text).
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise UserError(f"{where} has the success rate {value!r}, which isn't a fraction from 0 to 1")
    return float(value)


def _with_trials(item: ImportedTask, trials: int) -> ImportedTask:
    if trials < 1:
        raise UserError(f"{trials} trials per task make no rate: give --trials 1 or more")
    if item.trials is not None and item.trials != trials:
        raise UserError(f"{item.source} says {item.trials} trials of {item.task}: leave --trials {trials} out")
    successes = successes_of(item.rate, trials)
    if successes is None:
        raise UserError(f"{item.source}: {item.rate} of {item.task} isn't a whole number of {trials} trials")
    return replace(item, rate=successes / trials, trials=trials, successes=successes)
