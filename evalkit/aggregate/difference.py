"""How far two sides are apart: difference of two means of rates, with an interval and a test.

The interval combines the two sides' own intervals (square-and-add, after Newcombe 1998), so that it has no zero width
and stays within -1 to 1; on shared scenes their correlation enters. docs/comparing.md has its coverage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evalkit.aggregate.pairs import (
    Pairs,
    Significance,
    fisher,
    mcnemar,
    stratified_mcnemar,
    stratified_unpaired,
)
from evalkit.aggregate.proportions import LEVEL, Estimate
from evalkit.aggregate.suite import Stratum, mean_estimate, standard_error


@dataclass(frozen=True, kw_only=True)
class Gap:
    """First minus second, as fractions from -1 to 1."""

    value: float
    low: float
    high: float
    level: float
    method: str
    test: Significance
    first: Estimate
    second: Estimate
    n_shared: int
    """Scenes compared in pairs; 0 if unpaired."""


@dataclass(frozen=True)
class Match:
    """One task on both sides. ``pairs`` is set if the sides met the same scenes; the strata then hold these alone."""

    first: Stratum
    second: Stratum
    pairs: Pairs | None = None

    @classmethod
    def of_pairs(cls, pairs: Pairs) -> Match:
        """The match of scenes that both sides met."""
        return cls(
            Stratum(pairs.both + pairs.first_only, pairs.n), Stratum(pairs.both + pairs.second_only, pairs.n), pairs
        )


def task_gap(match: Match, level: float = LEVEL) -> Gap | None:
    """Difference on one task, or None if a side has no trials."""
    if match.pairs is not None:
        test = mcnemar(match.pairs)
    elif match.first.trials and match.second.trials:
        successes = (match.first.successes, match.second.successes)
        test = fisher(successes, (match.first.trials, match.second.trials))
    else:
        return None
    return _gap([match], test, level)


def suite_gap(matches: Sequence[Match], level: float = LEVEL) -> Gap | None:
    """Difference of the means over tasks, or None if there are no tasks or a side has no trials of one.

    Paired if every task is; otherwise all tasks are taken as unpaired.
    """
    if not matches or any(0 in (match.first.trials, match.second.trials) for match in matches):
        return None
    paired = [match.pairs for match in matches if match.pairs is not None]
    if len(paired) == len(matches):
        return _gap(matches, stratified_mcnemar(paired), level)
    unpaired = [Match(match.first, match.second) for match in matches]
    counts = [(m.first.successes, m.first.trials, m.second.successes, m.second.trials) for m in unpaired]
    return _gap(unpaired, stratified_unpaired(counts), level)


def square_and_add(
    first: tuple[float, float, float], second: tuple[float, float, float], correlation: float = 0.0
) -> tuple[float, float]:
    """Interval of a difference from the two sides' (value, low, high) and the correlation of their errors."""
    value = first[0] - second[0]
    down, up = (first[0] - first[1], second[2] - second[0]), (first[2] - first[0], second[0] - second[1])
    low, high = (math.sqrt(max(0.0, a * a + b * b - 2 * correlation * a * b)) for a, b in (down, up))
    return max(-1.0, value - low), min(1.0, value + high)


def _gap(matches: Sequence[Match], test: Significance, level: float) -> Gap | None:
    firsts, seconds = [match.first for match in matches], [match.second for match in matches]
    first, second = mean_estimate(firsts, level=level), mean_estimate(seconds, level=level)
    if first is None or second is None:
        return None
    pairs = [match.pairs for match in matches if match.pairs is not None]
    low, high = square_and_add(
        (first.value, first.low, first.high),
        (second.value, second.low, second.high),
        _correlation(firsts, seconds, pairs),
    )
    return Gap(
        value=first.value - second.value,
        low=low,
        high=high,
        level=level,
        method="square-and-add, paired" if pairs else "square-and-add",
        test=test,
        first=first,
        second=second,
        n_shared=sum(found.n for found in pairs),
    )


def _correlation(firsts: Sequence[Stratum], seconds: Sequence[Stratum], pairs: Sequence[Pairs]) -> float:
    """Correlation of the two means' errors, from smoothed counts; 0 without pairs."""
    first, second = standard_error(firsts), standard_error(seconds)
    if not pairs or not first or not second:
        return 0.0
    covariance = math.fsum(found.smoothed_covariance() / found.n for found in pairs) / len(pairs) ** 2
    return max(-1.0, min(1.0, covariance / (first * second)))
