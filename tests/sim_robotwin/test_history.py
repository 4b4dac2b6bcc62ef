"""``--bug-compatible``: what earlier scenes left in RoboTwin's own process is there in evalkit's, too.

dump_bin_bigbin's table is off the centre, and under demo_randomized each reset of it moves the place for clutter by as
much again: the second scene of a process isn't the first one of another.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from evalkit.core.errors import UnstableSceneError
from evalkit.core.locations import checkout
from evalkit.pool.history import HistorySeedJob
from evalkit.pool.jobs import Tools
from evalkit.pool.seed_work import SeedNeed, make_scene
from evalkit.protocol.config import load_config
from evalkit.protocol.variant import SeedRule

TASK, CONFIG = "dump_bin_bigbin", "demo_randomized"
BENCHMARKS = Path(str(checkout())) / "benchmarks"


class Watched:
    """A simulator that remembers the digests of the scenes it built."""

    def __init__(self, sim):
        self._sim, self.scenes = sim, {}

    def reset(self, scene):
        built = self._sim.reset(scene)
        self.scenes.setdefault(scene.seed, []).append(built.state_digest)
        return built

    def __getattr__(self, name):
        return getattr(self._sim, name)


@pytest.fixture
def own_loop(monkeypatch):
    """Lines of RoboTwin's own loop over two candidates."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    pair = importlib.import_module("parity_pair")
    setting = pair.Setting(
        task=TASK, config=CONFIG, action_type="qpos", candidates=2, stride=8, cut_every=0, observe=False
    )
    yield list(pair.own_loop(setting))
    del sys.modules["parity_pair"]


@pytest.mark.sim
def test_scenes_are_those_of_robotwins_own_process(own_loop, make_simulator):
    config = load_config(CONFIG)
    theirs = {line["seed"]: line["scene_digests"] for line in own_loop}
    accepted = [line["seed"] for line in own_loop if line["accepted"]]
    sim = Watched(make_simulator())
    need = SeedNeed(task=TASK, config=config, count=len(accepted), rule=SeedRule(history=True))
    entries = HistorySeedJob(need=need).run(Tools(sim=sim, decider=None, worker="w", attempt=1))
    ours = {seed: digests for seed, digests in sim.scenes.items() if seed in theirs}
    assert [entry.seed for entry in entries if entry.accepted] == accepted
    assert {seed: found for seed, found in theirs.items() if seed in ours and found} == ours

    later = max(seed for seed, found in theirs.items() if found)
    try:
        fresh = make_simulator().reset(make_scene(TASK, config, later)).state_digest
    except UnstableSceneError:
        fresh = "unstable"
    assert fresh not in theirs[later]
