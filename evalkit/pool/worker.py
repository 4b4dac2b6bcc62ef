"""A worker: one simulator, jobs one after another, every failure turned into a value."""

from __future__ import annotations

import socket
import traceback

from evalkit.core.errors import PolicyLostError, SimulatorError
from evalkit.core.record import ErrorInfo
from evalkit.episode.decide import Decider
from evalkit.policy.supervision import resident_bytes
from evalkit.pool.jobs import Failed, Finished, Job, Scope, SimulatorFactory, Tools
from evalkit.sim.contract import Simulator
from evalkit.sim.start import START

JOBS_PER_SIMULATOR = 200
"""A simulator is replaced after so many jobs, or sooner if it holds too much: task code leaks, and a fresh one costs
seconds."""
LEAST_JOBS = 10
"""A simulator does at least so many jobs, however much it holds: a limit below what a fresh one needs must not mean a
start for every trial."""
TRACEBACK_LINES = 20


class Worker:
    """Runs jobs. The simulator starts with the first job and is replaced after a failure.

    Args:
        name: names the worker and its log.
        make_simulator: makes its simulators.
        decider: the policy, if jobs need one.
        memory_bytes: a simulator whose process holds more after a job, and not its first ones, is replaced; None: no
            limit.
    """

    def __init__(
        self,
        name: str,
        make_simulator: SimulatorFactory,
        decider: Decider | None,
        memory_bytes: int | None = None,
    ) -> None:
        self.name = name
        self.decider = decider
        self._make_simulator, self._memory_bytes = make_simulator, memory_bytes
        self._sim: Simulator | None = None
        self._jobs = 0
        self._node = socket.gethostname()

    def run(self, job: Job, attempt: int) -> Finished | Failed:
        """Do one job."""
        try:
            if self._jobs >= JOBS_PER_SIMULATOR or getattr(job, "wants_fresh_simulator", False):
                self.drop_simulator()
            if self._sim is None:
                self._sim = self._make()
            self._jobs += 1
            tools = Tools(sim=self._sim, decider=self.decider, worker=self.name, attempt=attempt)
            finished = Finished(value=job.run(tools), worker=self.name, node=self._node)
            if self._holds_too_much():
                self.drop_simulator()
            return finished
        except (SimulatorError, PolicyLostError) as error:
            scope: Scope = "simulator" if isinstance(error, SimulatorError) else "policy_server"
            info = ErrorInfo(
                kind=error.kind, message=str(error), traceback_tail=error.traceback_tail, signal=error.signal
            )
        except Exception as error:  # a bug must end in a record that names it, not in a lost worker
            scope = "harness"
            info = ErrorInfo(kind=type(error).__name__, message=str(error), traceback_tail=_traceback_tail())
        self.drop_simulator()
        return Failed(scope=scope, error=info, worker=self.name, node=self._node)

    def _holds_too_much(self) -> bool:
        if self._memory_bytes is None or self._jobs < LEAST_JOBS:
            return False
        return self.held_bytes() > self._memory_bytes

    def held_bytes(self) -> int:
        """Resident memory of the simulator's process; 0 if it has none of its own or isn't running."""
        pid: int | None = getattr(self._sim, "pid", None)
        return resident_bytes(pid) if pid is not None else 0

    def _make(self) -> Simulator:
        try:
            return self._make_simulator(self.name)
        except SimulatorError:
            raise
        except Exception as error:  # nothing installed, nothing found: no scene's fault, and the same for every job
            what = f"no simulator can be made: {type(error).__name__}: {error}"
            raise SimulatorError(START, what, traceback_tail=_traceback_tail()) from error

    def drop_simulator(self) -> None:
        """End the simulator; the next job gets a new one."""
        sim, self._sim, self._jobs = self._sim, None, 0
        if sim is not None:
            sim.close()


def _traceback_tail() -> str:
    return "\n".join(traceback.format_exc().rstrip().splitlines()[-TRACEBACK_LINES:])
