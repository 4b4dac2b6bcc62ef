from __future__ import annotations

import pytest
import yaml

from evalkit.core.locations import bundled
from evalkit.core.tasks import STEP_LIMITS
from evalkit.sim.contract import Scene
from evalkit.sim.robotwin.factory import find_assets, find_install, find_renderer
from evalkit.sim.robotwin.host import RoboTwinSimulator


def scene(task, config="demo_clean", seed=100000, horizon_steps=None, evaluation=True):
    settings = yaml.safe_load((bundled("task_configs") / f"{config}.yml").read_text())
    limit = STEP_LIMITS[task] if horizon_steps is None else horizon_steps
    return Scene(task=task, config=config, settings=settings, seed=seed, horizon_steps=limit, evaluation=evaluation)


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
