"""Binding a worker's pictures to a device by its PCI bus id. lavapipe has one as well: all zeros."""

import dataclasses

import pytest

from evalkit.core.errors import SimulatorError
from evalkit.core.gpu import BUS_ID
from evalkit.pool.bound import ProbeJob
from evalkit.pool.devices import read_devices
from evalkit.pool.jobs import Tools
from evalkit.sim.robotwin.factory import find_assets, find_install, find_renderer
from evalkit.sim.robotwin.host import RoboTwinSimulator
from evalkit.sim.robotwin.vulkan import examine

pytestmark = pytest.mark.sim
LAVAPIPE = "0000:00:00"


@pytest.fixture
def bound(tmp_path, monkeypatch):
    """A simulator bound to a bus id."""
    made = []

    def make(bus_id):
        monkeypatch.setenv(BUS_ID, bus_id)
        render = dataclasses.replace(find_renderer(), device="cuda")
        made.append(RoboTwinSimulator(find_install(), find_assets(), render, tmp_path / "worker.log"))
        return made[-1]

    yield make
    for simulator in made:
        simulator.close()


def probe(simulator):
    return ProbeJob().run(Tools(sim=simulator, decider=None, worker="worker-0", attempt=1))


def test_a_worker_renders_on_the_device_it_is_bound_to_and_says_so(bound):
    there = read_devices()[0].bus_id if examine().uses_gpu else LAVAPIPE
    simulator = bound(there)
    assert probe(simulator) == there
    assert simulator.render_bus_id == there


def test_a_device_that_is_not_there_is_named_though_sapien_would_take_another(bound):
    with pytest.raises(SimulatorError, match=r"SAPIEN (has no device at PCI 0000:f3:1d|.*0000:f3:1d)"):
        probe(bound("0000:f3:1d"))
