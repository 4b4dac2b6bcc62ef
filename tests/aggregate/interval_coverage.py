"""How often the intervals hold the truth, by simulation.

``python tests/aggregate/interval_coverage.py`` prints the table of ``docs/comparing.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evalkit.aggregate.average import average_estimate
from evalkit.aggregate.difference import Match, suite_gap, task_gap
from evalkit.aggregate.pairs import Pairs
from evalkit.aggregate.suite import Stratum, mean_estimate
from evalkit.aggregate.tasks_like_these import tasks_like_these

Rates = np.ndarray


def spread(tasks: int) -> Rates:
    """Rates evenly from 2 to 98 %."""
    return np.linspace(0.02, 0.98, tasks)


def high(tasks: int) -> Rates:
    """Rates evenly from 60 to 99 %."""
    return np.linspace(0.60, 0.99, tasks)


def mean_coverage(rates: Rates, trials: int, draws: int, seed: int = 0) -> float:
    """``mean_estimate`` against the mean of the true rates: these tasks."""
    rng = np.random.default_rng(seed)
    hits = 0
    for successes in rng.binomial(trials, rates, (draws, len(rates))):
        found = mean_estimate([Stratum(int(k), trials) for k in successes])
        assert found is not None
        hits += found.low <= rates.mean() <= found.high
    return hits / draws


def joint_probabilities(first: Rates, second: Rates, strength: float) -> np.ndarray:
    """Cells (both, first only, second only, neither) of each task, from independent (0) to as alike as can be (1)."""
    both = (1 - strength) * first * second + strength * np.minimum(first, second)
    return np.stack([both, first - both, second - both, 1 - first - second + both], axis=1)


def draw_pairs(rng: Any, cells: np.ndarray, trials: int) -> list[Pairs]:
    return [Pairs(*map(int, rng.multinomial(trials, np.clip(task, 0, 1)))) for task in cells]


def paired_coverage(
    first: Rates, second: Rates, trials: int, strength: float, draws: int, seed: int = 0
) -> tuple[float, float]:
    """Coverage of ``suite_gap`` on shared scenes, and the share of p < 0.05."""
    rng = np.random.default_rng(seed)
    cells, truth = joint_probabilities(first, second, strength), float(np.mean(first - second))
    hits = found_different = 0
    for _ in range(draws):
        gap = suite_gap([Match.of_pairs(pairs) for pairs in draw_pairs(rng, cells, trials)])
        assert gap is not None
        hits += gap.low <= truth <= gap.high
        found_different += gap.test.p < 0.05
    return hits / draws, found_different / draws


def unpaired_coverage(
    first: Rates, second: Rates, trials: tuple[int, int], draws: int, seed: int = 0
) -> tuple[float, float]:
    """Coverage of ``suite_gap`` on different scenes, and the share of p < 0.05."""
    rng = np.random.default_rng(seed)
    truth = float(np.mean(first - second))
    hits = found_different = 0
    a = rng.binomial(trials[0], first, (draws, len(first)))
    b = rng.binomial(trials[1], second, (draws, len(second)))
    for row_a, row_b in zip(a, b, strict=True):
        matches = [
            Match(Stratum(int(k), trials[0]), Stratum(int(m), trials[1])) for k, m in zip(row_a, row_b, strict=True)
        ]
        gap = suite_gap(matches)
        assert gap is not None
        hits += gap.low <= truth <= gap.high
        found_different += gap.test.p < 0.05
    return hits / draws, found_different / draws


def task_coverage(first: float, second: float, trials: int, strength: float, draws: int, seed: int = 0) -> float:
    """Coverage of ``task_gap`` on one task's shared scenes."""
    rng = np.random.default_rng(seed)
    cells = joint_probabilities(np.array([first]), np.array([second]), strength)
    hits = 0
    for _ in range(draws):
        gap = task_gap(Match.of_pairs(draw_pairs(rng, cells, trials)[0]))
        assert gap is not None
        hits += gap.low <= first - second <= gap.high
    return hits / draws


def average_coverage(first: Rates, second: Rates, trials: int, strength: float, draws: int, seed: int = 0) -> float:
    """``average_estimate`` with the covariance of shared scenes."""
    rng = np.random.default_rng(seed)
    cells, truth = joint_probabilities(first, second, strength), float(np.mean(first + second)) / 2
    hits = 0
    for _ in range(draws):
        matches = [Match.of_pairs(pairs) for pairs in draw_pairs(rng, cells, trials)]
        found = average_estimate([m.first for m in matches], [m.second for m in matches], [m.pairs for m in matches])
        assert found is not None
        hits += found.estimate.low <= truth <= found.estimate.high
    return hits / draws


def population_coverage(
    tasks: int, trials: int, shape: tuple[float, float], draws: int, resamples: int = 2000, seed: int = 0
) -> float:
    """``tasks_like_these`` against the mean of the population the tasks were drawn from, Beta(``shape``)."""
    rng = np.random.default_rng(seed)
    truth = shape[0] / (shape[0] + shape[1])
    hits = 0
    for index in range(draws):
        rates = rng.binomial(trials, rng.beta(*shape, tasks)) / trials
        found = tasks_like_these(list(rates), draws=resamples, seed=index)
        assert found is not None
        hits += found.low <= truth <= found.high
    return hits / draws


def cases(draws: int) -> Sequence[tuple[str, Callable[[], float]]]:
    """What the table holds: a description, and how to get its coverage."""
    s12, s50, h50 = spread(12), spread(50), high(50)
    fewer = draws // 4  # the bootstrap takes its time
    return [
        ("mean, these tasks, 2 to 98 %, 50 x 100", lambda: mean_coverage(s50, 100, draws)),
        ("mean, these tasks, 60 to 99 %, 50 x 100", lambda: mean_coverage(h50, 100, draws)),
        ("mean, these tasks, 2 to 98 %, 12 x 5", lambda: mean_coverage(s12, 5, draws)),
        ("average, independent, 50 x 100", lambda: average_coverage(h50, s50, 100, 0.0, draws)),
        ("average, scenes alike, 50 x 100", lambda: average_coverage(h50, h50 - 0.3, 100, 0.8, draws)),
        ("difference, paired, equal policies, 50 x 100", lambda: paired_coverage(s50, s50, 100, 0.5, draws)[0]),
        ("difference, paired, 5 points apart, 50 x 100", lambda: paired_coverage(h50, h50 - 0.05, 100, 0.5, draws)[0]),
        ("difference, paired, scenes unrelated, 50 x 100", lambda: paired_coverage(h50, h50 - 0.3, 100, 0.0, draws)[0]),
        ("difference, paired, 12 x 5", lambda: paired_coverage(s12, s12, 5, 0.5, draws)[0]),
        ("difference, unpaired, 100 against 100, 50 tasks", lambda: unpaired_coverage(h50, s50, (100, 100), draws)[0]),
        ("difference, unpaired, 50 against 100, 50 tasks", lambda: unpaired_coverage(s50, s50, (50, 100), draws)[0]),
        ("difference, unpaired, 5 against 100, 12 tasks", lambda: unpaired_coverage(s12, s12, (5, 100), draws)[0]),
        ("difference on one task, paired, 60 and 50 %, 100", lambda: task_coverage(0.6, 0.5, 100, 0.5, draws)),
        ("difference on one task, paired, 95 and 90 %, 100", lambda: task_coverage(0.95, 0.9, 100, 0.5, draws)),
        ("mean, tasks like these, Beta(1, 1), 50 x 100", lambda: population_coverage(50, 100, (1, 1), fewer)),
        ("mean, tasks like these, Beta(0.6, 1.4), 50 x 100", lambda: population_coverage(50, 100, (0.6, 1.4), fewer)),
        ("mean, tasks like these, Beta(4, 1), 50 x 100", lambda: population_coverage(50, 100, (4, 1), fewer)),
        ("mean, tasks like these, Beta(1, 1), 12 x 5", lambda: population_coverage(12, 5, (1, 1), fewer)),
        ("mean, tasks like these, Beta(1, 1), 8 x 100", lambda: population_coverage(8, 100, (1, 1), fewer)),
        ("share of p < 0.05, paired, equal policies, 50 x 100", lambda: paired_coverage(s50, s50, 100, 0.5, draws)[1]),
        ("share of p < 0.05, paired, equal policies, 12 x 5", lambda: paired_coverage(s12, s12, 5, 0.5, draws)[1]),
        ("share of p < 0.05, unpaired, equal, 50 x 100", lambda: unpaired_coverage(s50, s50, (100, 100), draws)[1]),
        ("share of p < 0.05, unpaired, 5 against 100", lambda: unpaired_coverage(s12, s12, (5, 100), draws)[1]),
    ]


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    for name, measure in cases(number):
        print(f"| {name} | {100 * measure():.1f} |", flush=True)
