"""A simulator without physics: deterministic, addressed by seed, with faults on order. For testing the harness."""

from evalkit.sim.fake.simulator import FakeSimulator
from evalkit.sim.fake.world import FakeWorld, Fault

__all__ = ["FakeSimulator", "FakeWorld", "Fault"]
