from __future__ import annotations

from statistics import fmean

import numpy as np
import pytest
from scipy import stats

from evalkit.aggregate.groups import tell_apart
from evalkit.aggregate.pairs import Significance
from evalkit.aggregate.published import load_tables
from evalkit.aggregate.spread import repeat_spread, run_spread
from evalkit.aggregate.tasks_like_these import (
    FEWEST_TASKS,
    covariance_of_means,
    resampled_means,
    student_p,
    tasks_like_these,
)

BOARD = {table.key: table for table in load_tables() if table.name.endswith("@leaderboard")}


def rates(model: str, config: str) -> list[float]:
    return [float(rate) / 100 for rate in BOARD[model].rates[config].values()]


def test_three_runs_of_one_checkpoint_that_spread_more_than_chance() -> None:
    # 85.6, 83.6 and 82.7 % with a binomial standard error of 0.5 points.
    found = run_spread([0.856, 0.836, 0.827], [0.005] * 3)
    assert found is not None
    assert found.observed == pytest.approx(0.0148, abs=1e-4)
    assert found.ratio == pytest.approx(2.97, abs=0.01)
    assert found.p == pytest.approx(stats.chi2.sf(2 * found.ratio**2, 2))
    assert found.p < 0.001


def test_chance_alone_is_seldom_called_spread() -> None:
    rng = np.random.default_rng(3)
    scores = rng.binomial(5000, 0.8, (400, 4)) / 5000
    error = (0.8 * 0.2 / 5000) ** 0.5
    found = [run_spread(list(row), [error] * 4) for row in scores]
    assert fmean(spread.p < 0.05 for spread in found if spread) == pytest.approx(0.05, abs=0.03)


def test_one_run_has_no_spread() -> None:
    assert run_spread([0.5], [0.01]) is None
    assert repeat_spread({}) is None
    assert repeat_spread({"click_bell": [[True], [False]]}) is None


def test_repeats_that_agree_have_no_chance_in_them() -> None:
    assert repeat_spread({"click_bell": [[True, True], [False, False]]}) is None


def test_repeats_that_move_together_are_found() -> None:
    rng = np.random.default_rng(5)
    independent = {f"task {k}": (rng.random((20, 5)) < 0.5).tolist() for k in range(10)}
    found = repeat_spread(independent)
    assert found is not None
    assert found.p > 0.05
    shift = np.array([0.2, 0.4, 0.5, 0.6, 0.8])
    together = repeat_spread({f"task {k}": (rng.random((20, 5)) < shift).tolist() for k in range(10)})
    assert together is not None
    assert together.p < 1e-6


def test_unequal_repeats_are_refused() -> None:
    with pytest.raises(ValueError, match="1 or 2 repeats"):
        repeat_spread({"click_bell": [[True, False], [True]]})


@pytest.mark.parametrize(("config", "low", "high"), [("demo_clean", 63.0, 76.6), ("demo_randomized", 20.5, 31.5)])
def test_tasks_like_these_of_x_wam(config: str, low: float, high: float) -> None:
    found = tasks_like_these(rates("x-wam", config))
    assert found is not None
    assert 0.019 < found.standard_error < 0.036
    assert (100 * found.low, 100 * found.high) == pytest.approx((low, high), abs=0.6)
    plain = np.quantile(resampled_means(rates("x-wam", config)), [0.025, 0.975])
    assert tuple(100 * plain) == pytest.approx((low, high), abs=0.3)
    assert found.low < plain[0] < plain[1] < found.high


@pytest.mark.parametrize(
    ("first", "second", "config", "points", "p"),
    [
        ("pi0.5", "x-wam", "demo_clean", 0.68, 0.83),
        ("pi0.5", "x-wam", "demo_randomized", 20.16, 6e-8),
        ("4d-wam", "ola-geo", "demo_clean", -1.46, 0.49),
        ("ola-sem", "gigabrain-0.7", "demo_randomized", -0.36, 0.90),
        ("spatial-forcing", "fastwam", "demo_clean", -0.58, 0.70),
    ],
)
def test_differences_of_board_entries_for_tasks_like_these(
    first: str, second: str, config: str, points: float, p: float
) -> None:
    differences = [a - b for a, b in zip(rates(first, config), rates(second, config), strict=True)]
    found = tasks_like_these(differences)
    assert found is not None
    assert 100 * found.value == pytest.approx(points, abs=0.005)
    assert student_p(differences) == pytest.approx(p, rel=0.05)
    assert (found.low <= 0 <= found.high) == (p > 0.05)


def test_both_configurations_of_a_task_are_drawn_together() -> None:
    clean, randomized = rates("x-wam", "demo_clean"), rates("x-wam", "demo_randomized")
    average = tasks_like_these([(a + b) / 2 for a, b in zip(clean, randomized, strict=True)])
    one, other = tasks_like_these(clean), tasks_like_these(randomized)
    covariance = covariance_of_means(clean, randomized)
    assert average is not None
    assert one is not None
    assert other is not None
    assert covariance is not None
    assert covariance > 0
    expected = (one.standard_error**2 + other.standard_error**2 + 2 * covariance) / 4
    assert average.standard_error**2 == pytest.approx(expected, rel=0.03)


def test_same_seed_same_interval_and_few_tasks_none() -> None:
    values = [0.1 * k for k in range(FEWEST_TASKS)]
    assert tasks_like_these(values) == tasks_like_these(values)
    assert tasks_like_these(values) != tasks_like_these(values, seed=1)
    assert tasks_like_these(values[1:]) is None
    assert covariance_of_means(values[1:], values[1:]) is None


def significance(p: float) -> Significance:
    return Significance(p=p, z=None, name="made up")


def test_groups_overlap_where_differences_do_not_carry_over() -> None:
    scores = {"a": 0.9, "b": 0.85, "c": 0.8, "d": 0.2}
    apart = {("a", "c"): 0.001, ("a", "d"): 1e-9, ("b", "d"): 1e-9, ("c", "d"): 1e-9}
    tests = {pair: significance(apart.get(pair, 0.6)) for pair in [*apart, ("b", "a"), ("b", "c")]}
    found = tell_apart(scores, tests)
    assert [(m.name, "".join(m.groups), m.best_rank, m.worst_rank) for m in found] == [
        ("a", "a", 1, 2),
        ("b", "ab", 1, 3),
        ("c", "b", 2, 3),
        ("d", "c", 4, 4),
    ]


def test_holm_guards_against_many_pairs() -> None:
    scores = {name: 0.5 - 0.01 * k for k, name in enumerate("abcdef")}
    tests = {(a, b): significance(0.04) for a in scores for b in scores if a < b}
    assert {member.groups for member in tell_apart(scores, tests)} == {("a",)}


def test_members_of_a_group_were_not_told_apart() -> None:
    rng = np.random.default_rng(1)
    names = [f"n{k}" for k in range(12)]
    scores = dict(zip(names, rng.random(12), strict=True))
    tests = {
        (a, b): significance(float(np.exp(-200 * (scores[a] - scores[b]) ** 2)))
        for i, a in enumerate(names)
        for b in names[i + 1 :]
    }
    found = {member.name: member for member in tell_apart(scores, tests)}
    from evalkit.aggregate.pairs import holm

    adjusted = dict(zip(tests, holm([test.p for test in tests.values()]), strict=True))
    for (a, b), p in adjusted.items():
        assert bool(set(found[a].groups) & set(found[b].groups)) == (p > 0.05)


def test_no_names_no_groups() -> None:
    assert tell_apart({}, {}) == ()
