"""The pool in one process: for tests and debuggers. The same interface, no parallelism, no deadlines."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from evalkit.core.record import ErrorInfo
from evalkit.episode.decide import LocalDecider
from evalkit.policy.contract import Policy
from evalkit.pool.jobs import Failed, Finished, Job, PolicyFactory, SimulatorFactory, makers_of, policy_of
from evalkit.pool.worker import Worker


class InlineCrew:
    """Workers that take turns in the calling process. The policy is shared, as it is behind a server.

    Args:
        workers: number of workers.
        make_simulator: makes each worker's simulator.
        make_policy: makes the policy, or None if no job needs one. Several by policy digest, as for ``RayCrew``.
        newest_first: finish jobs in reverse order of their start, to show that order doesn't matter.
        failed: if given, policies that can't be loaded are left out, and why is noted here by digest.
    """

    def __init__(
        self,
        workers: int,
        make_simulator: SimulatorFactory,
        make_policy: PolicyFactory | Mapping[str, PolicyFactory] | None = None,
        *,
        newest_first: bool = False,
        failed: dict[str, str] | None = None,
    ) -> None:
        self._policies: dict[str, Policy] = {}
        for name, make in makers_of(make_policy).items():
            try:
                self._policies[name] = make()
            except Exception as error:
                if failed is None:
                    raise
                failed[name] = f"the policy can't be loaded: {type(error).__name__}: {error}"
        self._deciders = {name: LocalDecider(policy) for name, policy in self._policies.items()}
        self._workers = [Worker(f"worker-{index}", make_simulator, None) for index in range(workers)]
        self._started: deque[tuple[int, Job, int]] = deque()
        self.notices: list[ErrorInfo] = []
        """What happened to devices: nothing, here there are none."""
        self._newest_first = newest_first

    @property
    def size(self) -> int:
        """See ``Crew``."""
        return len(self._workers)

    def usable(self, worker: int) -> bool:
        """See ``Crew``."""
        return True

    def serves(self, job: Job) -> bool:
        """See ``Crew``."""
        return True

    def start(self, worker: int, job: Job, attempt: int) -> None:
        """See ``Crew``; the job runs in ``wait``."""
        self._started.append((worker, job, attempt))

    def wait(self, timeout_s: float) -> list[tuple[int, Finished | Failed]]:
        """Run one started job."""
        worker, job, attempt = self._started.pop() if self._newest_first else self._started.popleft()
        self._workers[worker].decider = self._deciders.get(policy_of(job, self._deciders))
        return [(worker, self._workers[worker].run(job, attempt))]

    def kill(self, worker: int) -> None:
        """Forget the worker's job and end its simulator."""
        self._started = deque(entry for entry in self._started if entry[0] != worker)
        self._workers[worker].drop_simulator()

    def renew_policy(self, generation: int) -> None:
        """Nothing to renew: there is no server."""

    def close(self) -> None:
        """See ``Crew``."""
        for worker in self._workers:
            worker.drop_simulator()
        for policy in self._policies.values():
            policy.close()
