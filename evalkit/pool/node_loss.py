"""Where things go when a node is lost: decided from a plan and the nodes that are left, carried out by ``RayCrew``.

Trials that were on the node are tried again elsewhere, and it isn't their fault: they keep their attempts. Its workers
take what CPUs are free on other nodes; those that find none are retired. A policy server on the CPU moves without
reserving one, since none may be free; servers on the node's GPUs are lost with these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from evalkit.pool.cluster import alive_nodes
from evalkit.pool.placement import Placement
from evalkit.pool.scheduler import NODE_LOST

__all__ = ["NODE_LOST", "Move", "Nodes", "without_node"]


@dataclass(frozen=True, kw_only=True)
class Move:
    """A plan without a node."""

    node: str

    plan: Placement
    servers: tuple[int, ...]
    """Numbers of the servers that moved: they are to be started."""
    workers: tuple[int, ...]
    """Numbers of the workers that moved."""
    retired: tuple[int, ...]
    """Numbers of the workers there is no room for."""

    def describe(self) -> str:
        """For people."""
        parts = [f"{len(self.workers)} workers moved"] if self.workers or not self.retired else []
        parts += [f"{len(self.retired)} workers have nowhere to go"] if self.retired else []
        parts += ["the policy server moved"] if self.servers else []
        return f"node {self.node[:6]} is lost: {', '.join(parts)}"


class Nodes:
    """The nodes a crew may use, and who has no place any more.

    Args:
        cpus: id -> CPUs. Empty: this machine alone, whose loss is everybody's.
    """

    def __init__(self, cpus: Mapping[str, int]) -> None:
        self._cpus = dict(cpus)
        self.retired: set[int] = set()
        """Workers without a place."""
        self.lost: set[str] = set()

    def newly_lost(self) -> list[str]:
        """Nodes that are gone since the last time."""
        gone = sorted(self._cpus.keys() - alive_nodes()) if self._cpus else []
        self.lost.update(gone)
        for node in gone:
            del self._cpus[node]
        return gone

    def move(self, plan: Placement, node: str) -> Move:
        """Find other places for what was on a lost node.

        Raises:
            ValueError: there is no other node, or no worker is left.
        """
        found = without_node(plan, node, self._cpus, self.retired)
        self.retired.update(found.retired)
        if len(self.retired) == len(plan.workers):
            raise ValueError("no CPU is left for a worker")
        return found


def without_node(plan: Placement, node: str, cpus: Mapping[str, int], retired: Collection[int] = ()) -> Move:
    """The plan after the loss of a node.

    Args:
        plan: the plan so far. Servers on the node's GPUs are given up already.
        node: Ray's id of the node.
        cpus: id -> CPUs of the nodes that are left.
        retired: workers that had no room before.

    Raises:
        ValueError: no node is left.
    """
    if not cpus:
        raise ValueError("no node is left")
    load: Counter[str] = Counter()
    for server in plan.servers:
        load[server.node] += server.cpus
    for number, worker in enumerate(plan.workers):
        load[worker.node] += number not in retired
    servers, moved_servers = list(plan.servers), []
    for number, server in enumerate(servers):
        if server.node == node and server.device is None:
            # Not on a head without CPUs of its own, if another node is as full.
            there = max(cpus, key=lambda name: (cpus[name] - load[name], cpus[name], name))
            servers[number] = replace(server, node=there, cpus=0)
            moved_servers.append(number)
    workers, moved, stranded = list(plan.workers), [], []
    for number, worker in enumerate(workers):
        if worker.node != node or number in retired:
            continue
        there = max(cpus, key=lambda name: (cpus[name] - load[name], name))
        if cpus[there] <= load[there]:
            stranded.append(number)
            continue
        load[there] += 1
        server = servers[worker.server]
        workers[number] = replace(worker, node=there, device=server.device if server.node == there else None)
        moved.append(number)
    new = replace(plan, servers=tuple(servers), workers=tuple(workers))
    return Move(node=node, plan=new, servers=tuple(moved_servers), workers=tuple(moved), retired=tuple(stranded))
