"""The fake backend as ``evalkit run --backend fake`` uses it: for testing the harness."""

from __future__ import annotations

from evalkit.core.trial import BackendFingerprint
from evalkit.sim.contract import Simulator
from evalkit.sim.fake.process import FakeProcessSimulator
from evalkit.sim.fake.simulator import FINGERPRINT
from evalkit.sim.fake.world import SEVENTHS


def make_simulator(worker_name: str) -> Simulator:
    """A fake simulator in its own process; rejects two seeds of seven, as a real task might."""
    return FakeProcessSimulator(SEVENTHS)


def fingerprint() -> BackendFingerprint:
    """What the fake backend is made of."""
    return FINGERPRINT
