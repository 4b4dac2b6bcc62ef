"""A policy answers the same through every server as it does at home."""

import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from served_policies import SIZES, FunctionPolicy, episode_chunks
from websockets.sync.client import connect
from websockets.sync.server import serve

from evalkit.core.errors import PolicyError, PolicyLostError, UserError
from evalkit.policy.conformance import example_episode, example_observations, violations
from evalkit.policy.registry import load_form
from evalkit.policy.settings import read_settings
from evalkit.policy.wire.packing import from_json, pack, to_json, unpack
from evalkit.serve.served import ServedPolicy
from evalkit.serve.server import WebsocketServer
from evalkit.serve.tcp import TcpServer

ROBOT = {"cameras": {name: list(size) for name, size in SIZES.items()}, "chunk_steps": 6, "execute_steps": 3}


def load(folder: Path, **values):
    path = folder / "policy.yaml"
    path.write_text(yaml.safe_dump(values))
    settings = read_settings(path)
    form = load_form(settings.adapter)
    form.identity(settings)
    return form.load(None, device="cpu", settings=settings)


def xpolicylab(folder, url, action_type="qpos", **more):
    return load(
        folder, adapter="xpolicylab", url=url, serves="function", connect_s=2, call_s=5,
        robot={**ROBOT, "actions": action_type, "history_steps": 1}, **more,
    )  # fmt: skip


def openpi(folder, url, action_type="qpos", **more):
    return load(
        folder, adapter="openpi", url=url, serves="function", connect_s=2, call_s=5,
        profile=evalkit_profile(action_type), reset_message=None, **more,
    )  # fmt: skip


def evalkit_profile(action_type="qpos"):
    robot = {**ROBOT, "actions": action_type, "needs_instruction": True, "stateful": False, "one_at_a_time": True}
    request = {f"observation/{name}": {"picture": name} for name in SIZES} | {
        "observation/state": {"vector": "qpos", "as": [], "dtype": "float64"},
        "observation/endpose": {"vector": "ee", "as": [], "dtype": "float64"},
        "prompt": {"instruction": "text"},
        "step": {"number": "step"},
        "seed": {"number": "seed"},
        "reset": {"number": "first"},
    }
    return {"robot": robot, "request": request, "answer": {"key": "actions", "as": []}}


@pytest.fixture
def serving(request):
    servers = []

    def start(protocol, policy=None):
        served = ServedPolicy(policy or FunctionPolicy(), {"policy": "function"})
        server = TcpServer(served) if protocol == "tcp" else WebsocketServer(served, protocol)
        servers.append(server)
        return server.url

    yield start
    for server in servers:
        server.close()


@pytest.mark.parametrize("action_type", ["qpos", "ee"])
@pytest.mark.parametrize(("protocol", "client"), [("xpolicylab", xpolicylab), ("openpi", openpi)])
def test_actions_are_bitwise_those_of_the_policy_itself(serving, tmp_path, protocol, client, action_type):
    expected = episode_chunks(FunctionPolicy(action_type), seed=5)
    policy = client(tmp_path, serving(protocol, FunctionPolicy(action_type)), action_type)
    for _ in range(2):
        for chunk, own in zip(episode_chunks(policy, seed=5), expected, strict=True):
            np.testing.assert_array_equal(chunk, own)
    policy.close()


def test_legacy_tcp_carries_all_but_seed_and_instruction_at_reset(serving, tmp_path):
    home = FunctionPolicy()
    policy = xpolicylab(tmp_path, serving("tcp", home))
    chunks = episode_chunks(policy)
    assert [chunk.shape for chunk in chunks] == [(6, 14), (6, 14)]
    assert home.instructions == [""]
    policy.close()


@pytest.mark.parametrize(("protocol", "client"), [("xpolicylab", xpolicylab), ("openpi", openpi)])
def test_served_policies_keep_the_contract(serving, tmp_path, protocol, client):
    policy = client(tmp_path, serving(protocol))
    assert violations(policy) == []
    policy.close()


@pytest.mark.parametrize(("protocol", "client"), [("xpolicylab", xpolicylab), ("openpi", openpi), ("tcp", xpolicylab)])
def test_what_the_policy_raises_is_its_own_error_and_the_next_call_works(serving, tmp_path, protocol, client):
    policy = client(tmp_path, serving(protocol))
    policy.reset(example_episode(policy.spec, session="s", seed=1))
    observation = example_observations(policy.spec, session="s", seed=1, count=1)[0]
    with pytest.raises(PolicyError, match="told to explode") as caught:
        policy.act(replace(observation, instruction="explode"))
    assert caught.value.kind == "server_error"
    assert policy.act(observation).shape == (6, 14)
    policy.close()


def test_a_picture_of_another_size_is_refused_by_the_server(serving, tmp_path):
    policy = xpolicylab(tmp_path, serving("xpolicylab"))
    policy.reset(example_episode(policy.spec, session="s", seed=1))
    observation = example_observations(policy.spec, session="s", seed=1, count=1)[0]
    observation.images["left_camera"] = np.zeros((8, 8, 3), np.uint8)
    with pytest.raises(PolicyError, match=r"left_camera is uint8 \(8, 8, 3\); the policy needs uint8 \(24, 32, 3\)"):
        policy.act(observation)
    policy.close()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize("scheme", ["ws", "tcp"])
def test_no_server_is_a_broken_way_and_no_failure_of_the_policy(tmp_path, scheme):
    with pytest.raises(PolicyLostError, match="is it running") as caught:
        xpolicylab(tmp_path, f"{scheme}://127.0.0.1:{free_port()}")
    assert caught.value.kind == "policy_lost"


def test_a_server_that_starts_late_is_waited_for(tmp_path):
    port = free_port()
    servers = []

    def start():
        servers.append(WebsocketServer(ServedPolicy(FunctionPolicy(), {}), "xpolicylab", port=port))

    timer = threading.Timer(0.7, start)
    timer.start()
    policy = xpolicylab(tmp_path, f"ws://127.0.0.1:{port}")
    assert len(episode_chunks(policy)) == 2
    policy.close()
    servers[0].close()


def test_a_server_that_dies_or_hangs_is_a_broken_way(tmp_path):
    def handler(connection):
        connection.send(pack({}, "openpi"))
        request = unpack(connection.recv())
        if request["prompt"].startswith("Press"):
            time.sleep(1.0)

    with serve(handler, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        policy = load(
            tmp_path, adapter="openpi", url=url, serves="x", call_s=0.3, connect_s=1, profile=evalkit_profile()
        )
        policy.reset(example_episode(policy.spec, session="s", seed=1))
        observations = [example_observations(policy.spec, session="s", seed=seed, count=1)[0] for seed in (1, 2)]
        with pytest.raises(PolicyLostError, match=r"gave no answer within 0\.3 s") as caught:
            policy.act(observations[0])
        assert caught.value.kind == "policy_timeout"
        with pytest.raises(PolicyLostError, match="closed the connection"):
            policy.act(observations[1])
        policy.close()
        server.shutdown()


def test_another_harness_may_send_texts_nonsense_and_unknown_types(serving):
    with connect(serving("xpolicylab")) as link:
        link.send("a text means nothing")
        link.send(pack({"message_type": "dance", "message_id": "1"}, "msgpack_numpy"))
        answer = unpack(link.recv())
        assert (answer["message_type"], answer["message_id"]) == ("error", "1")
        assert answer["payload"]["code"] == "unknown_message_type"
        link.send(pack({"message_type": "infer", "message_id": "2", "payload": {"observation": {}}}, "msgpack_numpy"))
        answer = unpack(link.recv())
        assert answer["payload"]["code"] == "infer_failed"
        assert "lacks left_arm_joint_state" in answer["payload"]["message"]
        for kind in ("hello", "prepare_case", "trial_end", "heartbeat"):
            link.send(pack({"message_type": kind, "message_id": kind, "payload": {}}, "msgpack_numpy"))
            assert unpack(link.recv())["message_type"].startswith(kind)


def test_robotwins_own_client_gets_maps_it_understands(serving):
    observation = {
        "instruction": "go",
        "vision": {
            wire: {"color": np.zeros((24, 32, 3), np.uint8)}
            for wire in ("cam_head", "cam_left_wrist", "cam_right_wrist")
        },
        "state": {
            f"{side}_{part}": np.zeros(size, np.float32)
            for side in ("left", "right")
            for part, size in (("arm_joint_state", 6), ("ee_joint_state", 1))
        },
    }
    with connect(serving("xpolicylab")) as link:
        for step, kind in enumerate(("reset", "infer", "infer")):
            payload = {"observation": observation} if kind == "infer" else {"seed": 100000, "instruction": "go"}
            link.send(pack({"message_type": kind, "message_id": str(step), "payload": payload}, "msgpack_numpy"))
            answer = unpack(link.recv())["payload"]
    assert len(answer["actions"]) == 6
    assert {key: np.shape(value) for key, value in answer["actions"][0].items()} == {
        "left_arm_joint_state": (6,), "left_ee_joint_state": (1,), "right_arm_joint_state": (6,),
        "right_ee_joint_state": (1,), "action_type": (),
    }  # fmt: skip


def test_a_taken_port_is_bad_input(serving):
    port = int(serving("openpi").rsplit(":", 1)[1])
    with pytest.raises(UserError, match=rf"can't listen on 127\.0\.0\.1:{port}.*choose another --port"):
        WebsocketServer(ServedPolicy(FunctionPolicy(), {}), "openpi", port=port)


@pytest.mark.parametrize("dialect", ["openpi", "msgpack_numpy"])
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64", "bool"])
def test_arrays_cross_the_wire_bit_by_bit(dialect, dtype):
    array = np.arange(12).reshape(3, 4).astype(dtype)
    back = unpack(pack({"a": array, "n": np.float32(1.5), "list": [array[0]]}, dialect))
    np.testing.assert_array_equal(back["a"], array)
    assert back["a"].dtype == array.dtype
    assert back["a"].flags.writeable
    assert back["n"] == 1.5
    np.testing.assert_array_equal(from_json(to_json({"a": array}))["a"], array)


def test_bf16_tensors_cross_as_float32():
    torch = pytest.importorskip("torch")
    back = unpack(pack({"a": torch.full((2, 14), 0.5, dtype=torch.bfloat16)}, "openpi"))
    np.testing.assert_array_equal(back["a"], np.full((2, 14), 0.5, np.float32))


@pytest.mark.parametrize("dialect", ["openpi", "msgpack_numpy"])
def test_objects_never_cross_the_wire(dialect):
    with pytest.raises(TypeError, match="arrays of object"):
        pack({"a": np.array([object()])}, dialect)
    pickled = pack(
        {"x": {b"nd": True, b"type": "|O", b"kind": b"O", b"shape": [1], b"data": b"cos\nsystem\n"}}, dialect
    )
    with pytest.raises(PolicyError, match="can't be read"):
        unpack(pickled)


def test_the_msgpack_of_openpi_is_openpis():
    import msgpack

    raw = msgpack.unpackb(pack({"x": np.array([1, 2], np.int16)}, "openpi"))
    assert raw == {"x": {b"__ndarray__": True, b"data": b"\1\0\2\0", b"dtype": "<i2", b"shape": [2]}}
    raw = msgpack.unpackb(pack({"x": np.array([1, 2], np.int16)}, "msgpack_numpy"))
    assert raw == {"x": {b"nd": True, b"type": "<i2", b"kind": b"", b"shape": [2], b"data": b"\1\0\2\0"}}
