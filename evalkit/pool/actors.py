"""The sim actor: what runs in the process of a worker, under Ray."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import replace

import psutil

from evalkit.core.memory import format_bytes
from evalkit.core.record import ErrorInfo
from evalkit.policy.supervision import LOOK_S
from evalkit.pool.jobs import Failed, Finished, Job, SimulatorFactory
from evalkit.pool.policy_server import PolicyRoad, RemoteDecider
from evalkit.pool.worker import Worker

BALLOON = 2
"""A simulator that holds so many times its limit is killed in the middle of a job; up to there it may finish it."""


class SimActor:
    """Owns one simulator. Kills it when a job outlives its limit."""

    def __init__(self, name: str, make_simulator: SimulatorFactory, memory_bytes: int | None = None) -> None:
        self._worker = Worker(name, make_simulator, None, memory_bytes)
        self._memory_bytes = memory_bytes
        self._deciders: dict[int, RemoteDecider] = {}
        self._others = frozenset(psutil.Process().children(recursive=True))

    def run(self, job: Job, attempt: int, road: PolicyRoad | None) -> Finished | Failed:
        """Do one job."""
        generation = road.generation if road is not None else 0
        self._worker.decider = None if road is None else self._decider(road)
        most_bytes = self._memory_bytes and self._memory_bytes * BALLOON
        watchdog = _Watchdog(job.limit_s, most_bytes, self._worker, self._others)
        try:
            result = self._worker.run(job, attempt)
        finally:
            watchdog.cancel()
        if isinstance(result, Finished) and watchdog.fired is not None:
            self._worker.drop_simulator()  # the job was just in time, its simulator wasn't
        if isinstance(result, Failed):
            result = replace(result, policy_generation=generation)
            if watchdog.fired is not None:
                what = f"{job.title} {watchdog.reason}; the simulator was killed"
                error = ErrorInfo(kind=watchdog.fired, message=what, traceback_tail=result.error.traceback_tail)
                result = replace(result, scope="simulator", error=error)
        return result

    def close(self) -> None:
        """End the simulator in an orderly way, and hang up."""
        self._worker.drop_simulator()
        for decider in self._deciders.values():
            decider.close()

    def _decider(self, road: PolicyRoad) -> RemoteDecider:
        if road.generation not in self._deciders:
            self._deciders[road.generation] = RemoteDecider(road)
        return self._deciders[road.generation]


class _Watchdog:
    """Kills a simulator after a time, or if it holds too much memory.

    In a sim actor those are all processes below this one, but for ``others``: they were there before.
    """

    def __init__(
        self, limit_s: float, memory_bytes: int | None, worker: Worker, others: frozenset[psutil.Process]
    ) -> None:
        self._others = others
        self.fired: str | None = None
        self.reason = ""
        self._limit_s, self._memory_bytes, self._worker = limit_s, memory_bytes, worker
        self._cancelled, self._killing = threading.Event(), threading.Lock()
        threading.Thread(target=self._watch, daemon=True).start()

    def cancel(self) -> None:
        """Call it off; returns when it can't strike any more, for the next job has the same simulator."""
        with self._killing:
            self._cancelled.set()

    def _watch(self) -> None:
        until = time.monotonic() + self._limit_s
        while (left_s := until - time.monotonic()) > 0:
            if self._cancelled.wait(left_s if self._memory_bytes is None else min(left_s, LOOK_S)):
                return
            held = self._worker.held_bytes() if self._memory_bytes is not None else 0
            if self._memory_bytes is not None and held > self._memory_bytes:
                self._fire("memory", f"held {format_bytes(held)}, more than {format_bytes(self._memory_bytes)}")
                return
        self._fire("hang", f"took longer than {self._limit_s:g} s")

    def _fire(self, kind: str, reason: str) -> None:
        with self._killing:
            if self._cancelled.is_set():
                return
            self.fired, self.reason = kind, reason
            for child in set(psutil.Process().children(recursive=True)) - self._others:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
