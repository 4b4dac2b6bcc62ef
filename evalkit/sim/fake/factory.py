"""The fake backend as ``evalkit run --backend fake`` uses it: for testing the harness."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from evalkit.core.errors import UserError
from evalkit.core.locations import home
from evalkit.core.trial import BackendFingerprint
from evalkit.sim.contract import Simulator
from evalkit.sim.fake.fault_file import read_faults
from evalkit.sim.fake.process import FakeProcessSimulator
from evalkit.sim.fake.simulator import FINGERPRINT
from evalkit.sim.fake.world import SEVENTHS, FakeWorld

FAULTS_VARIABLE = "EVALKIT_FAULTS"
"""Names a file of faults (see ``evalkit.sim.fake.fault_file``) for the fake backend."""


@dataclass(frozen=True)
class FakeMaker:
    """Makes fake simulators, each in its own process, with its log where real ones have theirs. Travels to workers."""

    world: FakeWorld = SEVENTHS
    deadline_s: float = 30.0

    def __call__(self, worker_name: str) -> Simulator:
        """A simulator for a worker."""
        return FakeProcessSimulator(self.world, self.deadline_s, home() / "logs" / f"fake-{worker_name}.log")


def maker_from_environment() -> FakeMaker:
    """The maker for ``--backend fake``: with the faults that ``$EVALKIT_FAULTS`` names, if it names any.

    Raises:
        UserError: the file isn't there or isn't of the language, or it has faults of a policy.
    """
    name = os.environ.get(FAULTS_VARIABLE)
    if not name:
        return FakeMaker()
    faults = read_faults(Path(name).absolute())
    if faults.policy:
        raise UserError(f"{name} has faults of a policy, which only the drill's has: evalkit drill --faults {name}")
    return FakeMaker(faults.world, deadline_s=1e6)


def fingerprint() -> BackendFingerprint:
    """What the fake backend is made of."""
    return FINGERPRINT
