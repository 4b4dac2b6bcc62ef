"""A whole run as a person starts it, on the fake backend: stopped politely, killed outright, and finished."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
from pool_kit import essence, trials

from evalkit.pool.inline import InlineCrew
from evalkit.sim.fake.simulator import FakeSimulator
from evalkit.sim.fake.world import SEVENTHS
from evalkit.store.run import open_run

COMMAND = [
    *(sys.executable, "-m", "evalkit.cli.main", "run", "--backend", "fake", "--policy", "replay", "--mode", "c2c"),
    *("--tasks", "click_bell,place_shoe", "--trials", "200", "--workers", "2"),
]


RAYS_OWN = {"ray::DashboardAgent", "ray::RuntimeEnvAgent"}
"""Helpers of Ray that try for a minute to report the death of their node. They hold nothing of ours."""


def start(folder, *more):
    with (folder / "stderr.txt").open("ab") as errors, (folder / "stdout.txt").open("wb") as output:
        return subprocess.Popen([*COMMAND, *more], cwd=folder, stdout=output, stderr=errors)


def finished_trials(folder):
    logs = list(Path(folder, "results/runs").glob("*/trials.jsonl"))
    return logs[0].read_bytes().count(b"\n") if logs else 0


def alive(processes):
    """Names of those that still run."""
    names = set()
    for process in processes:
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                names.add(process.name())
        except psutil.NoSuchProcess:
            continue
    return names


def wait_for(what, limit_s=120.0):
    until = time.monotonic() + limit_s
    while not what():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_stopped_killed_and_finished(tmp_path):
    process = start(tmp_path)
    wait_for(lambda: finished_trials(tmp_path) >= 5 or process.poll() is not None)
    process.terminate()
    assert process.wait(timeout=60) == 75, (tmp_path / "stderr.txt").read_text()
    first = finished_trials(tmp_path)
    assert 5 <= first < 400

    process = start(tmp_path)
    wait_for(lambda: finished_trials(tmp_path) >= first + 5 or process.poll() is not None)
    below = psutil.Process(process.pid).children(recursive=True)
    names = alive(below)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert len(names & {"ray::SimActor.run", "ray::PolicyServer"}) > 0
    wait_for(lambda: alive(below) <= RAYS_OWN, limit_s=30.0)
    second = finished_trials(tmp_path)
    assert first < second < 400

    process = start(tmp_path, "--json")
    assert process.wait(timeout=300) == 0, (tmp_path / "stderr.txt").read_text()
    summary = json.loads((tmp_path / "stdout.txt").read_text())
    assert summary["configs"][0]["successes"] == 400

    [folder] = Path(tmp_path, "results/runs").iterdir()
    run = open_run(folder)
    assert run.is_done
    assert len(run.history()) == len(run.records()) == 400
    assert {path.name for path in folder.iterdir()} >= {"summary.json", "leaderboard.csv", "leaderboard_tasks.csv"}
    assert essence(run) == essence_in_one_process(run, tmp_path / "inline")


def essence_in_one_process(run, folder):
    """The same plan from beginning to end in this process."""
    from evalkit.policy.registry import load_adapter
    from evalkit.store.run import Run

    def make_policy():
        return load_adapter("replay").load(None, device="cpu")

    again = Run.create(folder, run.info, run.plan)
    trials(InlineCrew(1, lambda name: FakeSimulator(SEVENTHS), make_policy), again)
    return essence(again)
