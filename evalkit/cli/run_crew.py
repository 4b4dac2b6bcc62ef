"""The crew of ``evalkit run``: simulators and policy servers, as the options say."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalkit.cli.backends import Backend
    from evalkit.cli.policy_choice import PolicyMaker
    from evalkit.cli.run_options import RunOptions
    from evalkit.cli.stopping import StopRequest
    from evalkit.pool.observer import Observer
    from evalkit.pool.ray_crew import RayCrew
    from evalkit.store.run import Run


@contextmanager
def open_crew(
    backend: Backend,
    makers: Mapping[str, PolicyMaker],
    options: RunOptions,
    stop: StopRequest,
    observer: Observer,
    *,
    one_at_a_time: bool = False,
    failed: dict[str, str] | None = None,
) -> Iterator[RayCrew]:
    """Start Ray and a crew for the time of the ``with`` block. Every option about crews is read here.

    Args:
        backend: makes the simulators.
        makers: makes each policy, by its digest.
        options: how to run.
        stop: takes over the signals again, which Ray sets.
        observer: told about devices, nodes and servers.
        one_at_a_time: whether a policy can't tell episodes apart: ``options.policy_copies`` then limits the workers.
        failed: see ``RayCrew``.

    Raises:
        UserError: a policy can't be loaded, copies of it would mix their episodes, or the cluster is too small.
    """
    from evalkit.cli import run_placement
    from evalkit.cli.run_cluster import examine_nodes
    from evalkit.pool.ray_crew import RayCrew
    from evalkit.pool.ray_session import head_is_lost, ray_session

    if one_at_a_time:
        run_placement.refuse_copies_of_a_client(options, makers.values())
    worker_memory = run_placement.worker_memory(options, options.workers)
    policy_environment = run_placement.policy_environment(options)
    plan = None
    if options.ray_address is None:
        plan = run_placement.make_plan(options, options.workers, len(makers), None, one_at_a_time=one_at_a_time)
    # A session has one slot for a policy server by itself.
    servers_more = (len(plan.servers) if plan is not None else 1) * len(makers) - 1
    with ray_session(options.workers + servers_more, options.ray_address, on_lost=stop.give_up):
        stop.install()
        workers = options.workers
        cpus: dict[str, int] = {}
        if plan is None:
            found = examine_nodes(backend, makers, workers, given=options.workers_given)
            cpus = {node.id: node.cpus for node in found.fitting}
            workers = min(workers, found.cpus - len(makers))
            plan = run_placement.make_plan(options, workers, len(makers), found, one_at_a_time=one_at_a_time)
        run_placement.say_where(plan, makers.values())
        crew = RayCrew(
            len(plan.workers),
            backend.make_simulator,
            makers,
            placement=plan,
            nodes=cpus,
            max_batch=options.max_batch,
            worker_memory_bytes=worker_memory,
            policy_environment=policy_environment,
            on_notice=observer.notice,
            failed=failed,
        )
        try:
            yield crew
        finally:
            if not head_is_lost():
                crew.close()


def record_notices(crew: RayCrew | None, runs: Iterable[Run]) -> None:
    """Write what happened to devices and servers into the runs it happened to."""
    for run in runs:
        for notice in crew.notices if crew is not None else ():
            run.append_incident("", "devices", 0, "", notice)


def repeat_notices(notices: Iterable[str]) -> None:
    """Say them once more, on standard error, where the session is summed up: the first time scrolls away."""
    for notice in notices:
        print(f"in this session: {notice}", file=sys.stderr)
