"""One setting of ``parity.py``: RoboTwin's loop and evalkit over the same candidate seeds, trial by trial."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evalkit.core.errors import SimulatorError, UnstableSceneError
from evalkit.core.trial import ActionType, TrialSpec
from evalkit.episode.decide import LocalDecider
from evalkit.episode.run_trial import run_trial
from evalkit.policy.contract import ActionChunk, CameraSpec, EpisodeInfo, Observation, PolicySpec
from evalkit.pool.seed_work import make_scene
from evalkit.protocol.config import load_config
from evalkit.sim.robotwin import factory
from evalkit.sim.robotwin.environment import worker_environment
from evalkit.sim.robotwin.host import RoboTwinSimulator
from evalkit.sim.robotwin.official import World

LOOP = Path(__file__).with_name("own_loop.py")
CAMERAS = ("head_camera", "left_camera", "right_camera")
CHUNK_STEPS = 16
FIRST_SEED = 100_000
Report = Callable[[dict[str, Any]], bool | None]
Poses = dict[str, list[list[float]]]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is compared."""

    task: str
    config: str
    action_type: ActionType
    candidates: int
    stride: int
    cut_every: int
    """Every so many seeds the script stops half-way, so that failures are compared too."""
    observe: bool
    first_seed: int = FIRST_SEED
    world: World | None = None
    """An installation; None: the generated world."""

    def make_simulator(self, name: str) -> RoboTwinSimulator:
        """A simulator of that world."""
        return self.world(name) if self.world is not None else factory.make_simulator(name)


class Script:
    """A policy that plays back given actions and then holds the last one."""

    def __init__(self, actions: ActionChunk, action_type: ActionType, cameras: Sequence[str]) -> None:
        self._actions = actions
        self.spec = PolicySpec(
            name="script",
            cameras=tuple(CameraSpec(name=name) for name in cameras),  # type: ignore[arg-type]
            action_type=action_type,
            chunk_steps=CHUNK_STEPS,
            execute_steps=CHUNK_STEPS,
            needs_instruction=False,
            stateful=False,
        )

    def reset(self, info: EpisodeInfo) -> None:
        """Nothing to forget."""

    def act(self, observation: Observation) -> ActionChunk:
        """The next actions."""
        steps = np.arange(observation.step, observation.step + CHUNK_STEPS)
        return self._actions[np.minimum(steps, len(self._actions) - 1)]

    def close(self) -> None:
        """Nothing to release."""


def compare(setting: Setting, report: Report = lambda row: None) -> list[dict[str, Any]]:
    """One row a candidate seed: both verdicts, whether they are the same, and both times.

    Args:
        setting: what to compare.
        report: called with each row as soon as there is one; returns True to stop.
    """
    rows: list[dict[str, Any]] = []
    name = f"parity-{os.getpid()}-{setting.task}-{setting.config}-{setting.action_type}-{setting.first_seed}"
    sim = setting.make_simulator(name)
    try:
        with contextlib.closing(own_loop(setting)) as lines:
            for line in lines:
                rows.append(_row(setting, line, run_ours(sim, setting, line)))
                if report(rows[-1]):
                    break
    finally:
        sim.close()
    return rows


def own_loop(setting: Setting) -> Iterator[dict[str, Any]]:
    """RoboTwin's loop in its interpreter, a line a candidate seed as they come; ended when the generator is closed.

    Raises:
        RuntimeError: it ended with an error.
    """
    config, world = load_config(setting.config), setting.world
    if world is not None:
        install, assets, render = world.install, world.assets, world.renderer()
    else:
        install, assets, render = factory.find_install(), factory.find_assets(), factory.find_renderer()
    job = {
        "layout": install.layout,
        "code_root": str(install.root) if install.root else None,
        "assets_root": str(assets.root),
        "planner_path": str(assets.planner_path) if assets.planner_path else None,
        "planner_class": assets.planner_class,
        "shader": render.shader,
        "shadow_map_px": render.shadow_map_px,
        "render_device": render.device,
        "task": setting.task,
        "config": setting.config,
        "settings": dict(config.settings),
        "first_seed": setting.first_seed,
        "candidates": setting.candidates,
        "trials": setting.candidates,
        "action_type": setting.action_type,
        "stride": setting.stride,
        "cut_every": setting.cut_every,
        "chunk_steps": CHUNK_STEPS,
        "observe": setting.observe,
    }
    with tempfile.TemporaryDirectory() as folder:
        path, log = Path(folder, "job.json"), Path(folder, "log.txt")
        path.write_text(json.dumps(job))
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [str(install.python), str(LOOP), str(path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                # As many threads as a worker has: the last bits of the CPU planner's algebra depend on them.
                env=worker_environment(install.python, render),
            )
        assert process.stdout is not None
        try:
            yield from map(json.loads, process.stdout)
            if process.wait():
                tail = log.read_text(errors="replace")[-800:]
                raise RuntimeError(f"RoboTwin's loop on {setting.task} ended with {process.returncode}: {tail}")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def run_ours(sim: RoboTwinSimulator, setting: Setting, theirs: dict[str, Any]) -> dict[str, Any]:
    """The same candidate through evalkit."""
    config = load_config(setting.config)
    scene = make_scene(setting.task, config, theirs["seed"])
    started = time.perf_counter()
    try:
        sim.reset(scene)
        accepted = sim.expert().success
    except UnstableSceneError:
        accepted = False
    except SimulatorError as error:
        if error.kind != "task_code":
            raise
        accepted = False
    checked = time.perf_counter()
    ours: dict[str, Any] = {"accepted": accepted, "expert_s": checked - started}
    if accepted and theirs["accepted"]:
        cameras = CAMERAS if setting.observe else ()
        script = Script(np.array(theirs["actions"]), setting.action_type, cameras)
        spec = TrialSpec(
            backend="parity",
            task=setting.task,
            config=setting.config,
            config_digest=config.digest,
            seed=theirs["seed"],
            instruction="follow the script",
            instruction_split="unseen",
            horizon_steps=scene.horizon_steps,
            action_type=setting.action_type,
            execute_steps=CHUNK_STEPS,
            policy="script",
        )
        record = run_trial(sim, LocalDecider(script), spec, scene, session="parity")
        ours.update(
            success=record.outcome == "success",
            steps=record.steps,
            state_digest=record.state_digest,
            trial_s=time.perf_counter() - checked,
        )
        if record.state_digest != theirs["state_digest"]:
            ours["poses"] = sim.poses()
    return ours


def _row(setting: Setting, theirs: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    compared = ("accepted", "success", "steps", "state_digest")
    same = {key: theirs.get(key) == ours.get(key) for key in compared}
    return {
        "task": setting.task,
        "config": setting.config,
        "action_type": setting.action_type,
        "seed": theirs["seed"],
        "same": same,
        "accepted": theirs["accepted"],
        "reason": theirs.get("reason"),
        "success": theirs.get("success"),
        "steps": theirs.get("steps"),
        "difference": largest_differences(theirs["poses"], ours["poses"]) if "poses" in ours else None,
        "theirs_s": [round(theirs[key], 3) for key in ("expert_s", "trial_s") if key in theirs],
        "ours_s": [round(ours[key], 3) for key in ("expert_s", "trial_s") if key in ours],
    }


def largest_differences(theirs: Poses, ours: Poses) -> dict[str, float | None]:
    """Largest difference of a joint (rad or m), a position (m), a quaternion's part; None: not the same things."""
    found: dict[str, float | None] = {}
    for name, cut in (("joints", slice(None)), ("objects", slice(0, 3)), ("orientations", slice(3, 7))):
        key = "joints" if name == "joints" else "objects"
        if [len(part) for part in theirs[key]] != [len(part) for part in ours[key]]:
            found[name] = None
            continue
        pairs = zip(theirs[key], ours[key], strict=True)
        found[name] = max((float(np.abs(np.subtract(a[cut], b[cut])).max()) for a, b in pairs if len(a)), default=0.0)
    return found
