"""Rates come from what ran: medians by task, and a file that is either right or refused."""

import json

import pytest

from evalkit.core.errors import UserError
from evalkit.core.outcome import Outcome
from evalkit.core.record import Timings, TrialRecord
from evalkit.core.trial import TrialSpec
from evalkit.plan.rates import Bench, SimulatorRate, bench_path, policy_rate, rates_of, read_bench, write_bench

KEY = ("click_bell", "demo_clean")


def record(*, seed=100000, steps=40, calls=5, outcome=Outcome.SUCCESS, expert_s=0.0):
    spec = TrialSpec(
        backend="b",
        task=KEY[0],
        config=KEY[1],
        config_digest="c",
        seed=seed,
        instruction="ring the bell",
        instruction_split="unseen",
        horizon_steps=400,
        action_type="qpos",
        execute_steps=8,
        policy="p",
    )
    timings = Timings(
        setup_s=2.0, physics_s=4.0, check_s=0.4, render_s=1.0, inference_s=0.5, expert_s=expert_s, wall_s=9.0
    )
    return TrialRecord(spec=spec, outcome=outcome, steps=steps, policy_calls=calls, success_step=None, timings=timings)


def test_rates_of_trials_are_per_action_and_per_observation():
    rate = rates_of([record(), record(seed=100001, expert_s=3.0)], cameras=2)[KEY]
    assert rate == SimulatorRate(
        setup_s=2.0,
        action_s=pytest.approx(0.11),
        observation_s=0.2,
        cameras=2,
        expert_s=3.0,
        expert_steps=None,
        n=2,
    )


def test_missing_trials_say_nothing_about_rates():
    broken = record(outcome=Outcome.SIM_ERROR, steps=0, calls=0)
    assert rates_of([broken], cameras=1) == {}
    assert policy_rate([broken]) is None


def test_a_policys_rate_holds_the_length_of_its_trials():
    rate = policy_rate([record(steps=40), record(seed=100001, steps=360)])
    assert (rate.steps[KEY], rate.horizon_share, rate.decision_s, rate.n) == (200, 0.5, 0.1, 2)


BENCH = Bench(
    backend="0123456789abcdef",
    renderer="soft",
    measured_at="2026-01-01T00:00:00+00:00",
    host="here",
    cpus=2,
    start_s=7.5,
    memory_bytes=10**9,
    rates={
        KEY: SimulatorRate(setup_s=1, action_s=1, observation_s=1, cameras=3, expert_s=None, expert_steps=None, n=1)
    },
)


def test_a_measurement_is_kept_and_read_back(monkeypatch, tmp_path):
    monkeypatch.setenv("EVALKIT_HOME", str(tmp_path))
    assert read_bench(BENCH.backend) is None
    assert write_bench(BENCH) == bench_path(BENCH.backend)
    assert read_bench(BENCH.backend) == BENCH


@pytest.mark.parametrize("text", ["{", "{}", json.dumps({**BENCH.to_json(), "more": 1})])
def test_a_measurement_that_cant_be_read_is_named(monkeypatch, tmp_path, text):
    monkeypatch.setenv("EVALKIT_HOME", str(tmp_path))
    path = bench_path(BENCH.backend)
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(UserError, match="measure again with evalkit robotwin bench"):
        read_bench(BENCH.backend)
