"""evalkit's throughput beside a bare loop, vla-eval and RoboTwin's own loop: same world, same policy, one run.

    python benchmarks/throughput.py --quick --out results/throughput
    python benchmarks/throughput.py --out results/throughput        # everything
    python benchmarks/throughput.py --parts toy --repeats 5 --out results/throughput

Writes ``throughput.json`` and ``throughput.md`` into the folder. vla-eval is installed from PyPI into an environment of
its own (``--cache``), outside evalkit's. Times depend on the machine; only ratios within one run say something.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SIDES = Path(__file__).resolve().parent / "sides"
sys.path[:0] = [path for path in (str(SIDES), str(SIDES.parent)) if path not in sys.path]

import peer  # noqa: E402
from accounts import Rate, best, machine, markdown, median_rates, same_outcomes  # noqa: E402
from task_names import task_names  # noqa: E402
from toy_routes import ToySetting, measure, peer_settings  # noqa: E402

PARTS = ("toy", "robotwin")


def toy_settings(quick: bool) -> list[ToySetting]:
    """The small world's forms."""
    size = {"tasks": 2, "episodes": 4, "horizon": 50} if quick else {"tasks": 4, "episodes": 6, "horizon": 100}
    forms = [
        ("no cost, 3 pictures, a decision an action", 0.0, 3, 1),
        ("no cost, 3 pictures, 16 actions a decision", 0.0, 3, 16),
        ("no cost, no pictures, a decision an action", 0.0, 0, 1),
        ("2 ms an action, no pictures, a decision an action", 2.0, 0, 1),
        ("2 ms an action, 3 pictures, 16 actions a decision", 2.0, 3, 16),
    ]
    return [
        ToySetting(name=name, step_ms=step_ms, images=images, chunk_steps=chunk_steps, **size)
        for name, step_ms, images, chunk_steps in (forms[:2] if quick else forms)
    ]


def setting_result(name: str, runs: Sequence[Sequence[Rate]]) -> dict[str, Any]:
    """Rates and ratios of one setting.

    Args:
        name: of the setting.
        runs: rates of each repetition.
    """
    table = median_rates(runs)
    result: dict[str, Any] = {"name": name, "routes": table, "same_outcomes": all(map(same_outcomes, runs))}
    ratios: dict[str, float | str] = {}
    if any(route.startswith("vla-eval") for route in table):
        for key, title in (("steps_per_s", ""), ("steps_per_s_whole", " (start and end included)")):
            ours, our_rate = best(table, "evalkit", key)
            theirs, their_rate = best(table, "vla-eval,", key)
            ratios[f"best evalkit / best vla-eval{title}"] = our_rate / their_rate
            ratios[f"of{title}"] = f"{ours}; {theirs}"
        raw = {route: row for route, row in table.items() if route.startswith("vla-eval with raw pictures")}
        if raw:
            ratios["best evalkit / best vla-eval with raw pictures"] = (
                best(table, "evalkit")[1] / best(raw, "vla-eval with raw pictures")[1]
            )
    if "bare loop" in table:
        ratios["best evalkit / bare loop"] = best(table, "evalkit")[1] / table["bare loop"]["steps_per_s"]
    result["ratios"] = ratios
    return result


def as_markdown(result: dict[str, Any]) -> str:
    """The tables."""
    parts = [f"# Throughput, {result['made_at']}", ""]
    parts += [f"{key}: {value}" for key, value in result["machine"].items()]
    for setting in result["settings"]:
        rows = [
            (route, row["n"], row["episodes"], row["steps_per_s"], row["steps_per_s_whole"], row["episodes_per_s"])
            for route, row in setting["routes"].items()
        ]
        header = ("route", "n", "episodes", "steps/s", "steps/s, start and end included", "episodes/s")
        parts += ["", f"## {setting['name']}", "", markdown(header, rows), ""]
        parts += [
            f"- {name}: {f'{value:.2f}' if isinstance(value, float) else value}"
            for name, value in setting["ratios"].items()
        ]
        parts += [f"- every route ended every episode alike: {'yes' if setting['same_outcomes'] else 'NO'}"]
        for route, account in setting.get("accounts", {}).items():
            figures = ", ".join(f"{name} {value:.3g}" for name, value in account.items())
            parts += [f"- {route}: {figures}"]
        if "own_loop" in setting:
            parts += [
                "",
                "RoboTwin's own loop, with a script as policy on both sides:",
                "",
                "```",
                setting["own_loop"],
                "```",
            ]
    return "\n".join(parts) + "\n"


def main() -> int:
    """Measure and write. Exit code 1 if any two routes ended an episode differently."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for throughput.json and throughput.md")
    parser.add_argument("--quick", action="store_true", help="minutes: fewer settings, episodes and routes")
    parser.add_argument("--parts", default=",".join(PARTS), help="of: " + ", ".join(PARTS))
    parser.add_argument("--repeats", type=int, help="runs of each setting of the small world; 3, with --quick 1")
    parser.add_argument("--cache", type=Path, default=peer.default_cache(), help="where vla-eval is installed")
    parser.add_argument("--no-peer", action="store_true", help="leave vla-eval out")
    parser.add_argument("--no-own-loop", action="store_true", help="leave RoboTwin's own loop out (robotwin_loop.py)")
    parser.add_argument("--ckpt", default="step_30000", help="policy of RoboTwin's tasks")
    parser.add_argument("--tasks", type=task_names, default="click_bell,grab_roller", help="RoboTwin's tasks")
    parser.add_argument("--trials", type=int, help="of each RoboTwin task; 8, with --quick 2")
    options = parser.parse_args()
    parts = [part.strip() for part in options.parts.split(",")]
    if unknown := set(parts) - set(PARTS):
        parser.error(f"--parts {', '.join(sorted(unknown))}: it is of {', '.join(PARTS)}")
    options.out.mkdir(parents=True, exist_ok=True)
    python = None if options.no_peer else peer.install(options.cache)
    result: dict[str, Any] = {
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {**machine(("evalkit", "ray", "numpy", "torch")), "peer": f"vla-eval {peer.VERSION}"},
        "quick": options.quick,
        "settings": [],
    }

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def keep(setting: dict[str, Any]) -> None:
        result["settings"].append(setting)
        (options.out / "throughput.json").write_text(json.dumps(result, indent=1) + "\n")
        (options.out / "throughput.md").write_text(as_markdown(result))

    started = time.monotonic()
    if "toy" in parts:
        for setting in toy_settings(options.quick):
            runs: list[list[Rate]] = []
            accounts: dict[str, Any] = {}
            for number in range(options.repeats or (1 if options.quick else 3)):
                say(f"{setting.name}, run {number + 1}")
                rates, accounts = measure(setting, (1, 2, 4), peer_settings(options.quick, setting.images), python, say)
                runs.append(rates)
            keep({**setting_result(setting.name, runs), "accounts": accounts})
    if "robotwin" in parts:
        from robotwin_routes import measure_robotwin, own_loop

        tasks = tuple(options.tasks.split(","))
        trials = options.trials or (2 if options.quick else 8)
        rates, accounts, beside = measure_robotwin(options.ckpt, tasks, trials, options.quick, python, say)
        found = setting_result(f"RoboTwin on stand-in assets: {', '.join(tasks)}, {trials} trials each", [rates])
        found["ratios"].update(beside)
        found.update(accounts=accounts)
        if not options.no_own_loop:
            say("  RoboTwin's own loop")
            found.update(own_loop=own_loop(tasks, trials))
        keep(found)
    print(as_markdown(result))
    say(f"{time.monotonic() - started:.0f} s in all")
    return 0 if all(setting["same_outcomes"] for setting in result["settings"]) else 1


if __name__ == "__main__":
    sys.exit(main())
