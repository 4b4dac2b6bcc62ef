from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest
from gpu_tables import TABLE, UUIDS, gpus

from evalkit.cli.policy_choice import PolicyMaker
from evalkit.cli.run_options import RunOptions
from evalkit.cli.run_placement import make_plan, refuse_copies_of_a_client, say_where, simulators_everywhere
from evalkit.core.errors import UserError
from evalkit.policy.settings import PolicySettings
from evalkit.pool.devices import TABLE_FILE
from evalkit.pool.placement import Node, choose_devices, place, server_elsewhere, without


def letters(plan_or_nodes):
    devices = [device for node in plan_or_nodes for device in node.devices]
    return "".join(device.uuid[4] for device in devices)


def loads(plan):
    return [Counter(worker.server for worker in plan.workers)[number] for number in range(len(plan.servers))]


ONE = [Node(devices=gpus())]
CLUSTER = [
    Node(name="n0", devices=gpus("ab", node="n0"), slots=8),
    Node(name="n1", devices=gpus("cd", node="n1"), slots=8),
    Node(name="n2", slots=8),
]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (None, "abcd"),
        ("all", "abcd"),
        ("2", "ab"),
        ("0", ""),
        ("0,2", "ac"),
        ("3,", "d"),
        (f"{UUIDS['d']},{UUIDS['b']}", "bd"),
        ("GPU-c", "c"),
    ],
)
def test_gpus_are_chosen_as_asked(wanted, expected):
    assert letters(choose_devices(ONE, wanted)) == expected


@pytest.mark.parametrize(
    ("wanted", "message"),
    [("5", "there are 4: GPU 0"), ("7,", "no GPU is called 7"), ("GPU-", "4 GPUs are called GPU-"), ("x", "called x")],
)
def test_gpus_that_are_not_there_are_an_error(wanted, message):
    with pytest.raises(UserError, match=message):
        choose_devices(ONE, wanted)


def test_a_number_is_spread_over_the_nodes_and_a_list_counts_on_each():
    assert letters(choose_devices(CLUSTER, "2")) == "ac"
    same_numbers = [CLUSTER[0], Node(name="n1", devices=gpus("cd", node="n1", index=0)[:1], slots=8)]
    assert letters(choose_devices(same_numbers, "0,")) == "ac"


def test_gpus_of_several_kinds_are_not_mixed():
    mixed = [Node(devices=(*gpus("a", name="NVIDIA A100"), *gpus("bc")))]
    assert letters(choose_devices(mixed, None)) == "bc"
    assert letters(choose_devices(mixed, "1,2")) == "bc"
    with pytest.raises(UserError, match="NVIDIA A100 and NVIDIA H200"):
        choose_devices(mixed, "all")


def test_one_server_a_gpu_and_workers_evenly_on_the_gpu_of_their_server():
    plan = place(ONE, 10)
    assert [server.device for server in plan.servers] == list(gpus())
    assert sorted(loads(plan)) == [2, 2, 3, 3]
    assert all(worker.device == plan.servers[worker.server].device for worker in plan.workers)
    assert {server.share for server in plan.servers} == {1.0}


def test_several_servers_share_a_gpu_after_each_has_one():
    plan = place([Node(devices=gpus("ab"))], 3, servers_per_gpu=2, policies=2)
    assert [server.device.uuid[4] for server in plan.servers] == list("aba")
    assert [server.share for server in plan.servers] == [0.25, 0.5, 0.25]
    assert loads(plan) == [1, 1, 1]


def test_there_are_never_more_servers_than_workers():
    assert len(place(ONE, 2).servers) == 2
    assert len(place(ONE, 2).devices) == 2


def test_without_a_gpu_one_server_runs_on_the_cpu():
    plan = place([Node()], 5)
    assert ([server.device for server in plan.servers], loads(plan)) == ([None], [5])
    assert plan.devices == ()


@pytest.mark.parametrize(("nodes", "copies"), [([Node()], 3), (ONE, 3), (ONE, 6)])
def test_copies_of_a_policy_that_cannot_tell_episodes_apart_have_a_worker_each(nodes, copies):
    plan = place(nodes, 16, copies=copies)
    assert loads(plan) == [1] * copies
    assert plan.one_worker_each
    used = Counter(server.device for server in plan.servers)
    assert max(used.values()) - min(used.values()) <= (1 if nodes == ONE else 0)


def test_simulators_go_near_their_server_first():
    plan = place(CLUSTER, 12)
    assert [(server.node, server.device.uuid[4]) for server in plan.servers] == [
        ("n0", "a"),
        ("n1", "c"),
        ("n0", "b"),
        ("n1", "d"),
    ]
    assert loads(plan) == [3, 3, 3, 3]
    assert Counter(worker.node for worker in plan.workers) == {"n0": 6, "n1": 6}
    assert all(worker.node == plan.servers[worker.server].node for worker in plan.workers)


def test_when_the_gpu_nodes_are_full_the_others_take_the_rest():
    plan = place(CLUSTER, 16)
    assert Counter(worker.node for worker in plan.workers) == {"n0": 6, "n1": 6, "n2": 4}
    far = [worker for worker in plan.workers if worker.node == "n2"]
    assert all(worker.device is None for worker in far)
    assert sorted(loads(plan)) == [4, 4, 4, 4]


def test_too_many_workers_are_an_error():
    with pytest.raises(UserError, match="lower --workers"):
        place(CLUSTER, 21)
    assert len(place(CLUSTER, 20).workers) == 20


def test_without_a_wish_there_are_as_many_workers_as_cpus_are_left():
    plan = place(CLUSTER, 23, at_most=True)  # all 24 CPUs but one, and there are four servers
    assert sorted(loads(plan)) == [5, 5, 5, 5]
    with pytest.raises(UserError, match="1 workers and 8 policy servers need 9 CPUs"):
        place([Node(slots=4)], 1, policies=8, at_most=True)


def test_the_workers_of_a_lost_gpu_go_to_the_others():
    plan = place(ONE, 9)
    lost = gpus("b")
    after = without(plan, lost)
    assert sorted(loads(after)) == [0, 3, 3, 3]
    assert loads(after)[1] == 0
    stayed = [(old, new) for old, new in zip(plan.workers, after.workers, strict=True) if old.device not in lost]
    assert all(old == new for old, new in stayed)
    assert all(worker.device == after.servers[worker.server].device for worker in after.workers)
    twice = without(after, (*lost, *gpus("a")))
    assert sorted(loads(twice)) == [0, 0, 4, 5]


def test_the_workers_of_a_lost_gpu_stay_on_their_node_if_they_can():
    plan = place(CLUSTER, 8)
    after = without(plan, gpus("a", node="n0"))
    moved = [worker for worker in after.workers if worker.node == "n0"]
    assert {after.servers[worker.server].device.uuid[4] for worker in moved} == {"b"}
    far = without(plan, gpus("ab", node="n0"))
    moved = [worker for worker in far.workers if worker.node == "n0"]
    assert moved
    assert all(worker.device is None for worker in moved)


def test_a_copy_of_its_own_moves_with_its_worker():
    plan = place(ONE, 4, copies=4)
    after = without(plan, gpus("c"))
    assert loads(after) == [1, 1, 1, 1]
    assert after.servers[2].device in gpus("abd")
    assert after.workers[2].device == after.servers[2].device


def test_the_last_gpu_cannot_be_done_without():
    with pytest.raises(ValueError, match="no server is left"):
        without(place(ONE, 4), gpus())


def test_a_plan_is_told_in_one_line_a_server():
    assert place([Node(devices=gpus("b"))], 3).describe() == [
        f"GPU 1 (NVIDIA H200, {UUIDS['b']}) at PCI 0000:3b:00: 3 workers"
    ]
    assert place([Node()], 1).describe() == ["CPU: 1 worker"]


def test_a_failed_job_goes_to_a_server_on_another_gpu():
    plan = place(ONE, 8)
    uuids = [server.device.uuid for server in plan.servers]
    assert server_elsewhere(plan, 2, (), ()) == 2
    assert server_elsewhere(plan, 2, uuids[2:3], ()) == 0
    assert server_elsewhere(plan, 0, uuids[:2], gpus("c")) == 3
    assert server_elsewhere(plan, 1, uuids, ()) == 1
    assert server_elsewhere(place([Node()], 2), 0, uuids, ()) == 0


@pytest.mark.parametrize(
    ("options", "alone", "expected"),
    [
        ({}, False, [("a", 2), ("b", 2), ("c", 1), ("d", 1)]),
        ({"gpus": "2"}, False, [("a", 3), ("b", 3)]),
        ({"gpus": "3,"}, False, [("d", 6)]),
        ({"gpus": "2", "servers_per_gpu": 2}, False, [("a", 2), ("b", 2), ("a", 1), ("b", 1)]),
        ({}, True, [("a", 1)]),
        ({"policy_copies": 3}, True, [("a", 1), ("b", 1), ("c", 1)]),
        ({"gpus": "0"}, False, [("-", 6)]),
    ],
)
def test_the_options_of_a_run_make_a_plan(tmp_path, monkeypatch, options, alone, expected):
    table = tmp_path / "gpus.csv"
    table.write_text(TABLE)
    monkeypatch.setenv(TABLE_FILE, str(table))
    plan = make_plan(RunOptions(workers=6, **options), 6, 1, None, one_at_a_time=alone)
    assert [
        (server.device.uuid[4] if server.device else "-", load)
        for server, load in zip(plan.servers, loads(plan), strict=True)
    ] == expected
    assert len(simulators_everywhere(8).devices) == 4


def test_gpus_that_are_not_there_stop_a_run_before_it_starts(tmp_path, monkeypatch):
    table = tmp_path / "gpus.csv"
    table.write_text(TABLE)
    monkeypatch.setenv(TABLE_FILE, str(table))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    with pytest.raises(UserError, match=r"--gpus 2: there are 1: GPU 1"):
        make_plan(RunOptions(workers=2, gpus="2"), 2, 1, None, one_at_a_time=False)


@pytest.mark.parametrize(
    ("values", "copies", "refused"),
    [
        ({"url": "ws://host:1"}, 2, True),
        ({"url": "ws://host:1"}, 1, False),
        ({"url": "ws://host:1", "reconnect": True}, 2, False),
        ({"checkpoint": "step_1"}, 2, False),
        (None, 2, False),
    ],
)
def test_copies_of_a_client_would_share_its_server(tmp_path, values, copies, refused):
    settings = values and PolicySettings(adapter="xpolicylab", name="evo", options=values, folder=tmp_path)
    maker = PolicyMaker(adapter="xpolicylab", checkpoint=None, device="cpu", settings=settings)
    with (
        pytest.raises(UserError, match=r"every copy of policy evo would ask the server at ws://host:1")
        if refused
        else nullcontext()
    ):
        refuse_copies_of_a_client(RunOptions(workers=2, policy_copies=copies), [maker])


@pytest.mark.parametrize(
    ("device", "checkpoint", "nodes", "said"),
    [("cpu", "w", ONE, True), ("cuda", "w", ONE, False), ("cpu", None, ONE, False), ("cpu", "w", [Node()], False)],
)
def test_gpus_that_policies_leave_alone_are_remarked_on(capsys, device, checkpoint, nodes, said):
    maker = PolicyMaker(adapter="house", checkpoint=checkpoint and Path(checkpoint), device=device)
    say_where(place(nodes, 1), [maker])
    assert ("policies compute on the CPU" in capsys.readouterr().err) is said
    client = PolicySettings(adapter="openpi", name="pi0", options={"url": "ws://host:1"}, folder=Path())
    say_where(place(ONE, 1), [PolicyMaker(adapter="openpi", checkpoint=None, device="cpu", settings=client)])
    assert capsys.readouterr().err == ""
