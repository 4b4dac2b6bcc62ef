"""Observations between the actions of a chunk, and the end of an episode, as a trial carries them out."""

import gc
import logging
import tracemalloc

import numpy as np
import pytest
from trial_kit import HORIZON, ChunkPolicy, follow, hold, run

from evalkit.core.errors import PolicyError, SimulatorError
from evalkit.core.outcome import Outcome
from evalkit.policy.contract import CameraSpec, EpisodeInfo, Observation, PolicySpec
from evalkit.sim.fake import FakeSimulator, FakeWorld, Fault


class Looking(FakeSimulator):
    """Counts how often it was looked at, and how much it executed at a time."""

    def __init__(self):
        super().__init__()
        self.looks, self.pieces = [], []

    def observe(self, cameras):
        self.looks.append((self._steps, tuple(cameras)))
        return super().observe(cameras)

    def apply(self, actions, action_type):
        self.pieces.append(len(actions))
        return super().apply(actions, action_type)


def creep(observation):
    """A little further at every step, so that observations differ; never where the goal is."""
    actions = np.tile(observation.state, (10, 1))
    actions[:, 1] += 0.001 * np.arange(1, 11)
    return actions


def with_history(policy, steps):
    from dataclasses import replace

    policy.spec = replace(policy.spec, history_steps=steps)
    return policy


@pytest.mark.parametrize(
    ("history", "execute", "between"),
    [(1, 10, []), (2, 10, [9]), (3, 10, [8, 9]), (4, 2, [1]), (12, 10, list(range(1, 10))), (2, 1, [])],
)
def test_the_robot_is_looked_at_between_actions_as_often_as_the_next_decision_needs_it(history, execute, between):
    sim, policy = Looking(), with_history(ChunkPolicy(creep), history)
    record = run(policy, sim=sim, execute_steps=execute)
    assert (record.outcome, record.steps) == (Outcome.FAILURE, HORIZON)
    looked = [step for step, _ in sim.looks]
    decisions = list(range(0, HORIZON, execute))
    assert looked == sorted(decisions + [start + step for start in decisions for step in between])
    for seen in policy.seen:
        steps = [row.step for row in seen.history]
        assert steps == [step for step in range(seen.step - history + 1, seen.step) if step >= 0]
        for row in seen.history:
            assert row.state[1] == pytest.approx(0.001 * row.step)
            assert row.history == ()
            assert set(row.images) == {"head_camera"}


def test_looking_changes_no_outcome():
    plain, looking = run(ChunkPolicy(creep)), run(with_history(ChunkPolicy(creep), 4))
    assert plain.state_digest == looking.state_digest
    found = run(with_history(ChunkPolicy(follow), 4))
    assert (found.outcome, found.steps, found.success_step) == (Outcome.SUCCESS, 3, 3)


def test_a_history_ends_with_its_episode():
    policy = with_history(ChunkPolicy(creep), 3)
    run(policy)
    policy.seen.clear()
    run(policy, seed=100007)
    assert policy.seen[0].history == ()


class Ending(ChunkPolicy):
    def __init__(self, act, error=None):
        super().__init__(act)
        self.ends, self._error = [], error

    def end(self, session, success):
        self.ends.append((session, success))
        if self._error is not None:
            raise self._error


def broken(observation):
    raise KeyError("cam_high")


@pytest.mark.parametrize(("act", "success"), [(follow, True), (hold, False), (broken, None)])
def test_the_end_is_told_once_with_the_verdict(act, success):
    policy = Ending(act)
    run(policy)
    assert policy.ends == [("s-1", success)]


@pytest.mark.parametrize("kind", ["exception", "nan_state"])
def test_the_end_is_told_after_an_error_of_the_simulator(kind):
    policy = Ending(hold)
    with pytest.raises(SimulatorError):
        run(policy, world=FakeWorld(faults=(Fault(kind=kind, seed=100000, step=10),)))
    assert policy.ends == [("s-1", None)]


def test_the_end_is_told_where_reset_raised():
    policy = Ending(hold)
    policy.reset = lambda info: 1 / 0
    assert run(policy).outcome is Outcome.POLICY_ERROR
    assert policy.ends == [("s-1", None)]


@pytest.mark.parametrize("error", [RuntimeError("no disk"), PolicyError("exception", "no disk")])
def test_an_end_that_fails_is_logged_and_changes_nothing(error, caplog):
    policy = Ending(follow, error)
    with caplog.at_level(logging.WARNING):
        assert run(policy).outcome is Outcome.SUCCESS
    assert "policy test raised at the end of session s-1" in caplog.text
    assert "no disk" in caplog.text


class Hoarder:
    """Keeps a megabyte of every episode that isn't over."""

    def __init__(self):
        self.spec = PolicySpec(
            name="hoarder", cameras=(CameraSpec(name="head_camera"),), action_type="qpos", chunk_steps=10,
            execute_steps=10, needs_instruction=False, stateful=True,
        )  # fmt: skip
        self._kept = {}

    def reset(self, info: EpisodeInfo):
        self._kept[info.session] = np.zeros(1 << 17)

    def act(self, observation: Observation):
        assert observation.session in self._kept
        return hold(observation)

    def end(self, session, success):
        del self._kept[session]

    def close(self):
        self._kept.clear()


def test_a_policy_that_serves_many_sessions_keeps_what_runs_and_no_more():
    policy, sim = Hoarder(), FakeSimulator()
    run(policy, sim=sim)
    gc.collect()
    tracemalloc.start()
    try:
        for seed in range(100000, 100060):
            run(policy, seed=seed, sim=sim)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 8 << 20  # sixty episodes hold sixty megabytes
    finally:
        tracemalloc.stop()
    assert policy._kept == {}
