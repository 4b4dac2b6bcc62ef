"""Scores over tasks: the mean of the tasks' rates, each task weighing the same, with an interval.

The interval answers "how well is the mean over *these* tasks known?"; docs/decisions/0002-intervals.md says how it is
made, and why so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from evalkit.aggregate.proportions import LEVEL, Bounds, Estimate, wilson

METHOD = "wilson, effective size"


@dataclass(frozen=True)
class Stratum:
    """Trials of one task under one configuration."""

    successes: int
    trials: int
    missing: int = 0
    """Planned trials that weren't scored."""


def mean_estimate(
    strata: Sequence[Stratum], *, repeats: int = 1, level: float = LEVEL, added_variance: float = 0.0
) -> Estimate | None:
    """Mean of the strata's rates, or None if there are no strata or one of them has no trials.

    Args:
        strata: trials by task (and configuration); all weigh the same whatever their number of trials.
        repeats: trials made of each scene, see ``evalkit.aggregate.proportions.estimate``.
        level: confidence level.
        added_variance: of the mean, beside that of independent strata: from covariances, so it may be negative.
    """
    if not strata or any(stratum.trials == 0 for stratum in strata):
        return None
    rates = [Fraction(stratum.successes, stratum.trials) for stratum in strata]
    value = sum(rates, Fraction(0)) / len(rates)
    size = _effective_size(strata, added_variance) / repeats
    low, high = wilson(float(value) * size, size, level)
    return Estimate(
        value=float(value),
        low=low,
        high=high,
        level=level,
        method=METHOD,
        n=sum(stratum.trials for stratum in strata),
        n_missing=sum(stratum.missing for stratum in strata),
    )


def standard_error(strata: Sequence[Stratum], *, repeats: int = 1, added_variance: float = 0.0) -> float | None:
    """Stratified standard error of ``mean_estimate``'s value; never 0."""
    if not strata or any(stratum.trials == 0 for stratum in strata):
        return None
    return math.sqrt((_variance(strata) + added_variance) * repeats)


def pooled(strata: Sequence[Stratum]) -> tuple[int, int]:
    """Successes and trials of all strata together: the micro average's counts."""
    return sum(stratum.successes for stratum in strata), sum(stratum.trials for stratum in strata)


def bounds(strata: Sequence[Stratum]) -> Bounds | None:
    """What the mean can still become, or None if a stratum has no planned trials."""
    planned = [stratum.trials + stratum.missing for stratum in strata]
    if not strata or 0 in planned:
        return None
    pairs = list(zip(strata, planned, strict=True))
    low = sum((Fraction(stratum.successes, n) for stratum, n in pairs), Fraction(0))
    high = sum((Fraction(stratum.successes + stratum.missing, n) for stratum, n in pairs), Fraction(0))
    return Bounds(
        low=float(low / len(pairs)),
        high=float(high / len(pairs)),
        n_missing=sum(stratum.missing for stratum in strata),
    )


def _smoothed(stratum: Stratum) -> float:
    # One success and one failure more. Only for variances: 5 of 5 doesn't mean that failure is impossible.
    return (stratum.successes + 1) / (stratum.trials + 2)


def _variance(strata: Sequence[Stratum]) -> float:
    terms = (_smoothed(stratum) * (1 - _smoothed(stratum)) / stratum.trials for stratum in strata)
    return math.fsum(terms) / len(strata) ** 2


def _effective_size(strata: Sequence[Stratum], added_variance: float) -> float:
    """Number of trials of one task that would know its rate as well as the strata know their mean."""
    mean = math.fsum(_smoothed(stratum) for stratum in strata) / len(strata)
    return mean * (1 - mean) / (_variance(strata) + added_variance)
