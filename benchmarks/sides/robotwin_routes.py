"""RoboTwin's tasks on the generated assets, with the house policy, through every harness."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import peer
from accounts import Rate, differing, rate, worker_time

from evalkit.core.record import TrialRecord
from evalkit.core.rng import stream_seed
from evalkit.protocol.config import load_config

SIDES = Path(__file__).parent
CONFIG = "demo_clean"
Report = Callable[[str], None]
Record = Mapping[str, Any]


def measure_robotwin(
    checkpoint: str, tasks: Sequence[str], trials: int, quick: bool, python: Path | None, say: Report
) -> tuple[list[Rate], dict[str, Any], dict[str, float | str]]:
    """All routes over the same accepted scenes.

    Returns:
        Rates; where evalkit's workers spent their time; whether evalkit's outcomes depend on the number of workers.
    """
    rates: list[Rate] = []
    accounts: dict[str, Any] = {}
    beside: dict[str, float | str] = {}

    def note(one: Rate) -> None:
        rates.append(one)
        say(f"  {one.route}: {3600 * one.episodes / one.work_s:,.0f} trials/h, {one.steps_per_s:.1f} steps/s")

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        say("RoboTwin on stand-in assets: seeds first")
        run_evalkit(checkpoint, tasks, trials, 2, folder / "seeds")
        found: list[list[Record]] = []
        for workers in (1, 2):
            out = folder / f"workers-{workers}"
            began, wall_s, records = run_evalkit(checkpoint, tasks, trials, workers, out)
            found.append(records)
            name = f"evalkit, {workers} worker{'s' * (workers > 1)}"
            spent = worker_time(records, began, began + wall_s)
            accounts[name] = {
                "efficiency": spent.efficiency,
                "efficiency_start_and_end_included": spent.efficiency_whole,
                "overhead_per_trial_ms": spent.overhead_per_trial_ms,
            }
            note(rate(name, [_stamp(record) for record in records], wall_s))
        beside["trials that differ between 1 and 2 workers"] = str(len(differing(*found)))
        note(bare(checkpoint, found[0]))
        if python is not None:
            for shards, every in ((2, 16),) if quick else ((1, 1), (2, 1), (2, 16), (4, 16)):
                note(through_peer(checkpoint, found[0], python, shards, every, folder / f"peer-{shards}-{every}"))
    return rates, accounts, beside


def run_evalkit(
    checkpoint: str, tasks: Sequence[str], trials: int, workers: int, out: Path
) -> tuple[float, float, list[Record]]:
    """``evalkit run`` as a command. Returns its start (s since the epoch), its duration, its records.

    Raises:
        RuntimeError: it failed.
    """
    command = [sys.executable, "-m", "evalkit.cli.main", "run", "--ckpt", checkpoint, "--mode", "c2c"]
    command += ["--tasks", ",".join(tasks), "--trials", str(trials), "--workers", str(workers), "--out", str(out)]
    began, started = time.time(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall_s = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(f"evalkit run ended with {done.returncode}: {done.stderr[-2000:]}")
    return began, wall_s, [json.loads(line) for line in (out / "trials.jsonl").read_text().splitlines()]


def _stamp(record: Record) -> dict[str, Any]:
    started = datetime.fromisoformat(record["started_at"]).timestamp()
    return {
        "name": record["spec"]["task"],
        "seed": record["spec"]["seed"],
        "steps": record["steps"],
        "value": str(record["outcome"] == "success"),
        "started": started,
        "ended": started + record["timings"]["wall_s"],
    }


def bare(checkpoint: str, records: Sequence[Record]) -> Rate:
    """One simulator, the policy beside it in this process, one trial after another: no pool, no files."""
    from evalkit.cli.policy_choice import choose_policy
    from evalkit.core.trial import TrialSpec
    from evalkit.episode.decide import LocalDecider
    from evalkit.episode.run_trial import run_trial
    from evalkit.pool.policy_desk import load
    from evalkit.pool.seed_work import make_scene
    from evalkit.sim.robotwin import factory

    started = time.perf_counter()
    decider = LocalDecider(load(choose_policy(None, checkpoint).maker))
    sim = factory.make_simulator(f"throughput-{os.getpid()}")
    try:
        done: list[TrialRecord] = []
        for record in records:
            spec = TrialSpec.from_json(dict(record["spec"]))
            scene = make_scene(spec.task, load_config(spec.config), spec.seed)
            done.append(run_trial(sim, decider, spec, scene, session=spec.key))
    finally:
        sim.close()
    stamps = [_stamp(record.to_json()) for record in done]
    return rate("bare loop", stamps, time.perf_counter() - started)


def through_peer(
    checkpoint: str, records: Sequence[Record], python: Path, shards: int, render_every: int, folder: Path
) -> Rate:
    """vla-eval's RoboTwin adapter and its server around the house policy."""
    from evalkit.sim.robotwin import factory, host
    from evalkit.sim.robotwin.environment import worker_environment

    install, assets, render = factory.find_install(), factory.find_assets(), factory.find_renderer()
    stamps = folder / "stamps"
    stamps.mkdir(parents=True)
    benchmarks = []
    for task in dict.fromkeys(record["spec"]["task"] for record in records):
        job = {
            "task": task,
            "config": CONFIG,
            "settings": dict(load_config(CONFIG).settings),
            "layout": install.layout,
            "code_root": str(install.root) if install.root else None,
            "assets_root": str(assets.root),
            "planner_path": str(assets.planner_path),
            "planner_class": assets.planner_class,
            "shader": render.shader,
            "shadow_map_px": render.shadow_map_px,
            "render_device": render.device,
            "worker": str(host.WORKER),
            "trials": [
                {
                    "seed": record["spec"]["seed"],
                    "instruction": record["spec"]["instruction"],
                    "policy_seed": str(stream_seed(record["spec"]["seed"], "policy", task, 0)),
                }
                for record in records
                if record["spec"]["task"] == task
            ],
        }
        path = folder / f"{task}.json"
        path.write_text(json.dumps(job))
        benchmarks.append(
            {
                "benchmark": "vla_eval_side:StandinRoboTwin",
                "subname": task,
                "episodes_per_task": 1,
                "params": {"job": str(path), "stamps": str(stamps), "render_every": render_every},
            }
        )
    extra = str(peer.packages(python))
    ours = {**os.environ, "VLA_EVAL_PACKAGES": extra, "PYTHONPATH": str(SIDES)}
    theirs = worker_environment(install.python, render)
    theirs["VLA_EVAL_PACKAGES"] = extra
    theirs["PYTHONPATH"] = os.pathsep.join(filter(None, [str(SIDES), theirs.get("PYTHONPATH")]))
    server = peer.PeerServer(
        kind="house-server", arguments={"checkpoint": checkpoint}, python=Path(sys.executable), environment=ours
    )
    with peer.serving(server, folder / "server.log") as url:
        wall_s = peer.run_shards(install.python, theirs, benchmarks, url, shards, folder / "out")
    lines = [line for path in sorted(stamps.glob("*.jsonl")) for line in path.read_text().splitlines()]
    how = "default: pictures after every action" if render_every == 1 else f"pictures every {render_every} actions"
    name = f"vla-eval, {shards} shard{'s' * (shards > 1)}, {how}"
    return rate(name, [json.loads(line) for line in lines], wall_s)


def own_loop(tasks: Sequence[str], trials: int) -> str:
    """The table of ``robotwin_loop.py``: RoboTwin's own loop and evalkit over the same scenes with a script as policy.

    Raises:
        RuntimeError: it failed.
    """
    program = SIDES.parent / "robotwin_loop.py"
    command = [sys.executable, str(program), "--tasks", ",".join(tasks), "--trials", str(trials)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        raise RuntimeError(f"{program.name} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout.rstrip()
