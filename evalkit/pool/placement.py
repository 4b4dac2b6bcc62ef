"""Where a run's policy servers and simulators go. Pure: decided from tables, carried out by ``RayCrew``.

Every policy server has one device, every simulator one server, and renders on that server's device. So a device's loss
costs what stood on it and nothing else, and pictures never cross from one device to another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from evalkit.core.errors import UserError
from evalkit.pool.devices import Device


@dataclass(frozen=True, kw_only=True)
class Node:
    """A machine of the cluster."""

    name: str = ""
    """Ray's id of the node; empty: the only one."""
    devices: tuple[Device, ...] = ()
    """What may be used of it."""
    slots: int | None = None
    """Processes it takes, or None if it takes whatever comes."""


@dataclass(frozen=True, kw_only=True)
class ServerPlace:
    """Where a policy server runs."""

    device: Device | None
    """None: the CPU."""
    node: str = ""
    share: float = 1.0
    """Its part of the device."""
    cpus: int = 1
    """CPUs it reserves; none if it had to move."""


@dataclass(frozen=True, kw_only=True)
class WorkerPlace:
    """Where a simulator runs."""

    server: int
    """Number of its policy server."""
    node: str = ""
    device: Device | None = None
    """What it renders on; None: whatever its node has first."""


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Servers and workers, both numbered from 0."""

    servers: tuple[ServerPlace, ...]
    workers: tuple[WorkerPlace, ...]
    one_worker_each: bool = False
    """The policy can't tell episodes apart: a server serves one worker."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices in use."""
        named = [*(server.device for server in self.servers), *(worker.device for worker in self.workers)]
        return tuple(dict.fromkeys(device for device in named if device is not None))

    def describe(self) -> list[str]:
        """One line a server, for people and for ``run.json``: its device, how many workers it has."""
        served = Counter(worker.server for worker in self.workers)
        lines = []
        for number, place in enumerate(self.servers):
            where = "CPU"
            if place.device is not None:
                where = f"{place.device.title} at PCI {place.device.bus_id}"
            if place.node:
                where += f" of node {place.node[:8]}"
            lines.append(f"{where}: {served[number]} worker{'' if served[number] == 1 else 's'}")
        return lines


def choose_devices(nodes: Sequence[Node], wanted: str | None) -> tuple[Node, ...]:
    """The nodes with those of their devices that are asked for.

    Args:
        nodes: the nodes with all devices that may be used.
        wanted: ``"all"``; a number of devices, over all nodes; or a comma-separated list of UUIDs and of
            ``nvidia-smi``'s numbers, which count on each node (a single number as ``"1,"``). None: all of the kind
            that the first node has most of.

    Raises:
        UserError: there is no such device, there aren't so many, or they are of several kinds.
    """
    everything = [device for node in nodes for device in node.devices]
    if wanted is None:
        kinds = Counter(device.name for device in everything)
        kind = max(kinds, key=lambda name: kinds[name], default="")
        return tuple(_keeping(node, [device for device in node.devices if device.name == kind]) for node in nodes)
    wanted = wanted.strip()
    if wanted == "all":
        chosen = everything
    elif wanted.isdigit():
        in_turn = [device for row in zip_longest(*(node.devices for node in nodes)) for device in row if device]
        if int(wanted) > len(in_turn):
            raise UserError(f"--gpus {wanted}: {_there(everything)}")
        chosen = in_turn[: int(wanted)]
    else:
        chosen = []
        for name in (part.strip() for part in wanted.split(",")):
            if not name:
                continue
            found = [device for device in everything if _is_called(device, name)]
            if not found or (len(found) > 1 and not name.isdigit()):
                many = "no GPU is" if not found else f"{len(found)} GPUs are"
                raise UserError(f"--gpus {wanted}: {many} called {name}; {_there(everything)}")
            chosen += found
    names = sorted({device.name for device in chosen})
    if len(names) > 1:
        # Another kind of GPU computes other last bits and other pictures: outcomes would depend on who served a trial.
        raise UserError(f"--gpus {wanted} is {' and '.join(names)}: name GPUs of one kind, for outcomes to be the same")
    return tuple(_keeping(node, [device for device in node.devices if device in chosen]) for node in nodes)


def place(
    nodes: Sequence[Node],
    workers: int,
    *,
    servers_per_gpu: int = 1,
    policies: int = 1,
    copies: int | None = None,
    at_most: bool = False,
) -> Placement:
    """A plan for these nodes and so many workers.

    Args:
        nodes: the nodes with the devices to use; the first is where the driver runs.
        workers: simulators wanted.
        servers_per_gpu: policy servers on each device.
        policies: how many policies the run has: each has a server of its own at every place.
        copies: for a policy that can't tell episodes apart: so many servers, each with one worker.
        at_most: whether fewer workers will do, if only one finds room.

    Raises:
        UserError: there isn't room for them.
    """
    wanted = max(1, workers if copies is None else min(workers, copies))
    spots = _spots(nodes, servers_per_gpu if copies is None else -(-wanted // max(1, _count(nodes))))
    on_cpu: list[tuple[str, Device | None]] = [(nodes[0].name, None)] * (1 if copies is None else wanted)
    places = spots[:wanted] or on_cpu
    each = Counter(device for _, device in places)
    servers = tuple(
        ServerPlace(device=device, node=node, share=1.0 if device is None else 1.0 / each[device] / policies)
        for node, device in places
    )
    free = {node.name: node.slots for node in nodes}
    for server in servers:
        _take(free, server.node, policies)
    found = tuple(_workers(servers, wanted, free))
    if len(found) < wanted and not (at_most and found):
        count = policies * len(servers)
        raise UserError(f"{wanted} workers and {count} policy servers need {wanted + count} CPUs: lower --workers")
    return Placement(servers=servers, workers=found, one_worker_each=copies is not None)


def without(plan: Placement, lost: Collection[Device]) -> Placement:
    """The plan after the loss of devices: simulators move to the servers that are left, evenly.

    Servers keep their numbers; nobody is tied to one whose device is lost. A server of its own moves to another device
    instead, with its only worker.

    Raises:
        ValueError: no server is left.
    """
    left = [number for number, server in enumerate(plan.servers) if server.device not in lost]
    if not left:
        raise ValueError("no server is left")
    if plan.one_worker_each:
        return _with_moved_servers(plan, lost, left)
    served = Counter(dict.fromkeys(left, 0))
    served.update(worker.server for worker in plan.workers if worker.server in left)
    workers = []
    for worker in plan.workers:
        if worker.server in left:
            workers.append(worker)
            continue
        near = [number for number in left if plan.servers[number].node == worker.node] or left
        server = min(near, key=lambda number: (served[number], number))
        served[server] += 1
        workers.append(_worker(plan.servers, server, worker.node))
    return replace(plan, workers=tuple(workers))


def server_elsewhere(plan: Placement, server: int, shunned: Collection[str], lost: Collection[Device]) -> int:
    """The first server whose device is neither lost nor shunned (UUIDs); the server itself if there is none."""

    def is_shunned(number: int) -> bool:
        device = plan.servers[number].device
        return device is not None and (device.uuid in shunned or device in lost)

    return next((number for number in (server, *range(len(plan.servers))) if not is_shunned(number)), server)


def _with_moved_servers(plan: Placement, lost: Collection[Device], left: Sequence[int]) -> Placement:
    load = Counter(plan.servers[number].device for number in left)
    nodes = {plan.servers[number].device: plan.servers[number].node for number in left}
    servers = list(plan.servers)
    for number, server in enumerate(servers):
        if server.device in lost:
            device = min(load, key=lambda one: load[one])
            load[device] += 1
            servers[number] = replace(server, device=device, node=nodes[device])
    workers = tuple(_worker(servers, worker.server, worker.node) for worker in plan.workers)
    return replace(plan, servers=tuple(servers), workers=workers)


def _workers(servers: Sequence[ServerPlace], wanted: int, free: dict[str, int | None]) -> list[WorkerPlace]:
    """So many workers, or as many as there is room for."""
    served: Counter[int] = Counter()
    workers = []
    for _ in range(wanted):
        near = [number for number, server in enumerate(servers) if _has_room(free, server.node)]
        server = min(near or range(len(servers)), key=lambda number: (served[number], number))
        node = servers[server].node
        if not near:  # the servers' nodes are full: the nodes that only compute take the rest
            others = [name for name in free if _has_room(free, name)]
            if not others:
                break
            node = max(others, key=lambda name: free[name] or 0)
        served[server] += 1
        _take(free, node, 1)
        workers.append(_worker(servers, server, node))
    return workers


def _worker(servers: Sequence[ServerPlace], server: int, node: str) -> WorkerPlace:
    is_near = servers[server].node == node
    return WorkerPlace(server=server, node=node, device=servers[server].device if is_near else None)


def _spots(nodes: Sequence[Node], servers_per_gpu: int) -> list[tuple[str, Device | None]]:
    """Places for servers, in the order to fill them: every device once, nodes in turn, before any device twice."""
    rows = zip_longest(*([(node.name, device) for device in node.devices] for node in nodes))
    once: list[tuple[str, Device | None]] = [spot for row in rows for spot in row if spot]
    return once * servers_per_gpu


def _count(nodes: Sequence[Node]) -> int:
    return sum(len(node.devices) for node in nodes)


def _has_room(free: dict[str, int | None], node: str) -> bool:
    room = free.get(node)
    return room is None or room > 0


def _take(free: dict[str, int | None], node: str, number: int) -> None:
    room = free.get(node)
    if room is not None:
        free[node] = room - number


def _keeping(node: Node, devices: Sequence[Device]) -> Node:
    return replace(node, devices=tuple(devices))


def _is_called(device: Device, name: str) -> bool:
    return device.index == int(name) if name.isdigit() else device.uuid.lower().startswith(name.lower())


def _there(devices: Sequence[Device]) -> str:
    if not devices:
        return "there is no GPU that may be used (see nvidia-smi and CUDA_VISIBLE_DEVICES)"
    return f"there are {len(devices)}: {', '.join(device.title for device in devices)}"
