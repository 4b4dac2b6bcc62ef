"""Success rates with intervals. No trials, no number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

LEVEL = 0.95


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A rate and how well it is known. All values are fractions from 0 to 1."""

    value: float
    low: float
    high: float
    level: float
    """Confidence level of ``low`` to ``high``."""
    method: str
    n: int
    """Trials the value is made of."""
    n_missing: int = 0


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What a rate can still become: all missing trials fail, or all succeed. Not a confidence interval."""

    low: float
    high: float
    n_missing: int


def wilson(successes: float, trials: float, level: float = LEVEL) -> tuple[float, float]:
    """Wilson score interval of a proportion: never of zero width, never outside 0 to 1.

    Numbers of trials may be fractional (effective sizes), which is why this isn't SciPy's.

    Args:
        successes: from 0 to ``trials``.
        trials: more than 0.
        level: confidence level.

    Raises:
        ValueError: the counts make no sense.
    """
    if not (trials > 0 and 0 <= successes <= trials):
        raise ValueError(f"{successes} successes of {trials} trials isn't a proportion")
    z = NormalDist().inv_cdf((1 + level) / 2)
    rate = successes / trials
    scale = 1 + z**2 / trials
    centre = (rate + z**2 / (2 * trials)) / scale
    half_width = z / scale * math.sqrt(rate * (1 - rate) / trials + z**2 / (4 * trials**2))
    # Rounding would leave 1e-17 where the interval ends exactly at the boundary.
    low = 0.0 if successes == 0 else max(0.0, centre - half_width)
    high = 1.0 if successes == trials else min(1.0, centre + half_width)
    return low, high


def clopper_pearson(successes: int, trials: int, level: float = LEVEL) -> tuple[float, float]:
    """Exact interval of a proportion: covers at least ``level`` whatever the true rate, and is wider for it.

    Raises:
        ValueError: the counts make no sense.
    """
    if not (trials > 0 and 0 <= successes <= trials):
        raise ValueError(f"{successes} successes of {trials} trials isn't a proportion")
    from scipy.special import betaincinv  # here, so that reading results doesn't wait for SciPy

    tail = (1 - level) / 2
    low = float(betaincinv(successes, trials - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, trials - successes, 1 - tail)) if successes < trials else 1.0
    return low, high


def estimate(
    successes: int, trials: int, *, n_missing: int = 0, repeats: int = 1, level: float = LEVEL
) -> Estimate | None:
    """Rate with its Wilson interval, or None without trials.

    Args:
        successes: trials that succeeded.
        trials: trials scored.
        n_missing: trials planned but not scored.
        repeats: trials made of each scene. Repeats of one scene aren't independent, so the interval is that of
            ``trials / repeats`` trials: right if they always agree, too wide if they don't.
        level: confidence level.
    """
    if trials == 0:
        return None
    low, high = wilson(successes / repeats, trials / repeats, level)
    return Estimate(
        value=successes / trials, low=low, high=high, level=level, method="wilson", n=trials, n_missing=n_missing
    )
