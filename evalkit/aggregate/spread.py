"""Run-to-run spread against what chance alone gives. More spread means that something differs that nobody recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Standard deviation of repeated scores beside the one that independent trials would give. Fractions."""

    runs: int
    mean: float
    observed: float
    """Standard deviation of the scores."""
    expected: float
    """Root mean square of the scores' own standard errors."""
    p: float
    """Probability of at least this spread if trials were independent: chi-square, ``runs - 1`` degrees of freedom."""

    @property
    def ratio(self) -> float:
        """Observed over expected; about 1 if nothing else varies."""
        return self.observed / self.expected


def run_spread(scores: Sequence[float], standard_errors: Sequence[float]) -> Spread | None:
    """Spread of the same evaluation done several times, or None for fewer than two.

    On the same scenes independent trials spread less than their binomial standard errors, since the scenes' own
    difficulty doesn't vary: the test then errs on the side of saying nothing.

    Args:
        scores: mean of each run.
        standard_errors: binomial (stratified) standard error of each, more than 0.
    """
    if len(scores) < 2:
        return None
    from scipy.special import gammaincc  # here, so that reading results doesn't wait for SciPy

    expected = math.sqrt(fmean(error**2 for error in standard_errors))
    observed = stdev(scores)
    freedom = len(scores) - 1
    statistic = freedom * (observed / expected) ** 2
    return Spread(
        runs=len(scores),
        mean=fmean(scores),
        observed=observed,
        expected=expected,
        p=float(gammaincc(freedom / 2, statistic / 2)),
    )


def repeat_spread(tasks: Mapping[str, Sequence[Sequence[bool]]]) -> Spread | None:
    """Spread over the repeats of one run, or None for fewer than two.

    The suite score of each repeat is one run. The expected spread is that of independent trials on these scenes: a
    scene on which the repeats always agree adds nothing. It is estimated from the repeats themselves, so the test says
    whether scenes go up and down *together*, as a shared fault would make them.

    Args:
        tasks: task -> scenes -> outcome of each repeat; the same number of repeats everywhere.

    Raises:
        ValueError: scenes differ in their number of repeats.
    """
    repeats = {len(outcomes) for scenes in tasks.values() for outcomes in scenes}
    if len(repeats) > 1:
        raise ValueError(
            f"scenes have {' or '.join(map(str, sorted(repeats)))} repeats: they must have the same number"
        )
    if not repeats or (r := repeats.pop()) < 2:
        return None
    scores = [fmean(fmean(scene[index] for scene in scenes) for scenes in tasks.values()) for index in range(r)]
    variance = 0.0
    for scenes in tasks.values():
        within = [fmean(scene) * (1 - fmean(scene)) * r / (r - 1) for scene in scenes]
        variance += math.fsum(within) / len(scenes) ** 2
    error = math.sqrt(variance) / len(tasks)
    return run_spread(scores, [error] * r) if error else None
