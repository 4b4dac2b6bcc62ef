"""Two sides on the same scenes: discordant pairs, exact and stratified tests, covariance.

"First" and "second" are the two sides: two policies under one configuration, or one policy under two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

EXACT_BELOW = 25
"""Number of discordant pairs from which the normal approximation of the stratified test is used."""


@dataclass(frozen=True)
class Pairs:
    """Scenes of one task that both sides met, by outcome."""

    both: int
    """Scenes on which both succeeded."""
    first_only: int
    second_only: int
    neither: int

    @property
    def n(self) -> int:
        """Number of scenes."""
        return self.both + self.first_only + self.second_only + self.neither

    @property
    def discordant(self) -> int:
        """Scenes on which one side succeeded and the other didn't."""
        return self.first_only + self.second_only

    def smoothed_covariance(self) -> float:
        """Covariance of the two sides' outcomes on one scene, with half a scene added to each of the four cells.

        The same as one success and one failure more on each side, as ``evalkit.aggregate.suite`` does for variances.
        """
        n = self.n + 2
        first = (self.both + self.first_only + 1) / n
        second = (self.both + self.second_only + 1) / n
        return (self.both + 0.5) / n - first * second


@dataclass(frozen=True, kw_only=True)
class Significance:
    """A two-sided test of "both sides succeed equally often"."""

    p: float
    z: float | None
    """Standard normal statistic, positive if the first side is ahead; None for exact tests of one task."""
    name: str


def pair_up(first: Mapping[Any, bool], second: Mapping[Any, bool]) -> Pairs:
    """Outcomes by scene on each side -> pairs over the scenes that both met."""
    shared = first.keys() & second.keys()
    both = sum(first[scene] and second[scene] for scene in shared)
    first_only = sum(first[scene] and not second[scene] for scene in shared)
    second_only = sum(second[scene] and not first[scene] for scene in shared)
    return Pairs(both, first_only, second_only, len(shared) - both - first_only - second_only)


def mcnemar(pairs: Pairs) -> Significance:
    """Exact McNemar test: given that a pair is discordant, either side is as likely to be the better one.

    E.g. 12 against 3 gives p = 0.0352.
    """
    return Significance(p=_sign_test(pairs.first_only, pairs.second_only), z=None, name="McNemar, exact")


def stratified_mcnemar(strata: Sequence[Pairs]) -> Significance:
    """McNemar's test with tasks as strata, in the form of Cochran, Mantel and Haenszel.

    Each task may have its own difficulty; the hypothesis is that on none of them one side is better. The statistic
    is ``sum(b - c) / sqrt(sum(b + c))`` over the tasks. With fewer than ``EXACT_BELOW`` discordant pairs in all, the
    p-value is the exact one, which the hypothesis makes binomial.
    """
    ahead, behind = sum(pairs.first_only for pairs in strata), sum(pairs.second_only for pairs in strata)
    z = (ahead - behind) / math.sqrt(ahead + behind) if ahead + behind else 0.0
    if ahead + behind < EXACT_BELOW:
        return Significance(p=_sign_test(ahead, behind), z=z, name="McNemar over tasks, exact")
    return Significance(p=two_sided(z), z=z, name="McNemar over tasks (Cochran-Mantel-Haenszel)")


def fisher(successes: tuple[int, int], trials: tuple[int, int]) -> Significance:
    """Fisher's exact test of two unpaired rates; conservative for few trials."""
    from scipy.stats import fisher_exact  # here, so that reading results doesn't wait for SciPy

    table = np.array([[k, n - k] for k, n in zip(successes, trials, strict=True)])
    return Significance(p=min(1.0, float(fisher_exact(table).pvalue)), z=None, name="Fisher, exact")


def stratified_unpaired(counts: Iterable[tuple[int, int, int, int]]) -> Significance:
    """Cochran-Mantel-Haenszel test of two unpaired sides with tasks as strata, without continuity correction.

    Args:
        counts: (first's successes, first's trials, second's successes, second's trials) of each task.
    """
    excess = variance = 0.0
    for first, first_n, second, second_n in counts:
        n, successes = first_n + second_n, first + second
        excess += first - first_n * successes / n
        if n > 1:
            variance += first_n * second_n * successes * (n - successes) / (n**2 * (n - 1))
    z = excess / math.sqrt(variance) if variance else 0.0
    return Significance(p=two_sided(z), z=z, name="Cochran-Mantel-Haenszel, unpaired")


def two_sided(z: float) -> float:
    """Two-sided p-value of a standard normal statistic; exact far out, where ``1 - cdf`` would be 0."""
    return math.erfc(abs(z) / math.sqrt(2))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given.

    Whoever rejects those up to alpha rejects any true hypothesis with at most that probability, however the tests
    depend on each other.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def _sign_test(ahead: int, behind: int) -> float:
    """Two-sided exact p-value of ``ahead`` heads and ``behind`` tails of a fair coin."""
    n = ahead + behind
    tail = sum(math.comb(n, k) for k in range(min(ahead, behind) + 1))
    return float(min(1.0, 2 * tail / 2**n))
