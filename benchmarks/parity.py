"""Does evalkit judge as RoboTwin's own loop does, and how much sooner?

Runs RoboTwin's way of evaluating (``own_loop.py``) and evalkit's over the same candidate seeds with the same
scripted policy, and compares seed by seed: accepted or not, success, number of actions, and the digest over all joint
positions and object poses at the end of the trial, bit by bit.

Rows go to ``--out`` as they come, and what is there isn't done again: a call that was stopped goes on.

    python benchmarks/parity.py --workers 16 --out parity.jsonl        # eight tasks, 20 seeds, both configurations
    python benchmarks/parity.py --tasks stack_blocks_two --candidates 5 --observe     # with the pictures: for the times
    python benchmarks/parity.py --tasks click_bell --robotwin-root ~/RoboTwin --robotwin-python conda:RoboTwin
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from parity_pair import FIRST_SEED, Setting, compare
from task_names import task_names

from evalkit.sim.robotwin.official import open_world

EXIT_UNFINISHED = 75
TASKS = (
    "open_laptop",  # articulated; its check reads what the expert noted
    "put_object_cabinet",  # a drawer, and two arms one after the other
    "beat_block_hammer",  # a tool, and a check of contacts
    "handover_block",  # from hand to hand
    "grab_roller",  # two arms together
    "stack_bowls_three",  # stacking, with contacts of curved shapes
    "shake_bottle_horizontally",  # tilting
    "place_dual_shoes",  # two arms, two objects, meshes
)
"""Under ``demo_randomized`` each of them also has clutter, light, textures and table height."""


def is_same(row: dict[str, Any]) -> bool:
    """Whether both judged a seed alike, and the trial too if there was one."""
    return all(row["same"].values()) if row["accepted"] else bool(row["same"]["accepted"])


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """What the rows say, a line per task, configuration and action type."""
    lines = [
        f"{'task':24}{'config':17}{'type':6}{'seeds':>6}{'same':>6}{'trials':>7}{'same':>6}{'success':>8}"
        f"{'first run':>11}{'later runs':>11}"
    ]
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["task"], row["config"], row["action_type"]), []).append(row)
    for (task, config, action_type), group in groups.items():
        trials = [row for row in group if row["accepted"]]
        seeds_same = sum(row["same"]["accepted"] for row in group)
        trials_same = sum(map(is_same, trials))
        # the first trial of a process pays for the first picture
        later = [row for row in trials[1:] if len(row["ours_s"]) == 2]
        first = [sum(row["theirs_s"]) / sum(row["ours_s"]) for row in later]
        again = [sum(row["theirs_s"]) / row["ours_s"][1] for row in later]
        ratios = [f"{statistics.median(values):.1f}x" if values else "-" for values in (first, again)]
        lines.append(
            f"{task:24}{config:17}{action_type:6}{len(group):6}{seeds_same:6}{len(trials):7}{trials_same:6}"
            f"{sum(bool(row['success']) for row in trials):8}{ratios[0]:>11}{ratios[1]:>11}"
        )
    trials = [row for row in rows if row["accepted"]]
    same = sum(map(is_same, trials))
    seeds = sum(row["same"]["accepted"] for row in rows)
    lines.append(f"{seeds} of {len(rows)} seeds judged alike; {same} of {len(trials)} trials equal to the bit")
    return "\n".join(lines)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of an earlier call; a torn last line is left out."""
    rows = []
    for line in path.read_text().splitlines() if path.is_file() else ():
        with contextlib.suppress(json.JSONDecodeError):
            rows.append(json.loads(line))
    return rows


def split(settings: Sequence[Setting], rows: Sequence[dict[str, Any]], seeds_each: int) -> list[Setting]:
    """What remains to be done, in parts of so many consecutive seeds: each is one process of RoboTwin's loop."""
    done = {(row["task"], row["config"], row["action_type"], row["seed"]) for row in rows}
    parts = []
    for setting in settings:
        key = (setting.task, setting.config, setting.action_type)
        last = FIRST_SEED + setting.candidates
        for first in range(FIRST_SEED, last, seeds_each):
            left = [seed for seed in range(first, min(first + seeds_each, last)) if (*key, seed) not in done]
            if left:
                parts.append(replace(setting, first_seed=left[0], candidates=left[-1] + 1 - left[0]))
    return parts


def run(settings: Sequence[Setting], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Do what remains, each row written as soon as there is one; all rows, those of earlier calls included."""
    rows = read_rows(options.out)
    parts = split(settings, rows, options.seeds_each)
    deadline = time.monotonic() + 60 * options.limit_minutes
    lock = threading.Lock()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("a") as file:
        file.write("" if not options.out.read_text().strip() or options.out.read_text().endswith("\n") else "\n")

        def report(row: dict[str, Any]) -> bool:
            with lock:
                rows.append(row)
                file.write(json.dumps(row) + "\n")
                file.flush()
                if not is_same(row):
                    print("DIFFERENT:", json.dumps(row), flush=True)
            return bool(time.monotonic() > deadline)

        def work(part: Setting) -> None:
            if time.monotonic() < deadline:
                compare(part, report)

        with ThreadPoolExecutor(options.workers) as executor:
            list(executor.map(work, parts))
    wanted = {(s.task, s.config, s.action_type) for s in settings}
    unique = {(r["task"], r["config"], r["action_type"], r["seed"]): r for r in rows}
    return [row for key, row in sorted(unique.items()) if key[:3] in wanted]


def main() -> int:
    """Compare. Exit code 0: all the same; 1: something differs; 75: not finished, the same command goes on."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=task_names, default=",".join(TASKS))
    parser.add_argument("--configs", default="demo_clean,demo_randomized")
    parser.add_argument("--action-types", default="qpos,ee")
    parser.add_argument("--candidates", type=int, default=20)
    parser.add_argument("--stride", type=int, default=4, help="frames of the expert's run (15 physics steps) an action")
    parser.add_argument("--cut-every", type=int, default=4, help="cut every so many scripts; 0: none")
    parser.add_argument("--observe", action="store_true", help="take the pictures a policy would")
    parser.add_argument("--workers", type=int, default=1, help="pairs of processes at a time, the loop's and ours")
    parser.add_argument("--seeds-each", type=int, default=5, help="seeds that one process of the loop goes through")
    parser.add_argument("--limit-minutes", type=float, default=float("inf"), help="stop then; the same call goes on")
    parser.add_argument("--out", type=Path, default=Path("parity.jsonl"), help="one line a pair of trials; appended to")
    parser.add_argument("--robotwin-root", type=Path, help="a RoboTwin installation; the generated world if left out")
    parser.add_argument("--robotwin-python", help="its interpreter: a program, a folder or conda:NAME")
    options = parser.parse_args()
    world = open_world(options.robotwin_root, options.robotwin_python) if options.robotwin_root else None
    settings = [
        Setting(
            task=task,
            config=config,
            action_type=action_type,
            candidates=options.candidates,
            stride=options.stride,
            cut_every=options.cut_every,
            observe=options.observe,
            world=world,
        )
        for task in options.tasks.split(",")
        for config in options.configs.split(",")
        for action_type in options.action_types.split(",")
    ]
    rows = run(settings, options)
    print(summary(rows))
    if not all(map(is_same, rows)):
        return 1
    return 0 if len(rows) == len(settings) * options.candidates else EXIT_UNFINISHED


if __name__ == "__main__":
    sys.exit(main())
