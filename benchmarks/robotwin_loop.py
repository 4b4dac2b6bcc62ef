"""RoboTwin's own loop against evalkit, in one run, on the same scenes with the same actions.

The loop (``own_loop.py``) does what RoboTwin's ``script/eval_policy.py`` and its policy template do: one process a
task, one task after another, the expert's check before each trial, an observation of four cameras after each action.
evalkit is the whole of ``evalkit run``: seed lists, pool, records. Its first run has to find the seeds, with the
expert's checks; its second one knows them. The policy plays back what the expert of the loop commanded, in chunks, and
takes three cameras' pictures for each chunk. It costs nothing on either side, so the times are those of simulation.

    python benchmarks/robotwin_loop.py --tasks click_bell,stack_blocks_two --trials 10
    python benchmarks/robotwin_loop.py --tasks click_bell,stack_blocks_two --trials 4 --workers 1 --renderer rt
    python benchmarks/robotwin_loop.py --tasks click_bell,stack_blocks_two --trials 4 --profile
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from loop_runs import CHUNK_STEPS, accepted, child, run_evalkit, run_loop, write_policy
from task_names import task_names


def differences(trials: dict[tuple[str, int], dict[str, Any]], run: dict[str, Any]) -> list[str]:
    """Trials whose verdict or end isn't the loop's."""
    lines = []
    for record in run["records"]:
        spec = record["spec"]
        theirs = trials.get((spec["task"], spec["seed"]))
        mine = (record["outcome"] == "success", record["steps"], record["state_digest"])
        if theirs is None or (theirs["success"], theirs["steps"], theirs["state_digest"]) != mine:
            lines.append(f"{spec['task']} {spec['seed']}")
    return lines


def warm_trials(run: dict[str, Any]) -> dict[tuple[str, int], float]:
    """Seconds of a run's trials by task and seed, without the first one of each worker, which pays for its start."""
    found, begun = {}, set()
    for record in sorted(run["records"], key=lambda record: str(record["started_at"])):
        if record["worker"] in begun:
            found[record["spec"]["task"], record["spec"]["seed"]] = float(record["timings"]["wall_s"])
        begun.add(record["worker"])
    return found


def table(loops: list[dict[str, Any]], runs: dict[str, dict[str, Any]]) -> str:
    """Times and ratios, a line a run."""
    trials = accepted(loops)
    loop_wall_s = sum(loop["wall_s"] for loop in loops)
    loop_start_s = sum(loop["startup_s"] for loop in loops)
    loop_span_s = sum(line.get("trial_s", 0.0) + line["expert_s"] for loop in loops for line in loop["lines"])
    whole = {key: line["expert_s"] + line["trial_s"] for key, line in trials.items()}
    rows = [
        f"{'':34}{'trials':>7}{'wall':>9}{'start-up':>9}{'the rest':>9}{'median':>9}{'median':>8}{'':4}{'ratio of':>10}"
        f"{'ratio of':>10}",
        f"{'':34}{'':>7}{'s':>9}{'s':>9}{'s':>9}{'s/trial':>9}{'ratio':>8}{'n':>4}{'the rest':>10}{'walls':>10}",
        f"{'RoboTwin-style loop, 1 process':34}{len(trials):7}{loop_wall_s:9.1f}{loop_start_s:9.1f}{loop_span_s:9.1f}"
        f"{median(whole.values()):9.2f}{'':8}{len(whole):4}",
    ]
    for name, run in runs.items():
        pairs = [(whole[key], seconds) for key, seconds in warm_trials(run).items() if key in whole]
        rest_s = run["rest_s"]
        per_trial = f"{'':21}"
        if name.endswith("second run") and pairs:
            ratio = median(theirs / ours for theirs, ours in pairs)
            per_trial = f"{median(ours for _, ours in pairs):9.2f}{ratio:7.1f}x{len(pairs):4}"
        rows.append(
            f"{'evalkit, ' + name:34}{len(run['records']):7}"
            f"{run['wall_s']:9.1f}{run['wall_s'] - rest_s:9.1f}{rest_s:9.1f}"
            f"{per_trial}{loop_span_s / rest_s:9.1f}x{loop_wall_s / run['wall_s']:9.1f}x"
        )
    return "\n".join(rows)


def compare(options: argparse.Namespace) -> int:
    """Run the loop once and evalkit twice for each number of workers; exit code 1 if a trial differs."""
    tasks = options.tasks.split(",")
    loops = [run_loop(task, options) for task in tasks]
    trials = accepted(loops)
    few = [task for task in tasks if sum(name == task for name, _ in trials) < options.trials]
    if few:
        raise SystemExit(f"too few accepted seeds of {few[0]} among {20 * options.trials} candidates")
    runs: dict[str, dict[str, Any]] = {}
    for workers in options.worker_counts:
        with tempfile.TemporaryDirectory() as folder:
            write_policy(Path(folder), trials)
            first = run_evalkit(Path(folder), "first", workers, options)
            second = run_evalkit(Path(folder), "second", workers, options)
        second["rest_s"] = second["span_s"]
        # What the first run needs until its workers stand is what the second one needs; then it looks for seeds.
        first["rest_s"] = first["wall_s"] - (second["wall_s"] - second["span_s"])
        runs[f"{workers} worker{'s'[: workers > 1]}, first run"] = first
        runs[f"{workers} worker{'s'[: workers > 1]}, second run"] = second
    wrong = {name: found for name, run in runs.items() if (found := differences(trials, run))}
    print(f"{', '.join(tasks)}; {options.config}; renderer {options.renderer}; actions a chunk: {CHUNK_STEPS}")
    print(table(loops, runs))
    print("trial by trial the loop's verdicts, actions and poses, to the bit" if not wrong else f"DIFFERENT: {wrong}")
    if options.out:
        slim = {name: {**run, "records": [_slim(record) for record in run["records"]]} for name, run in runs.items()}
        for loop in loops:
            for line in loop["lines"]:
                line.pop("actions", None), line.pop("poses", None)
        options.out.write_text(json.dumps({"options": vars(options) | {"out": None}, "loop": loops, "evalkit": slim}))
    return 1 if wrong else 0


def _slim(record: dict[str, Any]) -> dict[str, Any]:
    kept = ("outcome", "steps", "policy_calls", "timings", "started_at", "worker", "state_digest")
    return {key: record[key] for key in kept}


def main() -> int:
    """Compare, or with ``--profile`` say where the time goes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=task_names, default="click_bell,grab_roller,place_shoe,stack_blocks_two")
    parser.add_argument("--config", default="demo_clean", choices=("demo_clean", "demo_randomized"))
    parser.add_argument("--trials", type=int, default=10, help="accepted seeds a task")
    parser.add_argument("--workers", default="1,2", help="numbers of workers, comma-separated")
    parser.add_argument("--renderer", default="soft", choices=("soft", "rt", "default", "minimal"))
    parser.add_argument(
        "--cut-every", type=int, default=2, help="every so many scripts stop half-way, so that trials fail"
    )
    parser.add_argument("--profile", action="store_true", help="the loop and one worker of evalkit, phase by phase")
    parser.add_argument("--out", type=Path, help="file for all single times, JSON")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.worker_counts = [int(number) for number in options.workers.split(",")]
    if options.child:
        return child(options)
    if options.profile:
        from loop_profile import profile

        return profile(options)
    return compare(options)


if __name__ == "__main__":
    sys.exit(main())
