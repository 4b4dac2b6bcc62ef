"""A cluster of several nodes on this machine: nodes and the head are lost, and nodes that don't fit aren't used."""

import time
from types import SimpleNamespace

import pytest
from pool_kit import essence

from evalkit.cli.run_cluster import joined
from evalkit.cli.stopping import StopRequest
from evalkit.core.errors import UserError
from evalkit.drill.local_cluster import local_cluster
from evalkit.drill.lost_node import ClusterCommand, replayed_in_process
from evalkit.pool import cluster, ray_session
from evalkit.pool.cluster import NodeReport, difference, software
from evalkit.pool.devices import Device
from evalkit.pool.node_loss import without_node
from evalkit.pool.placement import Node, Placement, ServerPlace, WorkerPlace, place
from evalkit.pool.ray_session import find_head
from evalkit.store.run import open_run


def test_a_lost_node_costs_nothing_and_a_lost_head_stops_the_run(tmp_path):
    command = ClusterCommand(tmp_path, trials=60)
    with local_cluster(0, 2, 2) as cluster:
        process = command.start(cluster.address, "--ray-nodes", "3")
        command.wait_for(process, 5)
        server = cluster.node_of("PolicyServer")
        assert server is not None
        cluster.lose(server)
        command.wait_for(process, command.recorded() + 6)  # more than were in flight
        until = time.monotonic() + 30
        while cluster.node_of("PolicyServer") != 3 - server and time.monotonic() < until:
            time.sleep(0.1)
        assert cluster.node_of("PolicyServer") == 3 - server, f"renewed on the other node: {command.output()}"
        cluster.lose(0)
        assert process.wait(timeout=40) == 75, command.output()
    said = command.output()
    assert "2 workers have nowhere to go, the policy server moved" in said or "1 workers have nowhere to go" in said
    assert "stopped: Ray's head at" in said

    kinds = {incident["error"]["kind"] for incident in open_run(command.run).incidents()}
    assert kinds & {"node_lost", "policy_server_died"}
    with local_cluster(3) as cluster:
        again = command.start(cluster.address, "--ray-nodes", "1")
        assert again.wait(timeout=60) == 0, command.output()
    run = open_run(command.run)
    assert len(run.history()) == len(run.records()) == len(run.plan) == 120
    assert run.is_done
    assert essence(run) == essence(replayed_in_process(run, tmp_path / "undisturbed"))


# ------------------------------------------------------------------------------------------------- where things go
def test_workers_take_what_is_free_and_the_rest_is_retired():
    nodes = [Node(name="a", slots=3), Node(name="b", slots=2), Node(name="c", slots=3)]
    plan = place(nodes, 6)
    on = {name: [n for n, worker in enumerate(plan.workers) if worker.node == name] for name in "abc"}
    assert plan.servers[0].node == "a"
    assert {name: len(numbers) for name, numbers in on.items()} == {"a": 2, "b": 1, "c": 3} or len(on["a"]) == 2

    move = without_node(plan, "a", {"b": 2, "c": 3})
    assert move.servers == (0,)
    assert move.plan.servers[0].node in ("b", "c")
    assert move.plan.servers[0].cpus == 0, "no CPU is free for it: the workers keep theirs"
    assert sorted(move.workers + move.retired) == on["a"]
    kept = [worker.node for number, worker in enumerate(move.plan.workers) if number not in move.retired]
    assert all(kept.count(name) <= cpus for name, cpus in {"b": 2, "c": 3}.items())
    assert len(kept) == 5

    last = without_node(move.plan, "c", {"b": 2}, move.retired)
    kept = [
        worker.node for number, worker in enumerate(last.plan.workers) if number not in (*move.retired, *last.retired)
    ]
    assert kept == ["b", "b"]
    assert set(last.retired).isdisjoint(move.retired)
    with pytest.raises(ValueError, match="no node is left"):
        without_node(last.plan, "b", {})


def test_the_policy_server_avoids_a_head_without_cpus():
    worker = WorkerPlace(server=0, node="b", device=None)
    plan = Placement(servers=(ServerPlace(node="lost", device=None),), workers=(worker, worker))
    move = without_node(plan, "lost", {"z-head": 0, "b": 2})
    assert move.plan.servers[0].node == "b"


def test_a_moved_worker_renders_on_its_servers_gpu_only_beside_it():
    gpus = {name: Device(index=0, uuid=f"GPU-{name}", bus_id="0000:01:00", name="g", node=name) for name in "ab"}
    plan = Placement(
        servers=tuple(ServerPlace(device=gpus[name], node=name) for name in "ab"),
        workers=(WorkerPlace(server=0, node="a", device=gpus["a"]), WorkerPlace(server=1, node="c")),
    )
    move = without_node(plan, "c", {"a": 2, "b": 4})
    assert move.servers == ()
    assert move.plan.workers[1] == WorkerPlace(server=1, node="b", device=gpus["b"])
    elsewhere = without_node(plan, "c", {"a": 4, "b": 1})
    assert elsewhere.plan.workers[1] == WorkerPlace(server=1, node="a", device=None)


# ------------------------------------------------------------------------------------------------- what doesn't fit
def test_a_node_that_differs_is_named_with_what_differs():
    fine = NodeReport(host="n1", software=software(), backend={"assets": "x", "code": "y"})
    assert difference(fine, software(), {"assets": "x", "code": "y"}) == ""
    other = NodeReport(
        host="n2",
        software={**software(), "evalkit": "0.0.9 abc", "Python": "3.12"},
        backend={"assets": "z", "code": "y"},
    )
    text = difference(other, software(), {"assets": "x", "code": "y"})
    assert "Python 3.12, the driver's is" in text
    assert "evalkit 0.0.9 abc, the driver's is" in text
    assert "assets of simulators: 'z', the driver's: 'x'" in text
    none = NodeReport(host="n3", software=software(), backend=None, trouble="no simulator: not installed")
    assert difference(none, software(), {"assets": "x"}) == "no simulator: not installed"


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense", "localhost:0"])
def test_an_address_without_ray_is_known_at_once(address):
    with pytest.raises(UserError, match=f"--ray-address {address}: (nothing answers|give HOST:PORT)"):
        find_head(address)


def test_a_port_of_something_else_is_not_rays_head():
    import socket
    import threading

    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(UserError, match="isn't Ray's head"):
            find_head(f"127.0.0.1:{server.getsockname()[1]}")
        thread.join()


def test_results_stay_on_standard_output_whatever_ray_prints(monkeypatch, capsys):
    """The table is printed while the command is still a member of the cluster."""
    node = cluster.ClusterNode(id="n1", name="n1", cpus=4, gpus=0)
    monkeypatch.setattr(cluster, "cluster_nodes", lambda: (node,))
    monkeypatch.setattr(ray_session, "ray", SimpleNamespace(is_initialized=lambda: True))
    monkeypatch.setattr(StopRequest, "install", lambda self: None)
    with joined("head:6379", None, StopRequest()) as most_workers:
        with ray_session.ray_session(most_workers):
            print("a dead worker")
        print("the table")
    assert most_workers == 3
    assert capsys.readouterr() == ("the table\n", "a dead worker\n")


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (
            "Version mismatch: The cluster was started with:\n    Ray: 2.9.0",
            "Version mismatch: The cluster was started with",
        ),
        ("Can't find a node_ip_address.json", "start evalkit on one of its nodes, as the user who started Ray"),
    ],
)
def test_a_cluster_that_cannot_be_joined_is_one_line(monkeypatch, raised, said):
    from evalkit.pool import ray_session

    def refuse(**options):
        assert options["runtime_env"]["env_vars"]["EVALKIT_HOME"] == "/shared/evalkit"
        raise RuntimeError(raised)

    monkeypatch.setenv("EVALKIT_HOME", "/shared/evalkit")
    monkeypatch.setattr(ray_session.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray_session.ray, "init", refuse)
    monkeypatch.setattr(ray_session, "find_head", lambda address: address)
    with pytest.raises(UserError, match=said) as caught, ray_session.ray_session(0, "head:6379"):
        pass
    assert "\n" not in str(caught.value)
