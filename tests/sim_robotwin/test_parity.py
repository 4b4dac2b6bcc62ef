"""RoboTwin's own loop and evalkit judge the same script alike, to the bit: one object kept for a whole run against one
for each trial, an observation after every action against none."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from evalkit.core.locations import checkout

BENCHMARK = Path(str(checkout())) / "benchmarks" / "parity.py"


@pytest.fixture(scope="module")
def parity():
    sys.path.insert(0, str(BENCHMARK.parent))
    spec = importlib.util.spec_from_file_location("parity", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    sys.modules["parity"] = module
    spec.loader.exec_module(module)
    yield module
    for name in ("parity", "parity_pair"):
        del sys.modules[name]
    sys.path.remove(str(BENCHMARK.parent))


@pytest.mark.sim
@pytest.mark.parametrize(
    ("task", "config", "action_type"),
    [("click_bell", "demo_randomized", "qpos"), ("stack_blocks_two", "demo_clean", "ee")],
)
def test_the_same_seeds_the_same_verdicts_the_same_poses(parity, task, config, action_type):
    setting = parity.Setting(
        task=task, config=config, action_type=action_type, candidates=2, stride=4, cut_every=0, observe=False
    )
    rows = parity.compare(setting)
    assert len(rows) == 2
    assert any(row["accepted"] for row in rows)
    assert all(parity.is_same(row) for row in rows), rows


def test_a_difference_is_noticed(parity):
    same = {"accepted": True, "same": {"accepted": True, "success": True, "steps": True, "state_digest": True}}
    assert parity.is_same(same)
    assert not parity.is_same({**same, "same": {**same["same"], "state_digest": False}})
    assert parity.is_same({"accepted": False, "same": {**same["same"], "success": False}})


def test_the_size_of_a_difference_is_told(parity):
    import parity_pair

    theirs = {"joints": [[0.0, 1.0], []], "objects": [[0.0, 0.0, 0.5, 1.0, 0.0, 0.0, 0.0]]}
    ours = {"joints": [[0.0, 1.5], []], "objects": [[0.0, 0.25, 0.5, 1.0, 0.0, 0.0, 0.125]]}
    assert parity_pair.largest_differences(theirs, ours) == {"joints": 0.5, "objects": 0.25, "orientations": 0.125}
    ours["objects"].append(ours["objects"][0])
    assert parity_pair.largest_differences(theirs, ours) == {"joints": 0.5, "objects": None, "orientations": None}


def test_a_call_goes_on_with_the_seeds_that_are_missing(parity, tmp_path):
    setting = parity.Setting(
        task="click_bell", config="demo_clean", action_type="qpos", candidates=8, stride=4, cut_every=0, observe=False
    )
    whole = parity.split([setting], [], 5)
    assert [(part.first_seed, part.candidates) for part in whole] == [(100_000, 5), (100_005, 3)]
    log = tmp_path / "parity.jsonl"
    names = '"task": "click_bell", "config": "demo_clean", "action_type": "qpos"'
    log.write_text("".join(f'{{{names}, "seed": {seed}}}\n' for seed in (100_000, 100_001, 100_005)) + '{"task": "cli')
    rows = parity.read_rows(log)
    assert [(part.first_seed, part.candidates) for part in parity.split([setting], rows, 5)] == [
        (100_002, 3),
        (100_006, 2),
    ]
    assert parity.read_rows(tmp_path / "none") == []
