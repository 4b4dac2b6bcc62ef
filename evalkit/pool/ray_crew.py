"""The crew of a real run: one Ray actor per simulator, and one for the policy."""

from __future__ import annotations

from typing import Any

from evalkit.core.errors import HarnessError, UserError
from evalkit.core.record import ErrorInfo
from evalkit.pool.actors import POLICY_LIMIT_S, PolicyRoad, PolicyServer, SimActor
from evalkit.pool.jobs import Failed, Finished, Job, PolicyFactory, SimulatorFactory
from evalkit.pool.ray_session import ray

START_LIMIT_S = 600.0
"""Loading a large policy takes minutes."""
CLOSE_LIMIT_S = 10.0


class RayCrew:
    """Workers as Ray actors. Needs a ``ray_session``.

    Args:
        workers: number of sim actors.
        make_simulator: makes each one's simulator.
        make_policy: makes the policy in its server, or None if no job needs one.
        gpus: GPUs reserved for the policy server: 0 or 1.
        policy_limit_s: see ``POLICY_LIMIT_S``.

    Raises:
        UserError: the policy can't be loaded.
    """

    def __init__(
        self,
        workers: int,
        make_simulator: SimulatorFactory,
        make_policy: PolicyFactory | None = None,
        *,
        gpus: int = 0,
        policy_limit_s: float = POLICY_LIMIT_S,
    ) -> None:
        self._make_simulator = ray.put(make_simulator)
        self._make_policy, self._gpus, self._policy_limit_s = make_policy, gpus, policy_limit_s
        self._actors = [self._new_actor(index) for index in range(workers)]
        self._in_flight: dict[Any, int] = {}
        self._road: PolicyRoad | None = self._new_road(0) if make_policy else None

    @property
    def size(self) -> int:
        """See ``Crew``."""
        return len(self._actors)

    @property
    def batch_sizes(self) -> dict[int, int]:
        """Batch size -> number of batches of the present policy server."""
        if self._road is None:
            return {}
        sizes: dict[int, int] = ray.get(self._road.server.batch_sizes.remote(), timeout=self._policy_limit_s)
        return sizes

    def start(self, worker: int, job: Job, attempt: int) -> None:
        """See ``Crew``."""
        self._in_flight[self._actors[worker].run.remote(job, attempt, self._road)] = worker

    def wait(self, timeout_s: float) -> list[tuple[int, Finished | Failed]]:
        """See ``Crew``."""
        ready, _ = ray.wait(list(self._in_flight), num_returns=1, timeout=timeout_s)
        return [self._collect(reference) for reference in ready]

    def kill(self, worker: int) -> None:
        """See ``Crew``."""
        self._in_flight = {reference: index for reference, index in self._in_flight.items() if index != worker}
        ray.kill(self._actors[worker])
        self._actors[worker] = self._new_actor(worker)

    def renew_policy(self, generation: int) -> None:
        """See ``Crew``."""
        if self._road is not None and self._road.generation == generation:
            ray.kill(self._road.server)
            self._road = self._new_road(generation + 1)

    def close(self) -> None:
        """See ``Crew``. Idle workers end their simulators themselves; busy ones and late ones are killed."""
        busy = set(self._in_flight.values())
        farewells = [actor.close.remote() for index, actor in enumerate(self._actors) if index not in busy]
        if farewells:
            ray.wait(farewells, num_returns=len(farewells), timeout=CLOSE_LIMIT_S)
        for actor in self._actors:
            ray.kill(actor)
        if self._road is not None:
            ray.kill(self._road.server)
        self._actors, self._in_flight, self._road = [], {}, None

    def _collect(self, reference: Any) -> tuple[int, Finished | Failed]:
        worker = self._in_flight.pop(reference)
        try:
            result: Finished | Failed = ray.get(reference)
        except ray.exceptions.RayActorError as error:
            self._actors[worker] = self._new_actor(worker)
            info = ErrorInfo(kind="worker_died", message=" ".join(str(error).split())[:500])
            result = Failed(scope="harness", error=info, worker=_name(worker))
        except ray.exceptions.RayTaskError as error:
            info = ErrorInfo(kind="worker_raised", message=str(error.cause), traceback_tail=str(error)[-2000:])
            result = Failed(scope="harness", error=info, worker=_name(worker))
        return worker, result

    def _new_actor(self, index: int) -> Any:
        actor_class = ray.remote(num_cpus=1, max_restarts=0)(SimActor)
        return actor_class.remote(_name(index), self._make_simulator)

    def _new_road(self, generation: int) -> PolicyRoad:
        server_class = ray.remote(num_cpus=1, num_gpus=self._gpus, max_restarts=0, max_concurrency=1000)(PolicyServer)
        server = server_class.remote(self._make_policy)
        try:
            spec = ray.get(server.spec.remote(), timeout=START_LIMIT_S)
        except ray.exceptions.GetTimeoutError as error:
            raise HarnessError(f"the policy server didn't start within {START_LIMIT_S:g} s") from error
        except ray.exceptions.RayActorError as error:
            raise UserError(f"the policy can't be loaded: {' '.join(str(error).split())[-600:]}") from error
        return PolicyRoad(server=server, spec=spec, generation=generation, limit_s=self._policy_limit_s)


def _name(index: int) -> str:
    return f"worker-{index}"
