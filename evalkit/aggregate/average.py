"""The average of two configurations' means, with the covariance that comes from scenes they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalkit.aggregate.pairs import Pairs
from evalkit.aggregate.proportions import LEVEL, Estimate
from evalkit.aggregate.suite import Stratum, mean_estimate, standard_error


@dataclass(frozen=True, kw_only=True)
class Average:
    """Mean of two means over the same tasks."""

    estimate: Estimate
    standard_error: float
    covariance: float
    """Of the two means, as far as it comes from shared scenes; 0 if there are none."""
    n_shared: int
    """Scenes (task and seed) that both configurations met."""


def average_estimate(
    first: Sequence[Stratum],
    second: Sequence[Stratum],
    pairs: Sequence[Pairs | None],
    *,
    repeats: int = 1,
    level: float = LEVEL,
) -> Average | None:
    """Average of two configurations, from counts, or None if a task has no trials.

    A scene that is hard under one configuration may be hard under the other. Where both met the same seeds the two
    means' errors are then correlated, and the average is less certain than if they were independent.

    Args:
        first: trials by task under one configuration.
        second: the same tasks under the other.
        pairs: by task, outcomes on the scenes both met; None or no scenes: independent.
        repeats: trials made of each scene.
        level: confidence level.
    """
    covariance = 0.0
    for one, other, found in zip(first, second, pairs, strict=True):
        if found is not None and found.n:
            covariance += found.smoothed_covariance() * found.n / (one.trials * other.trials)
    covariance /= max(1, len(first)) ** 2
    strata = [*first, *second]
    # The mean over all strata is the mean of the two means; its variance lacks 2 covariance / 4.
    mean = mean_estimate(strata, repeats=repeats, level=level, added_variance=covariance / 2)
    error = standard_error(strata, repeats=repeats, added_variance=covariance / 2)
    if mean is None or error is None:
        return None
    n_shared = sum(found.n for found in pairs if found is not None)
    return Average(estimate=mean, standard_error=error, covariance=covariance * repeats, n_shared=n_shared)
