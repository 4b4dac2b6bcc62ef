"""The end of an episode on every road that has a message for it, and in what is kept of episodes that are over."""

import sys
import time

import numpy as np
import pytest
import yaml

from evalkit.core.errors import PolicyError
from evalkit.episode.decide import end_policy
from evalkit.policy.conformance import example_episode, example_observations
from evalkit.policy.contract import CameraSpec, PolicySpec
from evalkit.policy.registry import load_described
from evalkit.policy.settings import read_settings
from evalkit.serve.served import ServedPolicy
from evalkit.serve.server import WebsocketServer
from evalkit.serve.tcp import TcpServer

ROBOT = {
    "actions": "qpos", "cameras": {"head_camera": [240, 320]}, "chunk_steps": 2, "execute_steps": 2, "history_steps": 1,
}  # fmt: skip
PROFILE = {
    "robot": {**ROBOT, "needs_instruction": False, "stateful": False},
    "request": {
        "observation/head_camera": {"picture": "head_camera"},
        "observation/state": {"vector": "qpos", "as": [], "dtype": "float64"},
        "reset": {"number": "first"},
    },
    "answer": {"key": "actions", "as": []},
}


class Diary:
    """Writes down which episodes began and ended."""

    def __init__(self):
        self.spec = PolicySpec(
            name="diary", cameras=(CameraSpec(name="head_camera"),), action_type="qpos", chunk_steps=2,
            execute_steps=2, needs_instruction=False, stateful=True,
        )  # fmt: skip
        self.running, self.ends = set(), []

    def reset(self, info):
        self.running.add(info.session)

    def act(self, observation):
        assert observation.session in self.running
        return np.tile(observation.state, (2, 1))

    def end(self, session, success):
        self.running.remove(session)
        self.ends.append(success)

    def close(self):
        pass


def write(folder, **values):
    path = folder / "policy.yaml"
    path.write_text(yaml.safe_dump(values))
    return load_described(read_settings(path), None, device="cpu")


def episode(policy, success, session="s"):
    policy.reset(example_episode(policy.spec, session=session, seed=1))
    policy.act(example_observations(policy.spec, session=session, seed=1, count=1)[0])
    end_policy(policy, session, success)


def await_ends(diary, count):
    until = time.monotonic() + 10
    while len(diary.ends) < count and time.monotonic() < until:
        time.sleep(0.01)
    return diary.ends


@pytest.mark.parametrize("road", ["openpi", "xpolicylab"])
def test_a_server_is_told_the_verdict_once(tmp_path, road):
    diary = Diary()
    server = WebsocketServer(ServedPolicy(diary, {}), road)
    values = {"adapter": road, "url": server.url, "serves": "diary"}
    if road == "openpi":
        values |= {"profile": PROFILE, "end_message": {"end": True, "success": "{success}"}}
    else:
        values |= {"robot": ROBOT}
    policy = write(tmp_path, **values)
    try:
        for success in (True, False, None):
            episode(policy, success)
        assert diary.ends == [True, False, None]
        assert diary.running == set()
    finally:
        policy.close()
        server.close()
    assert diary.ends == [True, False, None]


@pytest.mark.parametrize("road", ["openpi", "tcp"])
def test_a_client_that_doesnt_tell_the_end_tells_it_by_going_on_or_away(tmp_path, road):
    diary = Diary()
    server = TcpServer(ServedPolicy(diary, {})) if road == "tcp" else WebsocketServer(ServedPolicy(diary, {}), road)
    values = {"adapter": "openpi" if road == "openpi" else "xpolicylab", "url": server.url, "serves": "diary"}
    policy = write(tmp_path, **values, **({"profile": PROFILE} if road == "openpi" else {"robot": ROBOT}))
    try:
        episode(policy, True)
        episode(policy, False)
        assert (diary.ends, len(diary.running)) == ([None], 1)
    finally:
        policy.close()
    assert await_ends(diary, 2) == [None, None]
    assert diary.running == set()
    server.close()


MODULE = """
class Net:
    def __init__(self):
        self.ends = []

    def __call__(self, state):
        return state.repeat(2, 0) if not self.ends else self.fail()

    def end(self, success):
        self.ends.append(success)

    def fail(self):
        raise RuntimeError(f"told {self.ends}")
"""
ADAPTER = """
import numpy as np

from evalkit.policy.contract import PolicySpec

NEEDS_CHECKPOINT = False


class Diary:
    spec = PolicySpec(
        name="diary", cameras=(), action_type="qpos", chunk_steps=2, execute_steps=2,
        needs_instruction=False, stateful=True, history_steps=3,
    )
    told = []

    def reset(self, info):
        pass

    def act(self, observation):
        if self.told:
            raise RuntimeError(f"told {self.told}")
        seen = [*observation.history, observation]
        return np.tile(sum(row.state for row in seen) / len(seen), (2, 1))

    def end(self, session, success):
        self.told.append((session, success))

    def close(self):
        pass


def load(checkpoint, *, device):
    return Diary()
"""


def test_a_module_is_told_the_verdict_in_its_process(tmp_path):
    (tmp_path / "net.py").write_text(MODULE)
    profile = {
        "robot": {**PROFILE["robot"], "cameras": {}},
        "request": {"state": PROFILE["request"]["observation/state"]},
        "answer": PROFILE["answer"],
    }
    policy = write(tmp_path, adapter="torch_module", code=".", factory="net:Net", profile=profile, tensors=False)
    try:
        episode(policy, True)
        policy.reset(example_episode(policy.spec, session="t", seed=1))
        with pytest.raises(PolicyError, match=r"told \[True\]"):
            policy.act(example_observations(policy.spec, session="t", seed=1, count=1)[0])
    finally:
        policy.close()
    end_policy(policy, "t", None)  # a process that is gone isn't started for this


def test_an_adapter_in_another_interpreter_gets_histories_and_ends(tmp_path):
    (tmp_path / "adapter.py").write_text(ADAPTER)
    policy = write(tmp_path, adapter="remote", file="adapter.py", python=sys.executable)
    try:
        assert policy.spec.history_steps == 3
        seen = example_observations(policy.spec, session="s", seed=1, count=3)[-1]
        assert len(seen.history) == 2
        policy.reset(example_episode(policy.spec, session="s", seed=1))
        mean = (seen.history[0].state + seen.history[1].state + seen.state) / 3
        np.testing.assert_array_equal(policy.act(seen)[0], mean)
        end_policy(policy, "s", False)
        with pytest.raises(PolicyError, match=r"told \[\('s', False\)\]"):
            policy.act(seen)
    finally:
        policy.close()


def test_episodes_that_are_over_arent_kept(tmp_path):
    (tmp_path / "net.py").write_text("class Net:\n    def __call__(self, state):\n        return state.repeat(2, 0)\n")
    profile = {
        "robot": {**PROFILE["robot"], "cameras": {}},
        "request": {"state": PROFILE["request"]["observation/state"]},
        "answer": PROFILE["answer"],
    }
    policy = write(tmp_path, adapter="torch_module", code=".", factory="net:Net", profile=profile, tensors=False)
    try:
        for index in range(50):
            episode(policy, True, f"s{index}")
        assert policy._episodes._known == {}
    finally:
        policy.close()
