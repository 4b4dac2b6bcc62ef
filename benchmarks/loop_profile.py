"""Where a trial's time goes, in RoboTwin's loop and in evalkit: what ``robotwin_loop.py --profile`` prints.

The clocks are the same on both sides (``evalkit/sim/robotwin/worker/stopwatch.py``); they cost a little themselves. The
loop's check by the expert is a line of its own; evalkit makes it once for a seed, and not in a trial.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np
from loop_runs import CHUNK_STEPS, Maker, accepted, renderer, run_loop

from evalkit.core.trial import TrialSpec
from evalkit.episode.decide import LocalDecider
from evalkit.episode.run_trial import run_trial
from evalkit.pool.seed_work import make_scene
from evalkit.protocol.config import load_config
from evalkit.sim.robotwin.worker import stopwatch

REST = "rest of the loop: policy, closing the scene"
POLICY, PIPE = "policy", "the rest: pipe between the processes, evalkit's own loop"
PHASES = (
    stopwatch.SETUP,
    stopwatch.PHYSICS,
    stopwatch.DRIVES,
    stopwatch.PLANNER,
    stopwatch.CHECK,
    stopwatch.RENDER,
    stopwatch.OBSERVATION,
    stopwatch.OTHER,
)


def profile(options: argparse.Namespace) -> int:
    """Run the loop and one worker of evalkit on the same trials and print medians per trial."""
    loops = [run_loop(task, options) for task in options.tasks.split(",")]
    trials = accepted(loops)
    before = [{"expert's check": line["expert_s"], **_with_rest(line)} for line in trials.values()]
    after = profile_evalkit(trials, options)
    print(f"{options.tasks}; {options.config}; renderer {options.renderer}; {len(trials)} trials; median ms a trial")
    print(f"{'phase':58}{'RoboTwin loop':>15}{'evalkit':>12}")
    for phase in ("expert's check", *PHASES, POLICY, PIPE, REST):
        if any(phase in row for row in [*before, *after]):
            print(f"{phase:58}{_median_ms(before, phase):>15}{_median_ms(after, phase):>12}")
    whole = [[sum(row.values()) for row in rows] for rows in (before, after)]
    print(f"{'whole trial':58}{1000 * median(whole[0]):15,.0f}{1000 * median(whole[1]):12,.0f}")
    ratios = [one / other for one, other in zip(*whole, strict=True)]
    print(f"median of the trials' ratios: {median(ratios):.1f}x (n = {len(ratios)})")
    return 0


def profile_evalkit(
    trials: dict[tuple[str, int], dict[str, Any]], options: argparse.Namespace
) -> list[dict[str, float]]:
    """Seconds by phase for each trial of the loop, through evalkit, with one worker that has taken a picture before."""
    from parity_pair import Script

    config = load_config(options.config)
    cameras = ("head_camera", "left_camera", "right_camera")
    rows = []
    with contextlib.closing(Maker(render=renderer(options.renderer))("profile")) as sim:
        sim.profile()
        sim.reset(make_scene(next(iter(trials))[0], config, next(iter(trials))[1]))
        sim.observe(cameras)
        for (task, seed), line in trials.items():
            scene = make_scene(task, config, seed)
            spec = TrialSpec(
                backend="profile",
                task=task,
                config=config.name,
                config_digest=config.digest,
                seed=seed,
                instruction="follow the script",
                instruction_split="unseen",
                horizon_steps=scene.horizon_steps,
                action_type="qpos",
                execute_steps=CHUNK_STEPS,
                policy="script",
            )
            policy = LocalDecider(Script(np.array(line["actions"]), "qpos", cameras))
            sim.profile()
            started = time.perf_counter()
            record = run_trial(sim, policy, spec, scene, session="profile")
            wall_s = time.perf_counter() - started
            row = {**sim.profile(), POLICY: record.timings.inference_s}
            rows.append({**row, PIPE: wall_s - sum(row.values())})
            if record.state_digest != line["state_digest"]:
                print(f"{task} {seed} ended differently", file=sys.stderr)
    return rows


def _with_rest(line: dict[str, Any]) -> dict[str, float]:
    phases: dict[str, float] = line["profile"]
    return {**phases, REST: line["trial_s"] - sum(phases.values())}


def _median_ms(rows: Sequence[dict[str, float]], phase: str) -> str:
    if not any(phase in row for row in rows):
        return "-"
    return f"{1000 * median([row.get(phase, 0.0) for row in rows]):,.0f}"
