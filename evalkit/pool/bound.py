"""Factories that bind what they make to a device, and make sure that it is there. They travel to Ray's actors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from evalkit.core.errors import HarnessError, PolicyLostError, SimulatorError
from evalkit.core.gpu import bound_bus_id
from evalkit.policy.contract import Policy
from evalkit.pool.cuda import Seen, seen_by_cuda
from evalkit.pool.devices import TABLE_FILE, Device, read_devices
from evalkit.pool.jobs import PolicyFactory, SimulatorFactory, Tools
from evalkit.pool.within_memory import OUT_OF_MEMORY, is_out_of_memory, within_memory
from evalkit.sim.contract import Simulator

PROBE_LIMIT_S = 300.0
"""A simulator that hasn't started and named its device after this long has a device that hangs."""


@runtime_checkable
class RendersSomewhere(Protocol):
    """A simulator that knows which GPU it renders on."""

    @property
    def render_bus_id(self) -> str | None:
        """PCI bus id, or None if pictures aren't made on a GPU; starts the simulator's process."""
        ...


@dataclass(frozen=True, kw_only=True)
class BoundPolicy:
    """Makes a policy on its device. The process, and those it starts, see no other GPU."""

    make: PolicyFactory
    device: Device | None
    """None: nothing is bound."""
    max_batch: int | None = None
    """Most observations in one call of the policy."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables for the server's process: those that bind it, and others."""

    def __call__(self) -> Policy:
        """Make it.

        Raises:
            PolicyLostError: the device's memory isn't enough.
            HarnessError: CUDA shows another device.
        """
        os.environ.update(self.environment)
        if self.device is not None:
            seen = _seen()
            if seen is not None:  # without CUDA's library nothing can be on a wrong GPU, or on any
                check_bound(self.device, seen)
        try:
            policy = self.make()
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            where = self.device.title if self.device is not None else "the device"
            first = (str(error).splitlines() or [""])[0]
            raise PolicyLostError(
                OUT_OF_MEMORY, f"the policy doesn't fit into the memory of {where}: {first}"
            ) from error
        return within_memory(policy, self.max_batch)


@dataclass(frozen=True, kw_only=True)
class BoundSimulators:
    """Makes simulators that render on one device."""

    make: SimulatorFactory
    environment: Mapping[str, str]
    """Variables that bind it."""

    def __call__(self, worker_name: str) -> Simulator:
        """Make one."""
        os.environ.update(self.environment)
        return self.make(worker_name)


@dataclass(frozen=True, kw_only=True)
class ProbeJob:
    """Starts a worker's simulator and asks which GPU it renders on. The simulator stays, ready for the first trial."""

    limit_s: float = PROBE_LIMIT_S

    @property
    def key(self) -> str:
        """See ``Job``."""
        return "render probe"

    @property
    def title(self) -> str:
        """See ``Job``."""
        return "render probe"

    def run(self, tools: Tools) -> Any:
        """The bus id of the GPU in use, or None where pictures aren't made on one.

        Raises:
            SimulatorError: it doesn't start, or renders elsewhere than it should.
        """
        if not isinstance(tools.sim, RendersSomewhere):
            return None
        found, wanted = tools.sim.render_bus_id, bound_bus_id()
        if found is not None and wanted is not None and found != wanted:
            what = f"{tools.worker} renders on the GPU at PCI {found} and was bound to {wanted}"
            raise SimulatorError("render_device", what)
        return found


def check_bound(device: Device, seen: tuple[Seen, ...]) -> None:
    """Make sure that a process sees its device and no other.

    Args:
        device: what it was bound to.
        seen: what CUDA shows it.

    Raises:
        HarnessError: something else.
    """
    # What tells a slice of MIG apart is its UUID; CUDA's library gives both kinds without a prefix of their own.
    names = [uuid.split("-", 1)[1].lower() for uuid, _ in seen]
    if names != [device.uuid.split("-", 1)[1].lower()]:
        shown = ", ".join(uuid for uuid, _ in seen) or "no GPU"
        raise HarnessError(f"a policy server was bound to {device.title}, and CUDA shows it {shown}")


def _seen() -> tuple[Seen, ...] | None:
    if os.environ.get(TABLE_FILE):  # a table in the driver's place: its devices obey the variable as CUDA's would
        return tuple((device.uuid, device.bus_id) for device in read_devices())
    return seen_by_cuda()
