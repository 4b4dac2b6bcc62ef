"""What measurements come to: rates, ratios, where workers' time went. Numbers in, numbers and text out."""

from __future__ import annotations

import os
import platform
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from typing import Any

Stamp = Mapping[str, Any]
"""``name``, ``seed``, ``steps``, ``value``, ``started``, ``ended`` of one episode, as its world noted it."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """One route through one setting."""

    route: str
    episodes: int
    steps: int
    wall_s: float
    """The whole command, start included."""
    work_s: float
    """From the first episode's start to the last one's end."""
    outcomes: frozenset[tuple[str, int, str]]
    """(task, seed, what the episode came to)."""

    @property
    def steps_per_s(self) -> float:
        """While episodes ran."""
        return self.steps / self.work_s

    @property
    def steps_per_s_whole(self) -> float:
        """Start and end of the command included."""
        return self.steps / self.wall_s


def rate(route: str, stamps: Sequence[Stamp], wall_s: float) -> Rate:
    """From the stamps of all its episodes.

    Raises:
        ValueError: no episode ended, or one was run twice.
    """
    if not stamps:
        raise ValueError(f"{route} finished no episode")
    names = [(stamp["name"], stamp["seed"]) for stamp in stamps]
    if len(set(names)) != len(names):
        raise ValueError(f"{route} ran {len(names) - len(set(names))} episodes twice")
    return Rate(
        route=route,
        episodes=len(stamps),
        steps=sum(stamp["steps"] for stamp in stamps),
        wall_s=wall_s,
        work_s=max(stamp["ended"] for stamp in stamps) - min(stamp["started"] for stamp in stamps),
        outcomes=frozenset((stamp["name"], stamp["seed"], stamp["value"]) for stamp in stamps),
    )


def median_rates(runs: Sequence[Sequence[Rate]]) -> dict[str, dict[str, Any]]:
    """Route -> medians over repetitions, in order of first appearance."""
    grouped: dict[str, list[Rate]] = defaultdict(list)
    for rates in runs:
        for one in rates:
            grouped[one.route].append(one)
    return {
        route: {
            "n": len(rates),
            "episodes": rates[0].episodes,
            "steps": rates[0].steps,
            "steps_per_s": statistics.median(one.steps_per_s for one in rates),
            "steps_per_s_whole": statistics.median(one.steps_per_s_whole for one in rates),
            "episodes_per_s": statistics.median(one.episodes / one.work_s for one in rates),
            "wall_s": statistics.median(one.wall_s for one in rates),
        }
        for route, rates in grouped.items()
    }


def same_outcomes(rates: Sequence[Rate]) -> bool:
    """Whether all routes came to the same end of every episode."""
    return len({one.outcomes for one in rates}) == 1


def best(table: Mapping[str, Mapping[str, Any]], prefix: str, key: str = "steps_per_s") -> tuple[str, float]:
    """The fastest route whose name begins so.

    Raises:
        ValueError: there is none.
    """
    found = {route: float(row[key]) for route, row in table.items() if route.startswith(prefix)}
    if not found:
        raise ValueError(f"no route begins with {prefix!r}")
    name = max(found, key=lambda route: found[route])
    return name, found[name]


PHASES = ("setup_s", "physics_s", "check_s", "render_s", "inference_s", "queue_s")


@dataclass(frozen=True, kw_only=True)
class WorkerTime:
    """Where the time of all workers of a session went, in worker-seconds."""

    workers: int
    trials: int
    phases: Mapping[str, float]
    """Of ``PHASES``; they don't overlap."""
    other_s: float
    """Inside trials, in none of the phases: messages, the loop itself, starting a simulator's process."""
    between_s: float
    """Between the trials of a worker: waiting for the driver."""
    start_s: float
    """From the command's start to each worker's first trial."""
    end_s: float
    """After each worker's last trial, until the command's end: others' last trials, and the report."""
    wall_s: float
    first_s: float
    """From the command's start to the first trial's start."""
    work_s: float
    """From the first trial's start to the last one's end."""

    @property
    def useful_s(self) -> float:
        """Simulators and the policy at work."""
        return sum(seconds for phase, seconds in self.phases.items() if phase != "queue_s")

    @property
    def efficiency(self) -> float:
        """Useful time over workers x time in which trials ran."""
        return self.useful_s / (self.workers * self.work_s)

    @property
    def efficiency_whole(self) -> float:
        """Useful time over workers x the whole command."""
        return self.useful_s / (self.workers * self.wall_s)

    @property
    def overhead_per_trial_ms(self) -> float:
        """What a trial costs a worker beyond simulator, policy and waiting for the policy."""
        return 1000.0 * (self.other_s + self.between_s) / self.trials


def worker_time(
    records: Sequence[Mapping[str, Any]], began: float, ended: float, workers: int | None = None
) -> WorkerTime:
    """From a run's records (lines of ``trials.jsonl``).

    Args:
        records: the trials.
        began: the command's start, s since the epoch.
        ended: its end.
        workers: how many there were, those without a trial included; as many as records name, if left out.

    Raises:
        ValueError: there is no record.
    """
    if not records:
        raise ValueError("no trial was finished")
    spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
    phases = dict.fromkeys(PHASES, 0.0)
    other = 0.0
    for record in records:
        timings = record["timings"]
        start = datetime.fromisoformat(record["started_at"]).timestamp()
        spans[record["worker"]].append((start, start + timings["wall_s"]))
        for phase in PHASES:
            phases[phase] += timings.get(phase, 0.0)
        other += timings["wall_s"] - sum(timings.get(phase, 0.0) for phase in PHASES)
    between = start_s = end_s = 0.0
    for worker_spans in spans.values():
        worker_spans.sort()
        between += sum(max(0.0, b[0] - a[1]) for a, b in pairwise(worker_spans))
        start_s += worker_spans[0][0] - began
        end_s += ended - worker_spans[-1][1]
    idle = (workers or len(spans)) - len(spans)
    start_s += idle * (ended - began)
    first = min(spans_of[0][0] for spans_of in spans.values())
    last = max(spans_of[-1][1] for spans_of in spans.values())
    return WorkerTime(
        workers=len(spans) + idle,
        trials=len(records),
        phases=phases,
        other_s=other,
        between_s=between,
        start_s=start_s,
        end_s=end_s,
        wall_s=ended - began,
        first_s=first - began,
        work_s=last - first,
    )


def machine(names: Sequence[str]) -> dict[str, Any]:
    """Where, and with which versions of the packages named."""
    return {
        "cores": os.cpu_count(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "versions": ", ".join(f"{name} {_version(name)}" for name in names),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "from its sources"


def outcome_of(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """What must be equal however a trial was run."""
    return tuple(record.get(key) for key in ("outcome", "steps", "policy_calls", "success_step", "state_digest"))


def trial_name(record: Mapping[str, Any]) -> str:
    """Task, configuration, seed, repeat: names a trial whatever the policy's device."""
    spec = record["spec"]
    return f"{spec['task']} {spec['config']} {spec['seed']} {spec.get('repeat', 0)}"


def differing(first: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> list[str]:
    """Trials that ended otherwise, or in one of the two only."""
    ours = {trial_name(record): outcome_of(record) for record in first}
    theirs = {trial_name(record): outcome_of(record) for record in other}
    return sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))


def markdown(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table; numbers to the right with three digits that matter."""
    lines = [
        "| " + " | ".join(header) + " |",
        "|" + "|".join("---" if i == 0 else "---:" for i in range(len(header))) + "|",
    ]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return str(value)
