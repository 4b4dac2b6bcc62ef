"""Our side of the savings: their names on a command line, and simulators that make them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evalkit.core.errors import UnknownNameError
from evalkit.sim.robotwin.host import RoboTwinSimulator
from evalkit.sim.robotwin.worker.savings import ALL, SAVINGS

CHOICES = ("all", "none", *SAVINGS)


def parse_savings(text: str) -> frozenset[str]:
    """Savings from ``all``, ``none`` or comma-separated names.

    Raises:
        UnknownNameError: there is no saving of a name.
    """
    if text in ("all", "none"):
        return ALL if text == "all" else frozenset()
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in SAVINGS:
            raise UnknownNameError("--savings", name, CHOICES)
    return frozenset(names)


@dataclass(frozen=True, kw_only=True)
class SavingMaker:
    """Makes simulators as another maker does, with these savings. Travels to the workers."""

    make: Callable[[str], RoboTwinSimulator]
    savings: frozenset[str]

    def __call__(self, worker_name: str) -> RoboTwinSimulator:
        """A simulator."""
        simulator = self.make(worker_name)
        simulator.savings = self.savings
        return simulator
