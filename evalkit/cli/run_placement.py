"""Which GPUs a run uses, and how much memory its processes may hold: the options, made into a plan."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalkit.cli.policy_choice import PolicyMaker
    from evalkit.cli.run_options import RunOptions
    from evalkit.pool.cluster import Examination
    from evalkit.pool.placement import Node, Placement

LEAST_BYTES = 3 << 30
MOST_BYTES = 8 << 30
SHARE = 0.7
"""Part of the machine's memory that its simulators may hold together."""
POLICY_SHARE = 0.8
"""Part of the machine's memory that one policy's own process may hold."""


def make_plan(
    options: RunOptions, workers: int, policies: int, cluster: Examination | None, *, one_at_a_time: bool
) -> Placement:
    """Where policy servers and simulators go. Needs Ray where there is a cluster.

    Args:
        options: how to run.
        workers: simulators wanted; for policies that can't tell episodes apart, ``--policy-copies`` decides.
        policies: how many policies have servers at the same time.
        cluster: its nodes, or None for this machine alone.
        one_at_a_time: whether a policy can't tell episodes apart.

    Raises:
        UserError: the options name GPUs that aren't there, or there isn't room.
    """
    from evalkit.pool.placement import choose_devices, place

    nodes = choose_devices(_nodes(options, cluster, policies), options.gpus)
    copies = options.policy_copies if one_at_a_time else None
    return place(
        nodes,
        workers,
        servers_per_gpu=options.servers_per_gpu,
        policies=policies,
        copies=copies,
        at_most=not options.workers_given,
    )


def simulators_everywhere(workers: int) -> Placement:
    """Simulators without a policy, over all GPUs of this machine that are of one kind.

    Raises:
        UserError: ``CUDA_VISIBLE_DEVICES`` names what isn't there.
    """
    from evalkit.pool.devices import read_devices
    from evalkit.pool.placement import Node, choose_devices, place

    return place(choose_devices([Node(devices=read_devices())], None), workers)


def say_where(plan: Placement, makers: Iterable[PolicyMaker] = ()) -> None:
    """On standard error, if there is more than one server to speak of, or GPUs that policies leave alone."""
    if len(plan.servers) > 1:
        print(f"policy servers: {'; '.join(plan.describe())}", file=sys.stderr)
    if plan.devices and any(maker.device == "cpu" and _computes_here(maker) for maker in makers):
        what = "policies compute on the CPU, for torch sees no GPU in the process that evalkit was started in"
        print(f"{what}: start it where there is one, with a torch for it", file=sys.stderr)


def _computes_here(maker: PolicyMaker) -> bool:
    """Whether a policy has weights and isn't a client of somebody's server."""
    return maker.checkpoint is not None or (maker.settings is not None and "url" not in maker.settings.options)


def refuse_copies_of_a_client(options: RunOptions, makers: Iterable[PolicyMaker]) -> None:
    """Copies of a policy that runs behind a server are clients of that one server, which would mix their episodes.

    A server that is reached by a connection for each episode (``reconnect``) keeps them apart by that.

    Raises:
        UserError: several copies of such a policy are asked for.
    """
    from evalkit.core.errors import UserError

    for maker in makers:
        settings = maker.settings.options if maker.settings is not None else {}
        if options.policy_copies > 1 and "url" in settings and not settings.get("reconnect"):
            assert maker.settings is not None
            what = f"--policy-copies {options.policy_copies}: every copy of policy {maker.settings.name} would ask the"
            remedy = "which holds one episode at a time: leave it out (or see one_at_a_time in the policy's guide)"
            raise UserError(f"{what} server at {settings['url']}, {remedy}")


def worker_memory(options: RunOptions, workers: int) -> int:
    """Resident memory after which a simulator's process is replaced, in bytes.

    By default the simulators' even part of ``SHARE`` of the memory, between 3 and 8 GiB: a fresh one holds less, also
    with official assets, and one that grew should go before the machine has none left.

    Raises:
        UserError: ``--worker-memory`` is no amount of memory.
    """
    import psutil

    from evalkit.core.memory import parse_bytes

    if options.worker_memory is not None:
        return parse_bytes(options.worker_memory, "--worker-memory")
    even = int(SHARE * psutil.virtual_memory().total / max(1, workers))
    return max(LEAST_BYTES, min(MOST_BYTES, even))


def policy_environment(options: RunOptions) -> dict[str, str]:
    """Variables for the policy servers' processes.

    Raises:
        UserError: ``--policy-memory`` is no amount of memory.
    """
    import psutil

    from evalkit.core.memory import parse_bytes
    from evalkit.policy.supervision import LIMIT

    limit = int(POLICY_SHARE * psutil.virtual_memory().total)
    if options.policy_memory is not None:
        limit = parse_bytes(options.policy_memory, "--policy-memory")
    return {LIMIT: str(limit)}


def _nodes(options: RunOptions, cluster: Examination | None, policies: int) -> list[Node]:
    from evalkit.cli.run_options import no_gpus
    from evalkit.pool.devices import read_devices
    from evalkit.pool.placement import Node

    hidden = no_gpus(options.gpus)  # a driver that hangs may be the reason
    if cluster is None:
        return [Node(devices=() if hidden else read_devices())]
    from evalkit.pool.cluster_devices import read_everywhere

    devices = {} if hidden else read_everywhere([node.id for node in cluster.fitting])
    nodes = [Node(name=node.id, devices=devices.get(node.id, ()), slots=node.cpus) for node in cluster.fitting]
    # Without GPUs the first node gets the policies, and a head may have been started without CPUs.
    return sorted(nodes, key=lambda node: (node.slots or 0) < policies)
