"""The saving ``path-timing`` times every path as toppra does, to the bit, and fails where it fails."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from evalkit.sim.robotwin import worker as worker_package
from evalkit.sim.robotwin.factory import find_install

WORKER = Path(worker_package.__file__).parent
COMPARE = '''
import json, logging, sys, warnings
import numpy as np
import mplib.planner
sys.path.insert(0, sys.argv[1])
import path_timing

logging.disable(logging.CRITICAL)
warnings.filterwarnings("ignore")
rng = np.random.default_rng(int(sys.argv[2]))
timing = path_timing.PathTiming()
if len(sys.argv) > 3:
    path_timing.KNOWN = ()
    timing = path_timing.PathTiming()

class Arm:
    joint_vel_limits = np.ones(6)
    joint_acc_limits = np.ones(6)

def timed(lean, path):
    timing.use(lean)
    try:
        return [np.asarray(part).tobytes().hex() for part in mplib.planner.Planner.TOPP(Arm, path, 1 / 250)]
    except Exception as error:
        return repr(error)

def paths():
    """From hardly any motion to large ones, with joints at rest, two to five waypoints, of both kinds of number."""
    for _ in range(120):
        reach, waypoints = 10.0 ** rng.uniform(-6, 0.3), int(rng.choice([2, 2, 2, 3, 5]))
        moves = rng.uniform(-reach, reach, (waypoints - 1, 6)) * (rng.random(6) < 0.8)
        yield np.cumsum([rng.uniform(-2, 2, 6), *moves], axis=0).astype(rng.choice([np.float64, np.float32]))
    yield np.zeros((2, 6))
    yield np.full((2, 6), np.nan)
    yield np.zeros((1, 6))

classes = set()
different, timed_paths, failed = [], 0, 0
for number, path in enumerate(paths()):
    theirs, ours = timed(False, path), timed(True, path)
    classes.add(mplib.planner.algo.TOPPRA.__module__)
    failed += isinstance(theirs, str)
    timed_paths += not isinstance(theirs, str)
    if theirs != ours:
        different.append([number, str(theirs)[:99], str(ours)[:99]])
timing.use(False)
print(json.dumps([different, timed_paths, failed, sorted(classes), mplib.planner.algo.TOPPRA.__module__]))
'''


def compare(*arguments: str) -> list:
    """Paths on which the two differ, how many were timed, how many failed, the modules in use during and after."""
    command = [str(find_install().python), "-c", COMPARE, str(WORKER), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("seed", ["0", "1"])
def test_paths_are_timed_as_toppra_times_them_to_the_bit(seed):
    different, timed, failed, used, after = compare(seed)
    assert different == []
    assert timed > 60
    assert failed > 10, "paths that can't be timed belong to what is compared"
    assert used == ["path_timing"]
    assert after.startswith("toppra."), "the original is put back"


def test_another_version_of_toppra_is_left_to_itself():
    different, _, _, used, _ = compare("0", "unknown")
    assert different == []
    assert used == ["toppra.algorithm.reachabilitybased.time_optimal_algorithm"]
