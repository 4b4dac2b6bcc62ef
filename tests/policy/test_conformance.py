import numpy as np
import pytest

from evalkit.core.errors import PolicyError
from evalkit.policy.conformance import example_episode, example_observations, violations
from evalkit.policy.contract import CameraSpec, EpisodeInfo, PolicySpec
from evalkit.policy.registry import adapter_names, load_adapter

SPEC = PolicySpec(
    name="made_up",
    cameras=(CameraSpec(name="head_camera", height_px=4, width_px=4),),
    action_type="qpos",
    chunk_steps=4,
    execute_steps=2,
    needs_instruction=False,
    stateful=False,
)


class Good:
    """Keeps the contract: a function of seed, step and observation."""

    def __init__(self, spec=SPEC):
        self.spec = spec
        self.seeds = {}

    def reset(self, info):
        self.seeds[info.session] = info.policy_seed

    def act(self, observation):
        value = (0.37 * self.seeds[observation.session] + observation.step + observation.state.sum()) % 1
        return np.full((4, 14), value)

    def act_batch(self, observations):
        return [self.act(observation) for observation in observations]

    def close(self):
        pass


class KeepsState(Good):
    count = 0

    def act(self, observation):
        self.count += 1
        return super().act(observation) * 0.5 + self.count / 1000


class MixesSessions(Good):
    def reset(self, info):
        super().reset(info)
        self.last = info.policy_seed

    def act(self, observation):
        self.seeds[observation.session] = self.last
        return super().act(observation)


class MixesRows(Good):
    def act_batch(self, observations):
        return [chunk + 1e-12 * len(observations) for chunk in super().act_batch(observations)]


class DropsRows(Good):
    def act_batch(self, observations):
        return super().act_batch(observations)[:1]


class Aliases(Good):
    def act(self, observation):
        observation.state[:] = np.clip(observation.state, 0, 1)
        return np.broadcast_to(observation.state, (4, 14))


class WrongShape(Good):
    def act(self, observation):
        return super().act(observation)[:, :13]


class WrongType(Good):
    def act(self, observation):
        return super().act(observation).astype(np.float32)


class NotFinite(Good):
    def act(self, observation):
        return super().act(observation) * np.nan


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in adapter_names()
        if not load_adapter(name).NEEDS_CHECKPOINT and not hasattr(load_adapter(name), "identity")
    ],
)
def test_every_adapter_without_weights_conforms(name):
    assert violations(load_adapter(name).load(None, device="cpu")) == []


def test_a_good_policy_has_no_violations():
    assert violations(Good()) == []


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (KeepsState(), "reset: the same seed"),
        (MixesSessions(), "two episodes at the same time"),
        (MixesRows(), "act_batch: a batch of 11 gave other actions"),
        (DropsRows(), "act_batch: 11 observations gave 1 chunks"),
        (Aliases(), "changed its observation"),
        (Aliases(), "returned memory of its observation"),
        (WrongShape(), r"returned float64 \(4, 13\), expected float64 \(4, 14\)"),
        (WrongType(), "returned float32"),
        (NotFinite(), "returned nan"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_broken_rule_is_found(broken, message):
    import re

    assert any(re.search(message, line) for line in violations(broken)), violations(broken)


def test_impossible_declarations_are_found():
    from dataclasses import replace

    spec = replace(SPEC, execute_steps=5, cameras=SPEC.cameras * 2)
    found = violations(Good(spec))
    assert any("execute_steps 5" in line for line in found)
    assert any("listed twice" in line for line in found)
    assert violations(Good(replace(SPEC, action_type="delta_ee"))) == [
        "spec: action_type 'delta_ee' isn't one of qpos, ee"
    ]


def test_noop_holds_the_state_and_clips_grippers():
    policy = load_adapter("noop").load(None, device="cpu")
    observation = example_observations(policy.spec, session="s", seed=1, count=1)[0]
    observation.state[6] = 1.005
    chunk = policy.act(observation)
    assert (chunk[:, :6] == observation.state[:6]).all()
    assert (chunk[:, 6] == 1.0).all()


def test_replay_goes_on_from_the_step_and_holds_the_last_action():
    policy = load_adapter("replay").load(None, device="cpu")
    info = example_episode(policy.spec, session="s", seed=1)
    policy.reset(info)
    first, second = example_observations(policy.spec, session="s", seed=1)
    assert np.array_equal(policy.act(first), info.demonstration[:32])
    assert np.array_equal(policy.act(second), info.demonstration[32:64])
    short = EpisodeInfo(
        session="t", instruction="", policy_seed=1, horizon_steps=9, demonstration=info.demonstration[:5]
    )
    policy.reset(short)
    held = policy.act(example_observations(policy.spec, session="t", seed=1, count=1)[0])
    assert np.array_equal(held[:5], info.demonstration[:5])
    assert (held[5:] == info.demonstration[4]).all()


def test_replay_without_a_demonstration_or_a_reset_is_a_policy_error():
    policy = load_adapter("replay").load(None, device="cpu")
    with pytest.raises(PolicyError, match="no demonstration for session 's'"):
        policy.reset(EpisodeInfo(session="s", instruction="", policy_seed=1, horizon_steps=9))
    wrong = EpisodeInfo(session="s", instruction="", policy_seed=1, horizon_steps=9, demonstration=np.zeros((0, 14)))
    with pytest.raises(PolicyError, match=r"shape \(0, 14\)"):
        policy.reset(wrong)
    with pytest.raises(PolicyError, match="before its reset"):
        policy.act(example_observations(policy.spec, session="s", seed=1, count=1)[0])
