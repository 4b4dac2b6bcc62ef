"""The runs that ``robotwin_loop.py`` compares: RoboTwin's loop on a task, and ``evalkit run``."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from evalkit.core.files import read_json_lines
from evalkit.core.locations import home
from evalkit.core.rng import stream_seed
from evalkit.core.trial import BackendFingerprint
from evalkit.protocol.config import load_config
from evalkit.sim.robotwin import factory
from evalkit.sim.robotwin.environment import worker_environment
from evalkit.sim.robotwin.host import RoboTwinSimulator
from evalkit.sim.robotwin.layout import RenderSettings, Shader

LOOP = Path(__file__).with_name("own_loop.py")
BENCHMARK = Path(__file__).resolve().with_name("robotwin_loop.py")
CHUNK_STEPS = 16
SEED_BASE = 7
"""Candidates run upward from 800000, where no seed list that travels with evalkit reaches."""
FIRST_SEED = 100_000 * (1 + SEED_BASE)
STRIDE = 4
"""An action is the expert's command 4 x 15 physics steps later."""
POLICY = '''
import json
from pathlib import Path

import numpy as np

from evalkit.policy.contract import CameraSpec, PolicySpec

NEEDS_CHECKPOINT = False
CHUNK_STEPS = {chunk}
CAMERAS = ("head_camera", "left_camera", "right_camera")


class Script:
    """Plays back the actions noted for a trial, by its policy seed, and then holds still."""

    spec = PolicySpec(name="script", cameras=tuple(CameraSpec(name=name) for name in CAMERAS), action_type="qpos",
                      chunk_steps=CHUNK_STEPS, execute_steps=CHUNK_STEPS, needs_instruction=False, stateful=True)

    def __init__(self):
        self.scripts = json.loads(Path(__file__).with_name("scripts.json").read_text())
        self.present = {{}}

    def reset(self, info):
        self.present[info.session] = np.array(self.scripts[str(info.policy_seed)])

    def act(self, observation):
        actions = self.present[observation.session]
        steps = np.arange(observation.step, observation.step + CHUNK_STEPS)
        return actions[np.minimum(steps, len(actions) - 1)]

    def close(self):
        pass


def load(checkpoint, *, device):
    return Script()
'''


@dataclass(frozen=True, kw_only=True)
class Maker:
    """Makes simulators with a given renderer. Travels to the workers."""

    render: RenderSettings

    def __call__(self, worker_name: str) -> RoboTwinSimulator:
        """A simulator."""
        log = home() / "logs" / f"{worker_name}.log"
        return RoboTwinSimulator(factory.find_install(), factory.find_assets(), self.render, log)

    def fingerprint(self) -> BackendFingerprint:
        """What it makes."""
        probe = self("probe")
        try:
            return probe.fingerprint()
        finally:
            probe.close()


def renderer(shader: str) -> RenderSettings:
    """The generated world's renderer with another shader; ``rt`` is RoboTwin's ray tracer, which needs a GPU."""
    found: Shader = shader  # type: ignore[assignment]
    return replace(factory.find_renderer(), shader=found)


def run_loop(task: str, options: argparse.Namespace) -> dict[str, Any]:
    """Evaluate one task as RoboTwin does; ``lines`` has one entry a candidate seed.

    Raises:
        RuntimeError: the loop ended with an error.
    """
    install, assets, render = factory.find_install(), factory.find_assets(), renderer(options.renderer)
    job = {
        "layout": install.layout,
        "code_root": None,
        "assets_root": str(assets.root),
        "planner_path": str(assets.planner_path),
        "planner_class": assets.planner_class,
        "shader": render.shader,
        "shadow_map_px": render.shadow_map_px,
        "render_device": render.device,
        "task": task,
        "config": options.config,
        "settings": dict(load_config(options.config).settings),
        "first_seed": FIRST_SEED,
        "candidates": 20 * options.trials,
        "trials": options.trials,
        "action_type": "qpos",
        "stride": STRIDE,
        "cut_every": options.cut_every,
        "chunk_steps": CHUNK_STEPS,
        "observe": True,
        "warm_up": True,
        "profile": options.profile,
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(job, file)
        file.flush()
        started = time.perf_counter()
        done = subprocess.run(
            [str(install.python), str(LOOP), file.name],
            capture_output=True,
            text=True,
            check=False,
            env=worker_environment(install.python, render),
        )
    wall_s = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(f"RoboTwin's loop on {task} ended with {done.returncode}: {done.stderr[-800:]}")
    first, *lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {"task": task, "wall_s": wall_s, "startup_s": first["startup_s"], "lines": lines}


def accepted(loops: list[dict[str, Any]]) -> dict[tuple[str, int], dict[str, Any]]:
    """The loop's trials by task and seed."""
    return {(loop["task"], line["seed"]): line for loop in loops for line in loop["lines"] if line["accepted"]}


def write_policy(folder: Path, trials: dict[tuple[str, int], dict[str, Any]]) -> None:
    """The policy that plays back the loop's actions, as an adapter of that working folder."""
    scripts = {stream_seed(seed, "policy", task, 0): line["actions"] for (task, seed), line in trials.items()}
    policy = folder / "policies" / "script"
    policy.mkdir(parents=True)
    (policy / "__init__.py").write_text(POLICY.format(chunk=CHUNK_STEPS))
    (policy / "scripts.json").write_text(json.dumps(scripts))


def run_evalkit(folder: Path, name: str, workers: int, options: argparse.Namespace) -> dict[str, Any]:
    """``evalkit run`` in a process of its own; where the trials' records are, and the wall clock.

    Raises:
        RuntimeError: it failed.
    """
    command = [
        sys.executable,
        str(Path(__file__).resolve().with_name("robotwin_loop.py")),
        "--child",
        name,
        "--workers",
        str(workers),
    ]
    command += ["--tasks", options.tasks, "--trials", str(options.trials), "--config", options.config]
    command += ["--renderer", options.renderer]
    started, began_at = time.perf_counter(), time.time()
    environment = {**os.environ, "EVALKIT_HOME": str(home())}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    wall_s = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(f"evalkit run ended with {done.returncode}: {(done.stdout + done.stderr)[-1500:]}")
    records = list(read_json_lines(folder / name / "trials.jsonl"))
    starts = [datetime.fromisoformat(record["started_at"]).timestamp() for record in records]
    ends = [start + record["timings"]["wall_s"] for start, record in zip(starts, records, strict=True)]
    return {
        "records": records,
        "workers": workers,
        "wall_s": wall_s,
        "startup_s": min(starts) - began_at,
        "span_s": max(ends) - min(starts),
    }


def child(options: argparse.Namespace) -> int:
    """What ``evalkit run`` does, with the renderer asked for."""
    from evalkit.cli.backends import Backend
    from evalkit.cli.run_options import RunOptions
    from evalkit.cli.run_session import execute
    from evalkit.cli.run_setup import RunRequest, prepare
    from evalkit.cli.stopping import StopRequest

    maker = Maker(render=renderer(options.renderer))
    request = RunRequest(
        checkpoint=None,
        policy="script",
        mode={"demo_clean": "c2c", "demo_randomized": "c2r"}[options.config],
        tasks=options.tasks,
        trials=options.trials,
        repeats=1,
        execute_steps=None,
        seed_base=SEED_BASE,
        backend="robotwin",
        out=Path(options.child),
    )
    backend = Backend(
        make_simulator=maker, fingerprint=maker.fingerprint, tasks=tuple(options.tasks.split(",")), is_robotwin=True
    )
    stop = StopRequest()
    stop.install()
    return execute(prepare(request, backend=backend), RunOptions(workers=options.worker_counts[0]), stop)
