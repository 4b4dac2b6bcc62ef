"""Each saving leaves out work and changes nothing: the same trial with and without it, bit by bit."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from robotwin_scenes import scene

from evalkit.cli.backends import Backend
from evalkit.core.errors import UserError
from evalkit.sim.robotwin import worker as worker_package
from evalkit.sim.robotwin.factory import find_assets, find_install, find_renderer
from evalkit.sim.robotwin.host import RoboTwinSimulator
from evalkit.sim.robotwin.savings import parse_savings
from evalkit.sim.robotwin.worker.savings import ALL, SAVINGS

CAMERAS = ("head_camera", "left_camera")
TASKS = {
    "observations": ("stack_blocks_two", "demo_clean", "qpos"),
    "cameras": ("grab_roller", "demo_clean", "qpos"),
    "render-updates": ("click_bell", "demo_randomized", "qpos"),
    "passive-forces": ("grab_roller", "demo_clean", "qpos"),
    "gripper-limits": ("stack_blocks_two", "demo_clean", "qpos"),
    "path-timing": ("grab_roller", "demo_clean", "qpos"),
    "orientations": ("beat_block_hammer", "demo_clean", "qpos"),
    "renderer": ("click_bell", "demo_clean", "qpos"),
    "planner": ("stack_blocks_two", "demo_clean", "ee"),
}


@pytest.fixture(scope="module")
def simulator(tmp_path_factory):
    """One of its own: savings belong to a worker from its start, and a renderer that comes and goes stays with it."""
    log = tmp_path_factory.mktemp("savings") / "worker.log"
    one = RoboTwinSimulator(find_install(), find_assets(), find_renderer(), log)
    yield one
    one.close()


def trial(sim, here, action_type="qpos", steps=16):
    """All that a trial shows: the expert's end, the scene, states and pictures on the way, verdict, the end."""
    sim.reset(here)
    expert = sim.expert(record_every=15)
    actions = np.stack([frame.endpose if action_type == "ee" else frame.state for frame in expert.frames])[1::6]
    seen = [expert.success, expert.state_digest, sim.reset(here)]
    seen[-1] = replace(seen[-1], setup_s=0.0)
    for part in np.array_split(actions[:steps], 2):
        result = sim.apply(part, action_type)
        seen.append(replace(result, physics_s=0.0, check_s=0.0))
        look = sim.observe(CAMERAS)
        seen += [look.state.tobytes(), look.endpose.tobytes(), *(look.images[name].tobytes() for name in CAMERAS)]
        seen.append(sim.state_digest())
    return seen


@pytest.fixture
def with_savings(simulator):
    """Sets the savings of the one simulator, for the scenes that follow."""

    def use(savings):
        simulator.savings = savings
        return simulator

    yield use
    simulator.savings = ALL


@pytest.mark.sim
@pytest.mark.parametrize("name", SAVINGS)
def test_a_saving_changes_nothing(with_savings, name):
    task, config, action_type = TASKS[name]
    here = scene(task, config, seed=100002)
    assert trial(with_savings(ALL), here, action_type) == trial(with_savings(ALL - {name}), here, action_type)


@pytest.mark.sim
def test_all_savings_together_change_nothing_even_under_flickering_light(with_savings):
    here = scene("stack_blocks_two", "demo_randomized", seed=100002)
    light = {**here.settings["domain_randomization"], "crazy_random_light_rate": 1}
    here = replace(here, settings={**here.settings, "domain_randomization": light})
    assert trial(with_savings(ALL), here) == trial(with_savings(frozenset()), here)


def test_an_unknown_saving_is_refused(make_simulator):
    with pytest.raises(ValueError, match="no saving 'render'"):
        make_simulator(savings=("render",))


def test_a_command_line_names_savings():
    assert parse_savings("all") == ALL
    assert parse_savings("none") == frozenset()
    assert parse_savings("cameras, renderer") == {"cameras", "renderer"}
    with pytest.raises(UserError, match=r"unknown --savings 'camera'.*cameras"):
        parse_savings("cameras,camera")


def test_a_backend_makes_simulators_that_save_and_says_so_in_the_manifest(tmp_path):
    def make(name):
        return RoboTwinSimulator(find_install(), find_assets(), find_renderer(), tmp_path / name)

    backend = Backend(make_simulator=make, fingerprint=lambda: None, tasks=("click_bell",), is_robotwin=True)
    assert backend.make_simulator("a").savings == ALL
    frugal = backend.leaving_out("planner,cameras")
    assert frugal.make_simulator("b").savings == {"planner", "cameras"}
    assert frugal.circumstances == {"savings": ["cameras", "planner"]}
    assert backend.leaving_out("none").circumstances == {"savings": []}


def test_another_backend_has_nothing_to_save():
    fake = Backend(make_simulator=lambda name: None, fingerprint=lambda: None, tasks=())
    assert fake.leaving_out("all") is fake
    with pytest.raises(UserError, match="--savings none is about RoboTwin's loop"):
        fake.leaving_out("none")


@pytest.fixture
def economy(monkeypatch):
    """The worker's module; the worker's modules find each other in its folder."""
    folder = Path(worker_package.__file__).parent
    monkeypatch.syspath_prepend(folder)
    spec = importlib.util.spec_from_file_location("economy_under_test", folder / "economy.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("source", "path_timing"):
        monkeypatch.delitem(sys.modules, name)
    return module


@pytest.fixture
def direct_numpy(economy):
    """``numpy`` with a direct ``clip``."""
    return economy.DirectNumpy()


@pytest.mark.parametrize("value", [-2.0, -1.0, -0.0, 0.0, 0.3, 1.0, 7.5, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("kind", [np.float64, np.float32, float])
@pytest.mark.parametrize("limits", [(0, 1), (-1.0, 1.0), (0, 1.0)])
def test_the_direct_clip_is_numpys(direct_numpy, value, kind, limits):
    ours, numpys = direct_numpy.clip(kind(value), *limits), np.clip(kind(value), *limits)
    assert type(ours) is type(numpys)
    assert ours.tobytes() == numpys.tobytes()


def test_the_direct_clip_leaves_arrays_to_numpy(direct_numpy):
    values = np.linspace(-2, 2, 9)
    np.testing.assert_array_equal(direct_numpy.clip(values, 0, 1), np.clip(values, 0, 1))
    assert direct_numpy.pi == np.pi


def test_remembered_orientations_are_the_callers_own_and_few(economy):
    asked = []

    def convert(matrix):
        asked.append(matrix)
        return np.array([1.0, matrix[0, 0], 0.0, 0.0])

    remembering = economy.Remembering(convert)
    first = remembering(np.eye(3))
    first[1] = 7.0
    np.testing.assert_array_equal(remembering(np.eye(3)), [1.0, 1.0, 0.0, 0.0])
    assert len(asked) == 1
    remembering(np.eye(3, dtype=np.float32))
    remembering(np.eye(3, dtype=np.float32))
    assert len(asked) == 3  # only what it can tell apart by its bytes
    for scale in range(2, 1000):
        remembering(scale * np.eye(3))
    assert len(remembering._answers) <= 256


def test_a_planner_on_demand_is_made_when_a_path_is_planned_and_reports_its_own_errors(economy):
    made = []

    class Planner:
        limit = 3

        def __init__(self, name, fails=False):
            made.append(name)
            if fails:
                raise ValueError("no URDF")
            self.name = name

        def plan(self):
            return self.name

    on_demand = economy.source.on_demand(Planner)
    planner, broken = on_demand("left"), on_demand("right", fails=True)
    assert isinstance(planner, Planner)
    assert planner.limit == 3
    assert made == []
    assert (planner.plan(), planner.plan(), made) == ("left", "left", ["left"])
    with pytest.raises(AttributeError, match="nothing_like_it"):
        planner.nothing_like_it  # noqa: B018
    for _ in range(2):
        with pytest.raises(ValueError, match="no URDF"):
            broken.plan()
