from __future__ import annotations

import numpy as np
import pytest

from evalkit.aggregate.proportions import wilson
from evalkit.aggregate.suite import Stratum, bounds, mean_estimate, pooled, standard_error


def test_macro_and_micro_differ_when_trials_do() -> None:
    strata = [Stratum(80, 100), Stratum(45, 50)]
    macro = mean_estimate(strata)
    assert macro is not None
    assert macro.value == 0.85
    successes, trials = pooled(strata)
    assert successes / trials == pytest.approx(0.8333, abs=5e-5)


def test_average_is_made_of_counts_not_of_rounded_means() -> None:
    clean, randomized = [Stratum(90, 100)] * 50, [Stratum(88, 100)] * 47 + [Stratum(89, 100)] * 3
    found = [mean_estimate(strata) for strata in (clean, randomized, clean + randomized)]
    assert [f"{100 * estimate.value:.2f}" for estimate in found if estimate] == ["90.00", "88.06", "89.03"]


def test_one_task_gives_its_wilson_interval() -> None:
    found = mean_estimate([Stratum(45, 50)])
    assert found is not None
    assert (found.low, found.high) == pytest.approx(wilson(45, 50))


def test_equal_tasks_give_the_pooled_wilson_interval() -> None:
    found = mean_estimate([Stratum(0, 5)] * 12)
    assert found is not None
    assert (found.low, found.high) == pytest.approx(wilson(0, 60))
    assert found.low == 0.0


@pytest.mark.parametrize("rates", [(0, 0), (5, 5), (0, 5), (5, 0, 0, 0)])
def test_width_is_never_zero_when_every_task_is_all_or_nothing(rates: tuple[int, ...]) -> None:
    strata = [Stratum(successes, 5) for successes in rates] * 6
    found = mean_estimate(strata)
    assert found is not None
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.high - found.low > 0.04
    error = standard_error(strata)
    assert error is not None
    assert error > 0


def test_standard_error_of_fifty_tasks() -> None:
    rng = np.random.default_rng(1)
    successes = rng.integers(30, 100, 50)
    plain = np.sqrt(np.sum(successes / 100 * (1 - successes / 100) / 100)) / 50
    found = standard_error([Stratum(int(k), 100) for k in successes])
    assert found == pytest.approx(plain, rel=0.03)
    assert 0.003 < found < 0.007


@pytest.mark.parametrize(
    ("tasks", "trials", "rates"),
    [(12, 5, np.full(12, 0.3)), (12, 5, np.linspace(0.02, 0.98, 12)), (50, 100, np.full(50, 0.01))],
)
def test_interval_covers_the_truth(tasks: int, trials: int, rates: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for successes in rng.binomial(trials, rates, (500, tasks)):
        found = mean_estimate([Stratum(int(k), trials) for k in successes])
        assert found is not None
        hits += found.low <= rates.mean() <= found.high
    assert hits / 500 >= 0.92


def test_order_of_tasks_does_not_matter() -> None:
    strata = [Stratum(k, 7) for k in (0, 3, 7, 1, 5)]
    assert mean_estimate(strata) == mean_estimate(strata[::-1])


def test_a_task_without_trials_leaves_no_mean() -> None:
    assert mean_estimate([]) is None
    assert mean_estimate([Stratum(3, 5), Stratum(0, 0)]) is None
    assert standard_error([Stratum(0, 0)]) is None
    assert bounds([Stratum(0, 0)]) is None


def test_bounds_of_missing_trials() -> None:
    found = bounds([Stratum(80, 99, 1), Stratum(50, 100)])
    assert found is not None
    assert (found.low, found.high, found.n_missing) == (0.65, 0.655, 1)
