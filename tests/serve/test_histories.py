"""Observations between decisions, on the one wire that carries them: XPolicyLab's legacy TCP."""

from dataclasses import replace

import numpy as np
import pytest
import yaml
from served_policies import SIZES, FunctionPolicy

from evalkit.core.errors import PolicyError, UserError
from evalkit.policy.conformance import example_episode, example_observations, violations
from evalkit.policy.registry import load_described
from evalkit.policy.settings import read_settings
from evalkit.serve.served import ServedPolicy
from evalkit.serve.server import WebsocketServer
from evalkit.serve.tcp import TcpServer

ROBOT = {
    "actions": "qpos", "cameras": {name: list(size) for name, size in SIZES.items()},
    "chunk_steps": 6, "execute_steps": 3,
}  # fmt: skip


def write(folder, **values):
    (folder / "policy.yaml").write_text(yaml.safe_dump({"adapter": "xpolicylab", "serves": "function", **values}))
    return load_described(read_settings(folder / "policy.yaml"), None, device="cpu")


def tcp_client(folder, url, history_steps):
    robot = {**ROBOT, "history_steps": history_steps}
    return write(folder, url=url, connect_s=2, call_s=5, robot=robot, state_dtype="float64")


@pytest.fixture
def served():
    servers = []

    def start(protocol, policy):
        offered = ServedPolicy(policy, {"policy": "function"})
        servers.append(TcpServer(offered) if protocol == "tcp" else WebsocketServer(offered, protocol))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


class Remembers(FunctionPolicy):
    """Its actions depend on the last four observations, in their order."""

    def __init__(self):
        super().__init__()
        self.spec = replace(self.spec, history_steps=4)

    def act(self, observation):
        rows = [*observation.history, observation]
        assert [row.step for row in rows] == list(range(observation.step - len(rows) + 1, observation.step + 1))
        mean = sum(0.5**back * super(Remembers, self).act(row) for back, row in enumerate(rows)) / len(rows)
        return mean % 1.0


def three_chunks(policy, looks):
    policy.reset(example_episode(policy.spec, session="s", seed=3))
    return [policy.act(replace(look, history=look.history[-(policy.spec.history_steps - 1) :])) for look in looks]


def test_legacy_tcp_carries_every_observation_to_a_policy_with_a_history(served, tmp_path):
    home = Remembers()
    looks = example_observations(home.spec, session="s", seed=3, count=3)
    assert [len(look.history) for look in looks] == [0, 3, 3]
    policy = tcp_client(tmp_path, served("tcp", home).url, 3)
    there = three_chunks(policy, looks)
    home.seeds["s"] = next(seed for session, seed in home.seeds.items() if session != "s")
    for chunk, look in zip(there, looks, strict=True):
        np.testing.assert_array_equal(chunk, home.act(look))
    assert violations(policy) == []
    policy.close()


def test_a_client_that_leaves_observations_out_is_told(served, tmp_path):
    looks = example_observations(Remembers().spec, session="s", seed=3, count=3)
    policy = tcp_client(tmp_path, served("tcp", Remembers()).url, 2)
    with pytest.raises(PolicyError, match="sees every observation; after 3 actions it was sent 2, not 3"):
        three_chunks(policy, looks)
    policy.close()
    with pytest.raises(
        UserError, match=r"needs 4 observations .* clients of openpi send one: serve it with --protocol"
    ):
        served("openpi", Remembers())


@pytest.mark.parametrize(
    ("url", "robot", "message"),
    [
        ("ws://127.0.0.1:1", {"history_steps": 2}, "the websocket carries one observation a decision: leave it out"),
        ("tcp://127.0.0.1:1", {}, "over tcp RoboTwin's own client sends every observation: say history_steps"),
        ("tcp://127.0.0.1:1", {"history_steps": 2, "one_at_a_time": False}, "a server with a history keeps one"),
    ],
)
def test_what_a_server_is_shown_of_the_past_is_said(tmp_path, url, robot, message):
    with pytest.raises(UserError, match=message):
        write(tmp_path, url=url, robot={**ROBOT, **robot})
