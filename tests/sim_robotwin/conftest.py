from __future__ import annotations

import pytest

from evalkit.sim.robotwin.factory import find_assets, find_install, find_renderer
from evalkit.sim.robotwin.host import RoboTwinSimulator


@pytest.fixture(scope="session")
def make_simulator(tmp_path_factory):
    """Makes simulators that end with the test session; keyword arguments go to the constructor."""
    made = []

    def make(**kwargs):
        log = tmp_path_factory.mktemp("logs") / "worker.log"
        simulator = RoboTwinSimulator(find_install(), find_assets(), find_renderer(), log, **kwargs)
        made.append(simulator)
        return simulator

    yield make
    for simulator in made:
        simulator.close()


@pytest.fixture(scope="session")
def simulator(make_simulator):
    """One simulator for all tests: starting one costs seconds, and a trial may not depend on earlier ones."""
    return make_simulator()
