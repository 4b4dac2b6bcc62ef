from __future__ import annotations

import pytest
from scipy.stats import binomtest

from evalkit.aggregate.proportions import clopper_pearson, estimate, wilson


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(0, 100, 0, 3.70), (100, 100, 96.30, 100), (99, 100, 94.55, 99.82), (45, 50, 78.64, 95.65), (50, 100, 40.4, 59.6)],
)
def test_wilson_worked_values(successes: int, trials: int, low: float, high: float) -> None:
    found = wilson(successes, trials)
    assert found == pytest.approx((low / 100, high / 100), abs=6e-5 if low not in (40.4,) else 6e-4)


def test_wilson_ends_are_exact() -> None:
    assert wilson(0, 7)[0] == 0.0
    assert wilson(7, 7)[1] == 1.0


def test_clopper_pearson_worked_values() -> None:
    assert clopper_pearson(50, 100) == pytest.approx((0.398, 0.602), abs=6e-4)
    assert clopper_pearson(90, 100) == pytest.approx((0.824, 0.951), abs=6e-4)
    assert clopper_pearson(0, 100) == pytest.approx((0.0, 0.036), abs=6e-4)
    assert clopper_pearson(100, 100) == pytest.approx((0.964, 1.0), abs=6e-4)


@pytest.mark.parametrize(("successes", "trials"), [(0, 1), (1, 1), (3, 7), (19, 20), (81, 100), (0, 5000)])
def test_agrees_with_scipy(successes: int, trials: int) -> None:
    reference = binomtest(successes, trials)
    ours = (wilson(successes, trials), clopper_pearson(successes, trials))
    theirs = [reference.proportion_ci(0.95, method) for method in ("wilson", "exact")]
    for mine, other in zip(ours, theirs, strict=True):
        assert mine == pytest.approx((other.low, other.high), abs=1e-9)


def test_width_is_never_zero() -> None:
    for trials in (1, 2, 5, 100):
        for successes in range(trials + 1):
            for low, high in (wilson(successes, trials), clopper_pearson(successes, trials)):
                assert 0 <= low < high <= 1


def test_no_trials_no_number() -> None:
    assert estimate(0, 0) is None
    with pytest.raises(ValueError, match="0 successes of 0 trials"):
        wilson(0, 0)
    with pytest.raises(ValueError, match="6 successes of 5 trials"):
        clopper_pearson(6, 5)


def test_repeats_of_a_scene_do_not_narrow_the_interval() -> None:
    once, thrice = estimate(8, 10), estimate(24, 30, repeats=3)
    assert once is not None
    assert thrice is not None
    assert thrice.n == 30
    assert (thrice.value, thrice.low, thrice.high) == pytest.approx((once.value, once.low, once.high))
