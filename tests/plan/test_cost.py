"""A plan's cost is arithmetic over rates: nothing is guessed, and what bounds the run is named."""

import pytest

from evalkit.plan.cost import Effort, Machine, Portion, estimate, wall_s
from evalkit.plan.rates import PolicyRate, SimulatorRate

BELL, SHOE = ("click_bell", "demo_clean"), ("place_shoe", "demo_clean")
RATE = SimulatorRate(setup_s=1.0, action_s=0.1, observation_s=0.5, cameras=3, expert_s=4.0, expert_steps=50, n=1)
POLICY = PolicyRate(decision_s=0.2, steps={BELL: 80.0}, horizon_share=0.5, n=10)


def portion(key=BELL, *, trials=10, horizon_steps=200, candidates=0.0):
    return Portion(task=key[0], config=key[1], trials=trials, horizon_steps=horizon_steps, candidates=candidates)


def test_the_parts_of_a_trial_add_up():
    cost = estimate([portion(candidates=12.5)], {BELL: RATE}, POLICY, execute_steps=8)
    assert cost.expected == Effort(
        setup_s=10 * 1.0,
        expert_s=pytest.approx(12.5 * (1.0 + 4.0)),
        physics_s=pytest.approx(10 * 80 * 0.1),
        pictures_s=10 * 10 * 0.5,
        policy_s=pytest.approx(10 * 10 * 0.2),
        observations=100,
    )
    assert cost.low.physics_s == pytest.approx(10 * 50 * 0.1)
    assert cost.high.physics_s == pytest.approx(10 * 200 * 0.1)
    assert cost.low.pictures_s == pytest.approx(10 * 7 * 0.5), "50 actions in chunks of 8 are 7 observations"
    assert (cost.borrowed, cost.unknown) == ((), ())


def test_no_rates_give_no_number():
    assert estimate([portion()], {}, POLICY, execute_steps=8) is None


def test_a_policy_that_never_ran_has_no_expected_time_and_that_is_said():
    cost = estimate([portion()], {BELL: RATE}, None, execute_steps=8)
    assert cost.expected is None
    assert cost.unknown == ("the policy's own time",)
    assert cost.high.policy_s == 0.0


def test_a_task_without_a_rate_borrows_the_median_and_is_named():
    slow = SimulatorRate(setup_s=3.0, action_s=0.3, observation_s=0.5, cameras=3, expert_s=8.0, expert_steps=150, n=1)
    other = ("open_laptop", "demo_clean")
    cost = estimate([portion(SHOE)], {BELL: RATE, other: slow}, POLICY, execute_steps=8)
    assert cost.borrowed == (SHOE,)
    assert cost.high.setup_s == pytest.approx(10 * 2.0)
    assert cost.expected.physics_s == pytest.approx(10 * 0.5 * 200 * 0.2), "the policy's usual share of the horizon"


def test_without_a_demonstration_there_is_no_shortest():
    seen = SimulatorRate(setup_s=1.0, action_s=0.1, observation_s=0.5, cameras=3, expert_s=None, expert_steps=None, n=4)
    cost = estimate([portion(candidates=3)], {BELL: seen}, POLICY, execute_steps=8)
    assert cost.low is None
    assert cost.unknown == ("expert checks",)


def test_a_demonstration_longer_than_the_horizon_is_cut_there():
    cost = estimate([portion(horizon_steps=40)], {BELL: RATE}, POLICY, execute_steps=8)
    assert cost.low == cost.high


EFFORT = Effort(setup_s=100, physics_s=300, pictures_s=400, policy_s=200)


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (Machine(workers=1), (1000, "workers")),
        (Machine(workers=4, start_s=10), (260, "workers")),
        (Machine(workers=10, servers=1), (200, "the policy")),
        (Machine(workers=10, servers=4), (100, "workers")),
        (Machine(workers=4, gpus=1, pictures_take_turns=True), (400, "pictures")),
        (Machine(workers=4, gpus=2, pictures_take_turns=True), (250, "workers")),
    ],
)
def test_wall_time_is_that_of_the_tightest_bound(machine, expected):
    assert wall_s(EFFORT, machine) == expected
