"""What ``evalkit run`` does about a cluster of several nodes: join it, look at its nodes, and leave when it is lost."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

from evalkit.core.errors import UserError

if TYPE_CHECKING:
    from evalkit.cli.backends import Backend
    from evalkit.cli.policy_choice import PolicyMaker
    from evalkit.cli.stopping import StopRequest
    from evalkit.pool.cluster import Examination


GATHER_S = 180.0
"""Nodes of a job start Ray within seconds of each other, from a network file system that may be slow."""


@contextmanager
def joined(address: str | None, nodes: int | None, stop: StopRequest) -> Iterator[int]:
    """Member of the cluster for the time of the ``with`` block, which gets the number of workers it has CPUs for.

    Standard output stays what it is: the block ends with the results on it.

    Without an address, that of this machine, where Ray is started later.

    Args:
        address: see ``evalkit.pool.ray_session``.
        nodes: wait for so many; go on without those that don't come.
        stop: is told if the cluster is lost.

    Raises:
        UserError: there is no such cluster.
    """
    if address is None:
        if nodes is not None:
            raise UserError("--ray-nodes needs --ray-address: which cluster is it to wait for?")
        yield os.cpu_count() or 1
        return
    from evalkit.pool.cluster import cluster_nodes
    from evalkit.pool.ray_session import find_head, ray_session

    until = time.monotonic() + (GATHER_S if nodes is not None else 0.0)
    while nodes is not None and not stop.requested:
        try:
            find_head(address)
            break
        except UserError:
            if time.monotonic() > until:
                raise
            time.sleep(1.0)
    output = sys.stdout
    with ray_session(0, address, on_lost=stop.give_up), redirect_stdout(output):
        stop.install()
        while nodes is not None and len(cluster_nodes()) < nodes:
            if stop() or time.monotonic() > until:
                there = len(cluster_nodes())
                print(f"{there} of {nodes} nodes joined within {GATHER_S:g} s: going on with those", file=sys.stderr)
                break
            time.sleep(0.5)
        yield max(1, sum(node.cpus for node in cluster_nodes()) - 1)


def examine_nodes(backend: Backend, makers: Mapping[str, PolicyMaker], workers: int, *, given: bool) -> Examination:
    """Look at every node of the cluster before the first trial, and name those that can't be used.

    Args:
        backend: makes the simulators.
        makers: makes each policy.
        workers: simulators wanted.
        given: whether the user asked for so many: fewer are an error then.

    Raises:
        UserError: no node fits, or too few do.
    """
    from evalkit.pool.cluster import cluster_nodes, examine

    paths = sorted({maker.checkpoint for maker in makers.values() if maker.checkpoint is not None})
    nodes = cluster_nodes()
    found = examine(nodes, backend.fingerprint, backend.fingerprint(), paths)
    for name, reason in found.unfit.items():
        print(f"node {name} isn't used: {reason}", file=sys.stderr)
    cpus, servers = found.cpus, len(makers)
    if cpus <= servers or (given and cpus < workers + servers):
        count = f"{len(found.fitting)} of {len(nodes)} nodes can be used and have {cpus} CPUs"
        raise UserError(f"{workers} workers and {servers} policies need {workers + servers} CPUs: {count}")
    names = ", ".join(
        f"{node.name} ({node.cpus} CPUs{f', {node.gpus} GPUs' * bool(node.gpus)})" for node in found.fitting
    )
    print(f"nodes: {names}", file=sys.stderr)
    return found


def leave_at_once(code: int) -> None:
    """End this process without Ray's own farewell, which would wait for a head that is gone."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
