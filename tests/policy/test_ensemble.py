"""Temporal ensembling: what chunks say of one moment is averaged, and the decay is part of what the policy is."""

from dataclasses import replace

import numpy as np
import pytest
import yaml
from policy_folders import settings_of

from evalkit.cli.policy_choice import choose_policy
from evalkit.core.errors import PolicyError, UserError
from evalkit.policy.conformance import example_episode, example_observations, violations
from evalkit.policy.contract import Observation, PolicySpec
from evalkit.policy.ensemble import EnsembledPolicy, with_ensembling
from evalkit.policy.registry import described_identity, described_spec, load_described

CHUNK = 4


class Growing:
    """Says of step t, asked at step s: (100 s + t) / 1000."""

    def __init__(self, action_type="qpos"):
        self.spec = PolicySpec(
            name="growing", cameras=(), action_type=action_type, chunk_steps=CHUNK, execute_steps=2,
            needs_instruction=False, stateful=False,
        )  # fmt: skip
        self.ends, self.closed = [], False

    def reset(self, info):
        pass

    def act(self, observation):
        steps = observation.step + np.arange(CHUNK)
        return np.tile((100 * observation.step + steps)[:, None] / 1000, (1, 14))

    def end(self, session, success):
        self.ends.append((session, success))

    def close(self):
        self.closed = True


class Batching(Growing):
    def act_batch(self, observations):
        return [self.act(row) for row in observations]


def at(step, session="a"):
    return Observation(session=session, step=step, instruction="", state=np.zeros(14))


def started(policy, *sessions):
    for session in sessions:
        policy.reset(example_episode(policy.spec, session=session, seed=1))
    return policy


@pytest.mark.parametrize("decay", [0.0, 0.01, 2.0])
def test_the_oldest_prediction_counts_most(decay):
    policy = started(EnsembledPolicy(Growing(), decay), "a")
    for step in range(10):
        [action] = policy.act(at(step))
        asked = np.arange(max(0, step - CHUNK + 1), step + 1)
        weights = np.exp(-decay * np.arange(len(asked)))
        expected = ((100 * asked + step) / 1000 * weights).sum() / weights.sum()
        np.testing.assert_allclose(action, expected)


def test_it_is_asked_at_every_step_and_gives_one_action():
    spec = EnsembledPolicy(Growing(), 0.01).spec
    assert (spec.chunk_steps, spec.execute_steps, spec.stateful, spec.name) == (1, 1, True, "growing")


def test_steps_that_were_left_out_are_no_predictions_of_the_present():
    policy = started(EnsembledPolicy(Growing(), 0.0), "a")
    policy.act(at(0))
    np.testing.assert_allclose(policy.act(at(7)), 0.707)


@pytest.mark.parametrize("kind", [Growing, Batching])
def test_it_keeps_the_contract(kind):
    assert violations(with_ensembling(kind(), 0.01)) == []


def test_sessions_in_a_batch_are_averaged_apart():
    policy = started(with_ensembling(Batching(), 0.0), "a", "b")
    policy.act(at(0, "a"))
    together = policy.act_batch([at(1, "a"), at(1, "b")])
    np.testing.assert_allclose([chunk[0, 0] for chunk in together], [0.051, 0.101])


def test_an_episode_is_forgotten_at_its_end_and_unknown_ones_are_refused():
    inner = Growing()
    policy = started(EnsembledPolicy(inner, 0.01), "a")
    policy.act(at(0))
    policy.end("a", True)
    assert inner.ends == [("a", True)]
    with pytest.raises(PolicyError, match="session 'a' before its reset"):
        policy.act(at(1))
    policy.close()
    assert inner.closed


def test_rotations_are_averaged_as_rotations():
    class Turning(Growing):
        def act(self, observation):
            sign = 1 if observation.step % 2 else -1
            pose = example_observations(self.spec, session="a", seed=3, count=1)[0].endpose.copy()
            pose[3:7] *= sign
            return np.tile(pose, (CHUNK, 1))

    policy = started(EnsembledPolicy(Turning("ee"), 0.0), "a")
    found = [policy.act(at(step))[0] for step in range(4)]
    assert all(np.linalg.norm(action[3:7]) == pytest.approx(1) for action in found)
    np.testing.assert_allclose(np.abs(found[3][3:7]), np.abs(found[0][3:7]))


def test_chunks_of_one_action_have_nothing_to_average():
    single = Growing()
    single.spec = replace(single.spec, chunk_steps=1, execute_steps=1)
    with pytest.raises(UserError, match="policy growing can't be ensembled: it has chunks of 1 action"):
        EnsembledPolicy(single, 0.01)


PROFILE = {
    "robot": {"actions": "qpos", "cameras": {}, "chunk_steps": 8, "execute_steps": 4, "needs_instruction": False,
              "stateful": False},
    "request": {"state": {"vector": "qpos", "as": [], "dtype": "float64"}},
    "answer": {"key": "actions", "as": []},
}  # fmt: skip


def test_the_decay_is_part_of_a_policys_identity(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "net.py").write_text(
        "class Net:\n    def __call__(self, state):\n        return state.repeat(8, 0)\n"
    )
    values = {"adapter": "torch_module", "code": "code", "factory": "net:Net", "profile": PROFILE, "tensors": False}
    plain = settings_of(tmp_path, **values)
    ensembled = settings_of(tmp_path, "other", **values, ensemble=0.01)
    assert "ensemble" not in described_identity(plain)
    assert described_identity(ensembled) == {**described_identity(plain), "ensemble": 0.01}
    policy = load_described(ensembled, None, device="cpu")
    try:
        assert policy.spec == described_spec(ensembled)
        assert policy.spec.chunk_steps == 1
    finally:
        policy.close()
    digests = set()
    for index, decay in enumerate((None, 0, 0.01)):
        path = tmp_path / f"same{index}" / "net.yaml"
        path.parent.mkdir()
        given = {} if decay is None else {"ensemble": decay}
        path.write_text(yaml.safe_dump({**values, "code": "../code", **given}))
        digests.add(choose_policy(str(path), None).digest)
    assert len(digests) == 3


@pytest.mark.parametrize("value", [-1, "yes", True])
def test_a_decay_is_a_number(tmp_path, value):
    with pytest.raises(UserError, match="give the decay of the weights, 0 or more"):
        settings_of(tmp_path, adapter="torch_module", ensemble=value)
