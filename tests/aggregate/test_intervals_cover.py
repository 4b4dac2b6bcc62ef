"""Coverage by simulation; ``interval_coverage.py`` beside this file prints the table of docs/comparing.md."""

from __future__ import annotations

import pytest
from interval_coverage import (
    average_coverage,
    high,
    mean_coverage,
    paired_coverage,
    population_coverage,
    spread,
    unpaired_coverage,
)

from evalkit.aggregate.average import average_estimate
from evalkit.aggregate.difference import Match, square_and_add, suite_gap, task_gap
from evalkit.aggregate.pairs import Pairs
from evalkit.aggregate.suite import Stratum, mean_estimate

S, H = spread(50), high(50)
FULL = {
    "mean": lambda: mean_coverage(H, 100, 2000),
    "average of shared scenes": lambda: average_coverage(H, H - 0.3, 100, 0.8, 1200, seed=2),
    "paired difference": lambda: paired_coverage(H, H - 0.05, 100, 0.5, 1200, seed=1)[0],
    "unpaired difference": lambda: unpaired_coverage(H, S, (100, 100), 2000)[0],
    "tasks like these": lambda: population_coverage(50, 100, (1, 1), 1200, resamples=1000),
}


@pytest.mark.parametrize("what", FULL)
def test_95_percent_intervals_of_a_full_run_cover_94_to_96_percent(what: str) -> None:
    assert 0.94 <= FULL[what]() <= 0.96


def test_intervals_of_few_trials_cover_no_less() -> None:
    s = spread(12)
    assert mean_coverage(s, 5, 1000) >= 0.95
    assert paired_coverage(s, s, 5, 0.5, 1000)[0] >= 0.95
    assert unpaired_coverage(s, s, (5, 100), 1000)[0] >= 0.95
    assert population_coverage(12, 5, (1, 1), 1000, resamples=1000) >= 0.94


def test_equal_policies_are_told_apart_in_one_of_twenty_comparisons() -> None:
    assert unpaired_coverage(S, S, (100, 100), 2000)[1] == pytest.approx(0.05, abs=0.012)
    assert paired_coverage(S, S, 100, 0.5, 1500)[1] == pytest.approx(0.05, abs=0.015)


def test_pairing_narrows_the_interval_if_scenes_decide() -> None:
    alike = [Match.of_pairs(Pairs(50, 5, 5, 40))] * 10
    apart = [Match(match.first, match.second) for match in alike]
    paired, unpaired = suite_gap(alike), suite_gap(apart)
    assert paired is not None
    assert unpaired is not None
    assert paired.value == unpaired.value == 0
    assert paired.high - paired.low < 0.6 * (unpaired.high - unpaired.low)


def test_a_difference_stays_within_its_bounds_and_has_a_width() -> None:
    gap = task_gap(Match.of_pairs(Pairs(0, 5, 0, 0)))
    assert gap is not None
    assert 0 < gap.low < gap.value == gap.high == 1
    assert square_and_add((0.5, 0.4, 0.6), (0.5, 0.4, 0.6), 1.0) == (0.0, 0.0)
    same = task_gap(Match.of_pairs(Pairs(100, 0, 0, 0)))
    assert same is not None
    assert same.low < 0 < same.high


def test_no_trials_no_difference() -> None:
    assert task_gap(Match(Stratum(0, 0), Stratum(3, 5))) is None
    assert suite_gap([]) is None
    assert suite_gap([Match(Stratum(1, 2), Stratum(0, 0))]) is None


def test_average_takes_the_covariance_of_shared_scenes() -> None:
    alike, opposed = Pairs(50, 0, 0, 50), Pairs(0, 50, 50, 0)
    strata = [Stratum(50, 100)] * 10
    plain = average_estimate(strata, strata, [None] * 10)
    together = average_estimate(strata, strata, [alike] * 10)
    against = average_estimate(strata, strata, [opposed] * 10)
    assert plain is not None
    assert together is not None
    assert against is not None
    assert against.standard_error < plain.standard_error < together.standard_error
    assert together.standard_error == pytest.approx(plain.standard_error * 2**0.5, rel=0.01)
    assert (plain.covariance, plain.n_shared, together.n_shared) == (0.0, 0, 1000)
    assert together.covariance == pytest.approx(0.25 / 100 / 10, rel=0.05)
    assert against.estimate.low < against.estimate.value < against.estimate.high
    assert plain.estimate == mean_estimate([*strata, *strata])


def test_average_of_4500_and_4403_of_5000() -> None:
    clean, randomized = [Stratum(90, 100)] * 50, [Stratum(88, 100)] * 47 + [Stratum(89, 100)] * 3
    found = average_estimate(clean, randomized, [None] * 50)
    assert found is not None
    assert f"{100 * found.estimate.value:.2f}" == "89.03"
