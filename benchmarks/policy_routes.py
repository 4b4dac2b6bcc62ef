"""What does a road to a policy cost? One checkpoint by six roads: same actions, same trials, added time a chunk.

Every road gets the golden observations in turn, road by road within each observation, so that whatever else the machine
does falls on all alike. Then trials of a real task: outcome, number of actions and the digest of the final scene must
agree.

    python benchmarks/policy_routes.py --rounds 5 --trials 1
    python benchmarks/policy_routes.py --rounds 30 --roads-only   # holds still instead of thinking
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
import yaml

from evalkit.core.trial import TrialSpec
from evalkit.episode.decide import LocalDecider
from evalkit.episode.run_trial import run_trial
from evalkit.policy.checkpoint import Checkpoint, resolve
from evalkit.policy.contract import ActionChunk, CameraSpec, EpisodeInfo, Policy
from evalkit.policy.golden import Moment, golden_moments
from evalkit.policy.registry import load_adapter, load_described
from evalkit.policy.settings import read_settings
from evalkit.pool.seed_work import make_scene
from evalkit.protocol.config import load_config
from evalkit.sim.robotwin import factory

ROUTES = ("native", "torch_module", "robotwin_legacy", "xpolicylab", "openpi", "remote")
SEED, FIRST_SEED, CONFIG = 7, 100_000, "demo_clean"
HOLDER, HOLD_STEPS = "noop", 16
CAMERAS = tuple(CameraSpec(name=name) for name in ("head_camera", "left_camera", "right_camera"))
ASK = """
import sys
from pathlib import Path

import torch

from evalkit.policy.contract import EpisodeInfo, Observation
from evalkit.policy.registry import load_adapter

torch.set_num_threads(1)
policy = load_adapter({adapter!r}).load(Path({checkpoint!r}), device="cpu")

def ask(seed, step, instruction, state, images):
    policy.reset(EpisodeInfo(session="s", instruction=instruction, policy_seed=seed, horizon_steps=400))
    return policy.act(Observation(session="s", step=step, instruction=instruction, state=state, images=images))
"""
HOLD = """
import numpy as np

from evalkit.policy.registry import load_adapter

policy = load_adapter("noop").load(None, device="cpu")

def ask(seed, step, instruction, state, images):
    return np.tile(state, (16, 1))
"""
MODULE = """
class Model:
    def predict(self, request):
        images = {key.split("/")[1]: value for key, value in request.items() if key.endswith("_camera")}
        return ask(request["seed"], request["step"], request["prompt"], request["observation/state"], images)
"""
FOLDER = """
def get_model(usr_args):
    return usr_args["execute_steps"]

def eval(TASK_ENV, model, observation):
    images = {name: camera["rgb"] for name, camera in observation["observation"].items()}
    state = observation["joint_action"]["vector"]
    chunk = ask(TASK_ENV.policy_seed, TASK_ENV.take_action_cnt, TASK_ENV.get_instruction(), state, images)
    for action in chunk[:model]:
        TASK_ENV.take_action(action)

def reset_model(model):
    pass
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ckpt", default="step_30000")
    parser.add_argument("--rounds", type=int, default=5, help="how often each of the golden observations is asked")
    parser.add_argument("--task", default="click_bell")
    parser.add_argument("--trials", type=int, default=1, help="trials of the task by every road")
    parser.add_argument("--roads-only", action="store_true", help="the policy holds still; no trials")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    checkpoint = resolve(arguments.ckpt)
    if arguments.roads_only:
        sizes = {"chunk_steps": HOLD_STEPS, "execute_steps": HOLD_STEPS}
        checkpoint = replace(checkpoint, adapter=HOLDER, spec={**checkpoint.spec, **sizes})
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        policies = {route: stack.enter_context(opened(route, checkpoint, Path(folder))) for route in ROUTES}
        seconds = measured(policies, arguments.rounds)
        outcomes = [] if arguments.roads_only else trials(policies, checkpoint, arguments.task, arguments.trials)
    own = seconds["native"]
    rows: list[dict[str, Any]] = []
    for route, spent in seconds.items():
        added = [theirs - ours for theirs, ours in zip(spent, own, strict=True)]
        rows.append(
            {
                "route": route,
                "chunks": len(spent),
                "median_ms": 1000 * statistics.median(spent),
                "added_ms": 1000 * statistics.median(added),
                "ratio": statistics.median(spent) / statistics.median(own),
            }
        )
    if arguments.json:
        print(json.dumps({"routes": rows, "trials": outcomes}, indent=1))
        return
    print(f"{'route':16s} {'chunks':>6s} {'median ms':>10s} {'added ms':>9s}" + " ratio" * bool(outcomes))
    for row in rows:
        ratio = " {ratio:5.2f}".format(**row) if outcomes else ""
        print("{route:16s} {chunks:6d} {median_ms:10.2f} {added_ms:9.2f}".format(**row) + ratio)
    if outcomes:
        print(f"trials, the same by all {len(ROUTES)} routes: {outcomes}")


def measured(policies: Mapping[str, Policy], rounds: int) -> dict[str, list[float]]:
    """Seconds of each decision, by route. The first round warms up.

    Raises:
        RuntimeError: two roads gave different actions.
    """
    moments: list[Moment] = golden_moments(replace(policies["native"].spec, cameras=CAMERAS))
    seconds: dict[str, list[float]] = {route: [] for route in policies}
    for count in range(rounds + 1):
        for moment in moments:
            chunks = {}
            for route, policy in policies.items():
                row = replace(moment.observation, session=f"{route}-{count}")
                policy.reset(_episode(row))
                row = replace(row, step=0)
                started = time.perf_counter()
                chunks[route] = policy.act(row)
                if count:
                    seconds[route].append(time.perf_counter() - started)
            _same(chunks, moment.name)
    return seconds


def _episode(row: Any) -> EpisodeInfo:
    return EpisodeInfo(session=row.session, instruction=row.instruction, policy_seed=SEED, horizon_steps=400)


def _same(chunks: Mapping[str, ActionChunk], where: str) -> None:
    steps = min(map(len, chunks.values()))
    for route, chunk in chunks.items():
        if not np.array_equal(chunk[:steps], chunks["native"][:steps]):
            raise RuntimeError(f"route {route} gave other actions than native at {where}")


def trials(policies: Mapping[str, Policy], checkpoint: Checkpoint, task: str, count: int) -> list[dict[str, Any]]:
    """The same trials by every road.

    Raises:
        RuntimeError: two roads gave different trials.
    """
    config, execute_steps = load_config(CONFIG), checkpoint.spec["execute_steps"]
    sim = factory.make_simulator("policy-routes")
    found: list[dict[str, Any]] = []
    try:
        for seed in range(FIRST_SEED, FIRST_SEED + count):
            scene = make_scene(task, config, seed)
            sim.reset(scene)
            result = sim.expert()
            instruction = sim.instructions(task, result.info, "seen", seed, 1)[0]
            own = None
            for route, policy in policies.items():
                spec = TrialSpec(
                    backend="routes", task=task, config=CONFIG, config_digest=config.digest, seed=seed,
                    instruction=instruction, instruction_split="seen", horizon_steps=scene.horizon_steps,
                    action_type="qpos", execute_steps=execute_steps, policy="house",
                )  # fmt: skip
                record = run_trial(sim, LocalDecider(policy), spec, scene, session=f"{route}-{seed}")
                trial = {
                    "seed": seed, "outcome": record.outcome.value, "steps": record.steps,
                    "chunks": record.policy_calls, "state": record.state_digest,
                }  # fmt: skip
                if record.error is not None:
                    raise RuntimeError(f"route {route}, seed {seed}: {record.error.message}")
                own = own or trial
                if trial != own:
                    raise RuntimeError(f"route {route} gave {trial}, native gave {own}")
            assert own is not None
            found.append(own)
    finally:
        sim.close()
    return found


@contextmanager
def opened(route: str, checkpoint: Checkpoint, root: Path) -> Iterator[Policy]:
    """The checkpoint by one road."""
    folder = root / route
    folder.mkdir()
    with ExitStack() as stack:
        if route == "native":
            weights = None if checkpoint.adapter == HOLDER else checkpoint.path
            policy = load_adapter(checkpoint.adapter).load(weights, device="cpu")
        else:
            values = {"adapter": route, **described(route, checkpoint, folder, stack)}
            path = folder / f"{route}.yaml"
            path.write_text(yaml.safe_dump(values))
            policy = load_described(read_settings(path), None, device="cpu")
        stack.callback(policy.close)
        yield policy


def described(route: str, checkpoint: Checkpoint, folder: Path, stack: ExitStack) -> dict[str, Any]:
    """The settings of a policy file for a road, and what the road needs beside it."""
    cameras = {camera["name"]: [camera["height_px"], camera["width_px"]] for camera in checkpoint.spec["cameras"]}
    sizes = {"actions": "qpos", "cameras": cameras} | {
        key: checkpoint.spec[key] for key in ("chunk_steps", "execute_steps")
    }
    robot = {**sizes, "needs_instruction": True, "stateful": False, "one_at_a_time": True}
    request = {f"observation/{name}": {"picture": name} for name in cameras} | {
        "observation/state": {"vector": "qpos", "as": [], "dtype": "float64"},
        "prompt": {"instruction": "text"},
        "step": {"number": "step"},
        "seed": {"number": "seed"},
        "reset": {"number": "first"},
    }
    profile = {"robot": robot, "request": request, "answer": {"key": "actions", "as": []}}
    holds = checkpoint.adapter == HOLDER
    ask = HOLD if holds else ASK.format(adapter=checkpoint.adapter, checkpoint=str(checkpoint.path))
    if route == "torch_module":
        (folder / "model.py").write_text(ask + MODULE)
        return {"code": ".", "factory": "model:Model", "method": "predict", "pass_as": "mapping", "tensors": False,
                "batch_axis": False, "profile": profile}  # fmt: skip
    if route == "robotwin_legacy":
        package = folder / "policy" / "House"
        package.mkdir(parents=True)
        (package / "deploy_policy.py").write_text(ask + FOLDER)
        (package / "__init__.py").write_text("from .deploy_policy import *\n")
        yml = {"policy_name": "House", "execute_steps": checkpoint.spec["execute_steps"]}
        (package / "deploy_policy.yml").write_text(yaml.safe_dump(yml))
        return {"policy_folder": "policy/House", "weights": [], "cameras": cameras}
    if route == "remote":
        (folder / "adapter.py").write_text(
            f"{ask}\nNEEDS_CHECKPOINT = False\n\ndef load(checkpoint, *, device):\n    return policy\n"
        )
        return {"file": "adapter.py", "python": sys.executable}
    url = _served(route, checkpoint, stack)
    if route == "openpi":
        return {"url": url, "serves": "house", "profile": profile}
    return {"url": url, "serves": "house", "robot": sizes, "state_dtype": "float64"}


def _served(protocol: str, checkpoint: Checkpoint, stack: ExitStack) -> str:
    which = ["--policy", HOLDER] if checkpoint.adapter == HOLDER else ["--ckpt", str(checkpoint.path)]
    command = [sys.executable, "-m", "evalkit.cli.main", "serve", *which]
    server = subprocess.Popen([*command, "--protocol", protocol, "--port", "0"], stdout=subprocess.PIPE, text=True)
    stack.callback(server.wait)
    stack.callback(server.terminate)
    assert server.stdout is not None
    line = server.stdout.readline()
    found = re.search(r"ws://\S+", line)
    if found is None:
        raise RuntimeError(f"no server: {line}")
    return found[0]


if __name__ == "__main__":
    main()
