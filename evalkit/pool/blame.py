"""Which failures count against a device: what came back from the workers, told to ``DeviceHealth``."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from evalkit.pool.devices import Device
from evalkit.pool.health import DeviceHealth
from evalkit.pool.jobs import Failed, Job
from evalkit.pool.within_memory import OUT_OF_MEMORY

OF_SERVERS = ("policy_server_died", "policy_crash", "policy_timeout", "policy_memory", OUT_OF_MEMORY)
"""Failures of a policy server that a bad device may cause. A remote server that can't be reached isn't one."""
OF_SIMULATORS = ("start", "hang", "crash", "render_device")
"""Failures of a simulator that a bad device may cause."""


@dataclass(frozen=True, kw_only=True)
class Flight:
    """A job that a worker has."""

    worker: int
    job: Job
    generation: int | None
    """Of the policy server in use."""
    server_device: Device | None
    render_device: Device | None


class Blame:
    """Keeps count for all devices of a crew."""

    def __init__(self) -> None:
        self._health = DeviceHealth()
        self._counted: set[int] = set()
        self._failures = 0

    def worked(self, flight: Flight) -> None:
        """A job came to its end."""
        for device in (flight.server_device, flight.render_device):
            if device is not None:
                self._health.worked(device.uuid, flight.job.key)

    def shunned(self, job: Job) -> frozenset[str]:
        """UUIDs of the devices on which a job failed."""
        return self._health.failed_on(job.key)

    def server_failed(self, flight: Flight, result: Failed, others: Collection[Flight]) -> str | None:
        """A job met a broken policy server.

        Args:
            flight: the job.
            result: what came back.
            others: jobs in flight.

        Returns:
            Why its device has to be given up, or None.
        """
        device, generation = flight.server_device, result.policy_generation
        if device is None or result.error.kind not in OF_SERVERS or generation in self._counted:
            return None
        self._counted.add(generation)
        jobs = {flight.job.key} | {one.job.key for one in others if one.generation == generation}
        if not self._health.failed(device.uuid, f"server {generation}", jobs):
            return None
        return f"its policy server failed again and again, at last so: {result.error.message}"

    def simulator_failed(self, flight: Flight, result: Failed) -> str | None:
        """A job met a broken simulator. Returns why its device has to be given up, or None."""
        device = flight.render_device
        if device is None or not device.can_render or result.error.kind not in OF_SIMULATORS:
            return None
        self._failures += 1
        # A simulator that doesn't start says nothing about the job.
        jobs: Collection[str] = () if result.error.kind == "start" else (flight.job.key,)
        if not self._health.failed(device.uuid, f"simulator {self._failures}", jobs):
            return None
        return f"simulators failed on it again and again, at last so: {result.error.message}"
