"""The crew of a real run: one Ray actor per simulator, and one per policy server, placed as a plan says.

What happens to a device happens to what stands on it: a server that dies is renewed alone; a device whose servers or
simulators fail again and again, and with whatever trial, is taken out of use, and what it did moves to the others. Of
several policies one that doesn't start any more is given up, and the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from evalkit.core.record import ErrorInfo
from evalkit.pool.blame import Blame, Flight
from evalkit.pool.bound import PROBE_LIMIT_S
from evalkit.pool.devices import Device
from evalkit.pool.jobs import Failed, Finished, Job, PolicyFactory, SimulatorFactory, makers_of, policy_of
from evalkit.pool.local_caller import POLICY_LIMIT_S
from evalkit.pool.node_loss import NODE_LOST, Nodes
from evalkit.pool.placement import Node, Placement, place, server_elsewhere, without
from evalkit.pool.policy_servers import Key, PolicyServers, ServerNotStartedError, cannot_be_loaded
from evalkit.pool.ray_session import head_is_lost, ray
from evalkit.pool.scheduler import CrewLostError
from evalkit.pool.sim_actors import SimActors
from evalkit.pool.within_memory import OUT_OF_MEMORY


class RayCrew:
    """Workers as Ray actors. Needs a ``ray_session``.

    Args:
        workers: number of sim actors.
        make_simulator: makes each one's simulator.
        make_policy: makes the policy in its server, or None if no job needs one. Several by policy digest: each has
            servers of its own, which serve the trials that name it.
        placement: where they run; by default one server on the CPU.
        nodes: CPUs of the nodes they may move to when one is lost, by Ray's id.
        policy_limit_s: see ``POLICY_LIMIT_S``.
        max_batch: most observations in one call of a policy; None: all that wait.
        worker_memory_bytes: a simulator that holds more is replaced; None: no limit.
        policy_environment: variables for the policy servers' processes.
        probe_limit_s: see ``PROBE_LIMIT_S``.
        on_notice: told at once what is in ``notices``.
        failed: if given, policies that can't be loaded, or not again while others run, are given up, and why is noted
            here by digest.

    Raises:
        UserError: the policy can't be loaded.
        CrewLostError: no device can be used.
    """

    def __init__(
        self,
        workers: int,
        make_simulator: SimulatorFactory,
        make_policy: PolicyFactory | Mapping[str, PolicyFactory] | None = None,
        *,
        placement: Placement | None = None,
        nodes: Mapping[str, int] | None = None,
        policy_limit_s: float = POLICY_LIMIT_S,
        max_batch: int | None = None,
        worker_memory_bytes: int | None = None,
        policy_environment: Mapping[str, str] | None = None,
        probe_limit_s: float = PROBE_LIMIT_S,
        on_notice: Callable[[str], None] = lambda notice: None,
        failed: dict[str, str] | None = None,
    ) -> None:
        self._plan = placement if placement is not None else place([Node()], workers)
        self.notices: list[ErrorInfo] = []
        """What happened to devices, in order."""
        self._on_notice, self._failed = on_notice, failed
        self._blame = Blame()
        self._lost: list[Device] = []
        self._nodes = Nodes(nodes or {})
        self._spared: set[int] = set()
        self._in_flight: dict[Any, Flight] = {}
        self._servers = PolicyServers(
            makers_of(make_policy),
            limit_s=policy_limit_s,
            max_batch=max_batch,
            environment=policy_environment or {},
        )
        self._sims = SimActors(make_simulator, worker_memory_bytes)
        try:
            self._sims.open(self._plan.workers)
            probes = self._sims.start_probes(probe_limit_s)
            self._start_servers()
            self._heed(self._sims.read_probes(probes, probe_limit_s))
        except BaseException:
            self.close()
            raise

    @property
    def size(self) -> int:
        """See ``Crew``."""
        return self._sims.size

    @property
    def placement(self) -> Placement:
        """Where things run at present."""
        return self._plan

    @property
    def batch_sizes(self) -> dict[int, int]:
        """Batch size -> number of batches of the present policy servers."""
        return self._servers.batch_sizes

    # ------------------------------------------------------------------------------------------- the contract
    def usable(self, worker: int) -> bool:
        """See ``Crew``."""
        return worker not in self._nodes.retired

    def serves(self, job: Job) -> bool:
        """See ``Crew``."""
        return not self._failed or policy_of(job, self._servers.policies) not in self._failed

    def start(self, worker: int, job: Job, attempt: int) -> None:
        """See ``Crew``. A job that failed on a device is tried again on the server of another, if there is one."""
        server = self._plan.workers[worker].server
        shunned = self._blame.shunned(job)
        if shunned and not self._plan.one_worker_each:
            server = server_elsewhere(self._plan, server, shunned, self._lost)
        road = self._servers.road(policy_of(job, self._servers.policies), server)
        flight = Flight(
            worker=worker,
            job=job,
            generation=road.generation if road is not None else None,
            server_device=self._plan.servers[server].device if road is not None else None,
            render_device=self._plan.workers[worker].device,
        )
        self._in_flight[self._sims.run(worker, job, attempt, road)] = flight

    def wait(self, timeout_s: float) -> list[tuple[int, Finished | Failed]]:
        """See ``Crew``.

        Raises:
            CrewLostError: the last device was taken out of use.
        """
        waiting = list(self._in_flight)
        ready, _ = ray.wait(waiting, num_returns=1, timeout=timeout_s)
        if ready:
            ready, _ = ray.wait(waiting, num_returns=len(waiting), timeout=0)
        return [self._collect(reference) for reference in ready]

    def kill(self, worker: int) -> None:
        """See ``Crew``."""
        self._in_flight = {ref: flight for ref, flight in self._in_flight.items() if flight.worker != worker}
        self._sims.replace(worker)

    def renew_policy(self, generation: int) -> None:
        """See ``Crew``. Only that server: the others go on."""
        key = self._servers.find(generation)
        if key is not None and generation not in self._spared:
            self._renew(key)

    def close(self) -> None:
        """See ``Crew``. Idle workers end their simulators themselves; busy ones and late ones are killed."""
        if not head_is_lost():
            self._note_memory()
        self._sims.close(busy={flight.worker for flight in self._in_flight.values()})
        self._servers.close()
        self._in_flight = {}

    # ---------------------------------------------------------------------------------------------- starting
    def _start_servers(self) -> None:
        failures = self._servers.start_all(dict(enumerate(self._plan.servers)))
        for policy in self._servers.policies:
            mine = {key: failure for key, failure in failures.items() if key[0] == policy}
            if not mine:
                continue
            first = cannot_be_loaded(next(iter(mine.values())))
            try:
                if len(mine) == len(self._plan.servers) and {failure.kind for failure in mine.values()} == {"raised"}:
                    raise CrewLostError(str(first))  # the same everywhere: it is the policy
                for key in mine:
                    if self._plan.servers[key[1]].device not in self._lost:
                        self._renew(key)
            except CrewLostError as error:
                if self._failed is None:
                    raise first from error
                self._failed[policy] = str(error)
                self._servers.drop(policy)

    def _heed(self, wrong: Mapping[Device, str]) -> None:
        """Take devices out of use on which simulators didn't start."""
        if wrong and len(wrong) == len([device for device in self._plan.devices if device not in self._lost]):
            raise CrewLostError(f"no GPU can be rendered on: {next(iter(wrong.values()))}")
        for device, reason in wrong.items():
            if device not in self._lost:
                self._take_out(device, reason)

    # ------------------------------------------------------------------------------------------------ failing
    def _collect(self, reference: Any) -> tuple[int, Finished | Failed]:
        flight = self._in_flight.pop(reference)
        result = self._sims.result(reference, flight.worker)
        if isinstance(result, Finished):
            self._blame.worked(flight)
            return flight.worker, result
        before, node = len(self.notices), self._plan.workers[flight.worker].node
        self._leave_lost_nodes()
        if result.error.kind == "worker_died" and node in self._nodes.lost:
            result = replace(result, error=replace(result.error, kind=NODE_LOST))
        elif result.scope == "policy_server":
            self._server_failed(flight, result)
        elif result.scope == "simulator":
            self._simulator_failed(flight, result)
        if said := "; ".join(notice.message for notice in self.notices[before:]):
            result = replace(result, error=replace(result.error, message=f"{result.error.message}; {said}"))
        return flight.worker, result

    def _server_failed(self, flight: Flight, result: Failed) -> None:
        key = self._servers.find(result.policy_generation)
        if key is None:
            return  # renewed or taken out already, for another job that met the same
        self._spared.discard(result.policy_generation)
        if result.error.kind == OUT_OF_MEMORY and self._servers.learnt(key):
            self._spared.add(result.policy_generation)  # smaller batches are the remedy
            return
        reason = self._blame.server_failed(flight, result, self._in_flight.values())
        if reason is not None and flight.server_device is not None:
            self._take_out(flight.server_device, reason)

    def _simulator_failed(self, flight: Flight, result: Failed) -> None:
        if flight.render_device in self._lost or len(self._plan.devices) - len(self._lost) < 2:
            return  # nowhere to go: the scheduler and the run's fuse decide
        reason = self._blame.simulator_failed(flight, result)
        if reason is not None and flight.render_device is not None:
            self._take_out(flight.render_device, reason)

    def _renew(self, key: Key) -> None:
        """Start a server again. If it doesn't come up, its policy, its device or all are given up (CrewLostError)."""
        policy, place = key[0], self._plan.servers[key[1]]
        if policy not in self._servers.policies:
            return  # given up meanwhile
        try:
            self._servers.start(key, place)
        except ServerNotStartedError as failure:
            self._leave_lost_nodes()
            if self._plan.servers[key[1]] != place:
                return  # its node was being lost just then, and it has moved
            reason = f"the policy server can't be started again: {failure}"
            is_alone = place.device is None or not self._servers.runs(policy)
            if is_alone and self._failed is not None and self._servers.others_run(policy):
                self._failed[policy] = reason
                self._servers.drop(policy)
                self._say("policy_given_up", f"one of the policies is given up, the others go on: {reason}")
            elif place.device is None:
                raise CrewLostError(reason) from failure
            else:
                self._take_out(place.device, f"the policy server doesn't start there: {failure}")

    def _take_out(self, device: Device, reason: str) -> None:
        """Take a device out of use; what it did moves to the others.

        Raises:
            CrewLostError: there are none.
        """
        self._lost.append(device)
        before = self._plan
        try:
            self._plan = without(before, self._lost)
        except ValueError:
            self._say("gpu_out_of_use", f"{device.title} is out of use, the last one: {reason}")
            raise CrewLostError(f"no GPU is left: {device.title} is out of use, the last one: {reason}") from None
        workers = [number for number, worker in enumerate(before.workers) if worker != self._plan.workers[number]]
        moved = f"{len(workers)} worker{'' if len(workers) == 1 else 's'} moved to the others"
        self._say("gpu_out_of_use", f"{device.title} is out of use from now on, {moved}: {reason}")
        for number, server in enumerate(before.servers):
            for policy in self._servers.policies if server.device == device else ():
                self._servers.stop((policy, number))
                if self._plan.servers[number].device != device:  # a server of its own moves with its worker
                    self._renew((policy, number))
        # A busy worker's trial fails by itself, its server being gone; a seed's check may come to its end.
        self._sims.move(self._plan.workers, workers, busy={flight.worker for flight in self._in_flight.values()})

    def _leave_lost_nodes(self) -> None:
        for node in self._nodes.newly_lost():
            for device in [one for one in self._plan.devices if one.node == node and one not in self._lost]:
                self._take_out(device, "its node is lost")
            try:
                move = self._nodes.move(self._plan, node)
            except ValueError as error:
                raise CrewLostError(f"a node is lost, and {error}") from None
            self._plan = move.plan
            self._say(NODE_LOST, move.describe())
            for key in [(policy, number) for policy in self._servers.policies for number in move.servers]:
                self._renew(key)
            self._sims.move(move.plan.workers, move.workers, busy={one.worker for one in self._in_flight.values()})

    def _say(self, kind: str, message: str) -> None:
        self.notices.append(ErrorInfo(kind=kind, message=message))
        self._on_notice(message)

    def _note_memory(self) -> None:
        for cap, times in self._servers.caps().values():
            if times:
                what = f"a policy ran out of memory {times} time{'' if times == 1 else 's'}"
                self._say(OUT_OF_MEMORY, f"{what}: batches were limited to {cap} observations (--max-batch {cap})")
