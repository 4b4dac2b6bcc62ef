"""The sim actors of a crew: started where the plan says, probed, replaced, moved."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from evalkit.core.record import ErrorInfo
from evalkit.pool.actors import SimActor
from evalkit.pool.bound import BoundSimulators, ProbeJob
from evalkit.pool.devices import Device
from evalkit.pool.jobs import Failed, Finished, Job, SimulatorFactory
from evalkit.pool.placement import WorkerPlace
from evalkit.pool.policy_server import PolicyRoad
from evalkit.pool.ray_session import on_node, ray

CLOSE_LIMIT_S = 10.0
PROBE_GRACE_S = 30.0
"""A worker kills a hanging simulator itself; one that hasn't answered so long after is killed."""


class SimActors:
    """Needs a ``ray_session``.

    Args:
        make_simulator: makes each one's simulator.
        memory_bytes: a simulator that holds more is replaced; None: no limit.
    """

    def __init__(self, make_simulator: SimulatorFactory, memory_bytes: int | None) -> None:
        self._make_simulator, self._memory_bytes = make_simulator, memory_bytes
        self._places: list[WorkerPlace] = []
        self._actors: list[Any] = []
        self._to_move: set[int] = set()

    @property
    def size(self) -> int:
        """Number of actors."""
        return len(self._actors)

    def open(self, places: Sequence[WorkerPlace]) -> None:
        """Start them."""
        self._places = list(places)
        for index in range(len(places)):
            self._actors.append(self._new(index))

    def run(self, worker: int, job: Job, attempt: int, road: PolicyRoad | None) -> Any:
        """Hand an idle one a job; returns a reference to its result."""
        if worker in self._to_move:
            self.replace(worker)
        return self._actors[worker].run.remote(job, attempt, road)

    def result(self, reference: Any, worker: int) -> Finished | Failed:
        """What came of a job. A dead actor is replaced."""
        try:
            result: Finished | Failed = ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            info = ErrorInfo(kind="worker_raised", message=str(error.cause), traceback_tail=str(error)[-2000:])
            result = Failed(scope="harness", error=info, worker=_name(worker))
        except ray.exceptions.RayError as error:  # its process died, or its node, or the node died before it came up
            self.replace(worker)
            info = ErrorInfo(kind="worker_died", message=" ".join(str(error).split())[:500])
            result = Failed(scope="harness", error=info, worker=_name(worker))
        return result

    def replace(self, worker: int) -> None:
        """Kill one and start another in its place."""
        self._to_move.discard(worker)
        ray.kill(self._actors[worker])
        self._actors[worker] = self._new(worker)

    def move(self, places: Sequence[WorkerPlace], workers: Collection[int], busy: Collection[int]) -> None:
        """Let workers go on elsewhere: idle ones at once, busy ones before their next job."""
        self._places = list(places)
        for worker in workers:
            self._to_move.add(worker)
            if worker not in busy and worker < len(self._actors):
                self.replace(worker)

    def start_probes(self, limit_s: float) -> dict[Any, int]:
        """Let every simulator start, and say where it renders. Reference -> worker, of those bound to a GPU.

        The others start early too, while the policy loads; nobody waits for their answers. One that can't start says so
        again in its first job.
        """
        job = ProbeJob(limit_s=limit_s)
        probes = {self.run(index, job, 1, None): index for index in range(self.size)}
        return {
            reference: index
            for reference, index in probes.items()
            if (device := self._places[index].device) is not None and device.can_render
        }

    def read_probes(self, probes: Mapping[Any, int], limit_s: float) -> dict[Device, str]:
        """Wait for the probes. Returns the devices on which one failed, and why."""
        wrong: dict[Device, str] = {}
        if not probes:
            return wrong
        limit_s += PROBE_GRACE_S
        answered, silent = ray.wait(list(probes), num_returns=len(probes), timeout=limit_s)
        for reference in answered:
            device = self._places[probes[reference]].device
            result = self.result(reference, probes[reference])
            if isinstance(result, Failed) and device is not None:
                wrong[device] = f"its render probe failed ({result.error.kind}): {result.error.message}"
        for reference in silent:
            if device := self._places[probes[reference]].device:
                wrong[device] = f"its render probe gave no answer within {limit_s:g} s"
            self.replace(probes[reference])
        return wrong

    def close(self, busy: Collection[int]) -> None:
        """End all. Idle ones end their simulators themselves; busy ones and late ones are killed."""
        farewells = [actor.close.remote() for index, actor in enumerate(self._actors) if index not in busy]
        if farewells:
            ray.wait(farewells, num_returns=len(farewells), timeout=CLOSE_LIMIT_S)
        for actor in self._actors:
            ray.kill(actor)
        self._actors = []

    def _new(self, index: int) -> Any:
        place = self._places[index]
        options: dict[str, Any] = {"num_cpus": 1, "max_restarts": 0}
        if place.node:
            options["scheduling_strategy"] = on_node(place.node)
        make = BoundSimulators(
            make=self._make_simulator, environment=place.device.environment if place.device is not None else {}
        )
        return ray.remote(**options)(SimActor).remote(_name(index), make, self._memory_bytes)


def _name(index: int) -> str:
    return f"worker-{index}"
