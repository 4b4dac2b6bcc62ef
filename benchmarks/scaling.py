"""How ``evalkit run`` scales with workers and GPUs, and where the time goes: the same trials at every count.

    python benchmarks/scaling.py --tasks click_bell,grab_roller --trials 2 --workers 1,2 --out results/scaling
    python benchmarks/scaling.py --trials 16 --workers 1,2,4,8,16 --gpus 1,2 --limit-s 3000 --out results/scaling

Seeds are found first, and aren't measured. Each count is one run of the command; ``scaling.json`` and ``scaling.md``
are written again as each ends. Trials are compared one by one with those of the first count. A count that the limit
cuts off says how many of its trials it finished; later ones aren't started.

Worker-seconds are divided into: simulator (setup, physics, check, render), policy (inference), waiting for the policy,
messages and the loop itself, waiting for the driver between trials, before a worker's first trial, after its last one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SIDES = Path(__file__).resolve().parent / "sides"
sys.path[:0] = [path for path in (str(SIDES), str(SIDES.parent)) if path not in sys.path]

from accounts import PHASES, differing, machine, markdown, worker_time  # noqa: E402
from task_names import task_names  # noqa: E402

EVALKIT = [sys.executable, "-m", "evalkit.cli.main"]
STOPPED = (75, -15)
"""Exit codes of a command that was told to stop."""
GRACE_S = 30.0


def visible_gpus(count: int, environment: Mapping[str, str]) -> str:
    """Value of CUDA_VISIBLE_DEVICES for the first so many GPUs.

    Raises:
        ValueError: fewer are allowed already.
    """
    allowed = environment.get("CUDA_VISIBLE_DEVICES")
    names = [name for name in allowed.split(",") if name] if allowed is not None else [str(i) for i in range(count)]
    if len(names) < count:
        raise ValueError(f"--gpus {count}: CUDA_VISIBLE_DEVICES allows {len(names)} GPUs")
    return ",".join(names[:count])


def run_count(command: Sequence[str], environment: Mapping[str, str], folder: Path, limit_s: float) -> dict[str, Any]:
    """One count. Returns start, duration, exit code and records; those finished, if the limit cuts it off.

    Raises:
        RuntimeError: the command failed.
    """
    began, started = time.time(), time.perf_counter()
    log_path = folder.parent / f"{folder.name}.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen([*command, "--out", str(folder)], env=dict(environment), stdout=log, stderr=log)
        try:
            process.wait(timeout=max(1.0, limit_s))
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                process.wait(timeout=GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    wall_s = time.perf_counter() - started
    trials = folder / "trials.jsonl"
    records = [json.loads(line) for line in trials.read_text().splitlines()] if trials.exists() else []
    stopped = process.returncode in (*STOPPED, -9)
    if process.returncode and not stopped and not records:
        raise RuntimeError(f"evalkit run ended with {process.returncode}: {log_path.read_text()[-2000:]}")
    return {"began": began, "wall_s": wall_s, "code": process.returncode, "records": records, "cut_off": stopped}


def count_result(
    found: Mapping[str, Any], workers: int, gpus: int | None, wanted: int, first: Sequence[Mapping[str, Any]] | None
) -> dict[str, Any]:
    """What one count came to.

    Args:
        found: see ``run_count``.
        workers: asked for.
        gpus: allowed; None: as they were.
        wanted: trials of the plan.
        first: the first count's records; None for itself.
    """
    records = found["records"]
    result: dict[str, Any] = {"gpus": gpus, "workers": workers, "trials": len(records), "wanted": wanted}
    result.update(cut_off=found["cut_off"], exit_code=found["code"], wall_s=found["wall_s"])
    if not records:
        return result
    spent = worker_time(records, found["began"], found["began"] + found["wall_s"], workers=workers)
    total_s = spent.workers * spent.wall_s
    shares = {phase.removesuffix("_s"): spent.phases[phase] / total_s for phase in PHASES}
    shares["wait for policy"] = shares.pop("queue")
    shares.update(
        {
            "messages and loop": spent.other_s / total_s,
            "wait for driver": spent.between_s / total_s,
            "before the first trial": spent.start_s / total_s,
            "after the last trial": spent.end_s / total_s,
        }
    )
    result.update(
        trials_per_hour=3600 * len(records) / spent.work_s,
        trials_per_hour_whole=3600 * len(records) / spent.wall_s,
        actions=sum(record["steps"] for record in records),
        efficiency=spent.efficiency,
        efficiency_whole=spent.efficiency_whole,
        first_trial_after_s=spent.first_s,
        overhead_per_trial_ms=spent.overhead_per_trial_ms,
        action_ms=_median_ms(records, "physics_s", "steps"),
        observation_ms=_median_ms(records, "render_s", "policy_calls"),
        shares=shares,
        outcomes={
            kind: sum(record["outcome"] == kind for record in records)
            for kind in sorted({record["outcome"] for record in records})
        },
    )
    if first is not None:
        ours = {record["key"] for record in records}
        comparable = [record for record in first if record["key"] in ours] if found["cut_off"] else first
        result["differing"] = differing(comparable, records)
    return result


def _median_ms(records: Sequence[Mapping[str, Any]], phase: str, number: str) -> float:
    """Median over trials, so that a worker's first picture, which costs seconds, doesn't hide the others."""
    each = [1000 * record["timings"].get(phase, 0.0) / max(1, record[number]) for record in records]
    return float(statistics.median(each))


def as_markdown(result: Mapping[str, Any]) -> str:
    """Two tables: rates, and where the time went."""
    counts = [count for count in result["counts"] if count["trials"]]
    base = counts[0]["trials_per_hour"] if counts else 1.0
    rates = [
        (
            "-" if count["gpus"] is None else count["gpus"],
            count["workers"],
            f"{count['trials']}/{count['wanted']}",
            count["trials_per_hour"],
            count["trials_per_hour_whole"],
            count["trials_per_hour"] / base,
            count["efficiency"],
            count["efficiency_whole"],
            count["action_ms"],
            count["observation_ms"],
            len(count["differing"]) if "differing" in count else "-",
        )
        for count in counts
    ]
    header = ["GPUs", "workers", "trials", "trials/h", "whole command", "x first", "efficiency", "whole command"]
    header += ["ms an action", "ms an observation", "trials that differ"]
    lines = [f"# Scaling, {result['made_at']}", "", f"    {' '.join(result['command'])}", ""]
    lines += [*(f"{key}: {value}" for key, value in result["machine"].items()), "", markdown(header, rates), ""]
    if counts:
        phases = list(counts[0]["shares"])
        rows = [
            (
                f"{'' if count['gpus'] is None else str(count['gpus']) + ' GPU, '}{count['workers']} workers",
                *(f"{100 * count['shares'][phase]:.1f} %" for phase in phases),
            )
            for count in counts
        ]
        lines += ["Share of all workers' time, start and end of the command included:", ""]
        lines += [markdown(["", *phases], rows)]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measure and write. Exit code 1 if a trial ended otherwise than in the first count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    policy = parser.add_mutually_exclusive_group()
    policy.add_argument("--ckpt", help="checkpoint; step_30000 if neither is given")
    policy.add_argument("--policy", help="an adapter's name or a policy file, instead of a checkpoint")
    parser.add_argument("--mode", default="c2c")
    parser.add_argument("--tasks", type=task_names, default="click_bell,grab_roller,shake_bottle")
    parser.add_argument("--trials", type=int, default=16, help="of each task")
    parser.add_argument("--workers", default="1,2,4,8,16")
    parser.add_argument("--gpus", help="numbers of GPUs, each with every number of workers; left out: as they are")
    parser.add_argument("--backend", default="robotwin")
    parser.add_argument("--limit-s", type=float, default=3600.0, help="for everything, the search for seeds included")
    parser.add_argument("--out", type=Path, required=True, help="new folder for the runs, scaling.json and scaling.md")
    options = parser.parse_args()
    workers = [int(part) for part in options.workers.split(",")]
    gpus: list[int | None] = [int(part) for part in options.gpus.split(",")] if options.gpus else [None]
    if options.out.exists() and any(options.out.iterdir()):
        parser.error(f"--out {options.out} isn't empty: a run found there would go on instead of being measured")
    options.out.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + options.limit_s
    chosen = ["--policy", options.policy] if options.policy else ["--ckpt", options.ckpt or "step_30000"]
    what = ["--tasks", options.tasks, "--trials", str(options.trials), "--backend", options.backend]
    command = [*EVALKIT, "run", *chosen, "--mode", options.mode, *what]
    result: dict[str, Any] = {
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(("evalkit", "ray", "numpy", "torch")),
        "command": ["evalkit", *command[len(EVALKIT) :]],
        "counts": [],
    }
    find_seeds(options, max(workers), until - time.monotonic())
    first: list[dict[str, Any]] | None = None
    for gpu_count in gpus:
        for count in workers:
            if time.monotonic() >= until:
                print(f"the limit is reached before {count} workers on {gpu_count} GPUs", file=sys.stderr)
                continue
            environment = dict(os.environ)
            if gpu_count is not None:
                environment["CUDA_VISIBLE_DEVICES"] = visible_gpus(gpu_count, os.environ)
            folder = options.out / f"gpus-{gpu_count or 'as-is'}-workers-{count}"
            found = run_count([*command, "--workers", str(count)], environment, folder, until - time.monotonic())
            plan = folder / "plan.jsonl"
            wanted = len(plan.read_text().splitlines()) if plan.exists() else 0
            result["counts"].append(count_result(found, count, gpu_count, wanted, first))
            first = found["records"] if first is None else first
            (options.out / "scaling.json").write_text(json.dumps(result, indent=1) + "\n")
            (options.out / "scaling.md").write_text(as_markdown(result))
            print(f"{count} workers, GPUs {gpu_count}: {len(found['records'])} trials", file=sys.stderr, flush=True)
    print(as_markdown(result))
    return 1 if any(count.get("differing") for count in result["counts"]) else 0


def find_seeds(options: argparse.Namespace, workers: int, limit_s: float) -> None:
    """Complete the seed lists, so that no count pays for them.

    Raises:
        RuntimeError: it failed.
    """
    configs = {"c2c": "demo_clean", "c2r": "demo_randomized", "all": "demo_clean,demo_randomized"}[options.mode]
    command = [*EVALKIT, "seeds", "build", "--tasks", options.tasks, "--config", configs]
    command += ["--count", str(options.trials), "--backend", options.backend, "--workers", str(workers)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit_s)
    if done.returncode:
        raise RuntimeError(f"evalkit seeds build ended with {done.returncode}: {done.stderr[-2000:]}")


if __name__ == "__main__":
    sys.exit(main())
