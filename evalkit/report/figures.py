"""Geometry of the report page's figures: numbers only, in percent of the drawing's width and height. Pure.

The templates draw them as inline SVG with relative coordinates: a figure fits any width without scaling its text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from evalkit.aggregate.timing import PHASES
from evalkit.core.record import TrialRecord

GRID = 200
"""Places at which a curve is drawn."""
OTHER = "other"
"""Time of a trial that no phase covers: transport and bookkeeping."""


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One phase's part of the time of a configuration's trials."""

    phase: str
    start: float
    """Left end in percent."""
    width: float
    """Share in percent."""
    total_s: float
    median_s: float
    """Median over trials, in seconds."""


def success_curve(records: Sequence[TrialRecord]) -> str | None:
    """Share of trials solved by a point of the step limit, as SVG path data; x and y run from 0 to 100, y downward.

    Each task weighs the same, so the curve ends at the mean of the tasks' rates. None without scored trials.
    """
    by_task: dict[str, list[TrialRecord]] = defaultdict(list)
    for record in records:
        if record.outcome.is_scored:
            by_task[record.spec.task].append(record)
    if not by_task:
        return None
    heights = [0.0] * (GRID + 1)
    for trials in by_task.values():
        for trial in trials:
            if trial.outcome == "success" and trial.success_step is not None:
                # The first place at or after the success; the last one is the limit itself.
                place = min(GRID, -(-trial.success_step * GRID // trial.spec.horizon_steps))
                heights[place] += 100 / len(trials) / len(by_task)
    path, solved = ["M0 100"], 0.0
    for place, gained in enumerate(heights):
        if gained:
            solved += gained
            path.append(f"H{place * 100 / GRID:g}V{100 - solved:.2f}")
    return "".join(path) + "H100"


def loss_curve(losses: Sequence[tuple[int, float]]) -> str | None:
    """Training loss against step as SVG path data, the largest loss at the top; None with fewer than two points."""
    if len(losses) < 2 or losses[-1][0] <= losses[0][0]:
        return None
    first, last = losses[0][0], losses[-1][0]
    highest = max(loss for _, loss in losses) or 1.0
    points = [f"{100 * (step - first) / (last - first):.2f} {100 - 100 * loss / highest:.2f}" for step, loss in losses]
    return "M" + "L".join(points)


def time_segments(records: Sequence[TrialRecord]) -> tuple[Segment, ...]:
    """Where the wall time of the scored trials went, phase by phase; phases that took none are left out."""
    scored = [record.timings for record in records if record.outcome.is_scored]
    phases = [phase for phase in PHASES if phase != "wall"]
    times: dict[str, list[float]] = {phase: [getattr(timings, f"{phase}_s") for timings in scored] for phase in phases}
    covered = [sum(column) for column in zip(*times.values(), strict=True)]
    times[OTHER] = [max(0.0, timings.wall_s - known) for timings, known in zip(scored, covered, strict=True)]
    whole = sum(map(sum, times.values()))
    segments, start = [], 0.0
    for phase, values in times.items():
        if sum(values) > 0:
            width = 100 * sum(values) / whole
            segments.append(
                Segment(phase=phase, start=start, width=width, total_s=sum(values), median_s=median(values))
            )
            start += width
    return tuple(segments)


def seed_ranges(seeds: Sequence[int]) -> str:
    """Increasing seeds as ranges, e.g. ``"100000-100002, 100005"``."""
    ranges: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if ranges and seed == ranges[-1][1] + 1:
            ranges[-1][1] = seed
        else:
            ranges.append([seed, seed])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def largest(counts: Mapping[str, Sequence[int]]) -> int:
    """The largest number in a table of counts, at least 1: the length of a full bar."""
    return max((number for row in counts.values() for number in row), default=1) or 1
