"""The page of a sweep: score over training step, the table, and what may be said. It makes no request elsewhere."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evalkit.aggregate.proportions import Estimate
from evalkit.aggregate.sweep import AVERAGE, SweepScores
from evalkit.core.files import write_atomic
from evalkit.report.html import REPORT_FILE, TEMPLATES, page_environment
from evalkit.report.sweep import common_labels, difference, fresh_command, not_leaderboard, remarks
from evalkit.report.text import interval, percent
from evalkit.store.sweep import SweepInfo

MARGIN = 4.0
"""Percent of the figure's width kept free beside the first and the last point."""
TICKS_APART = 16.0
"""Percent of the figure's width between names: room for them on a phone."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One checkpoint's score in the figure: percent of its width and height, y downward."""

    x: float
    y: float
    low: float
    high: float
    title: str


@dataclass(frozen=True, kw_only=True)
class Series:
    """One score of all checkpoints."""

    name: str
    about: str
    points: tuple[Point, ...]


def write_sweep_page(scores: SweepScores, info: SweepInfo, runs: Sequence[Path], path: Path) -> Path:
    """Write the page of a sweep.

    Args:
        scores: what it came to.
        info: its manifest.
        runs: folders of the checkpoints' runs, for links.
        path: the file.

    Returns:
        The same path.
    """
    write_atomic(path, render_sweep_page(scores, info, runs, path.parent))
    return path


def render_sweep_page(scores: SweepScores, info: SweepInfo, runs: Sequence[Path], folder: Path) -> str:
    """The page as text, with links from ``folder``; see ``write_sweep_page``."""
    links = {
        entry.name: os.path.relpath(run.resolve(), folder.resolve()) + f"/{REPORT_FILE}"
        for entry, run in zip(scores.entries, runs, strict=True)
        if (run / REPORT_FILE).exists()
    }
    first = scores.entries[0].run.info
    return (
        page_environment()
        .get_template("sweep.html.j2")
        .render(
            scores=scores,
            info=info,
            style=(TEMPLATES / "report.css").read_text(),
            series=series(scores),
            ticks=ticks(scores),
            by_step=by_step(scores),
            rows=[(entry, _cells(scores, number)) for number, entry in enumerate(scores.entries)],
            labels=common_labels(scores),
            links=links,
            by="the mean" if scores.by == AVERAGE else scores.by,
            difference=difference,
            interval=interval,
            remarks=remarks(scores),
            fresh=fresh_command(scores.best) if scores.best else "",
            reasons=not_leaderboard(scores),
            about=f"{len(first.tasks)} task{'s' if len(first.tasks) > 1 else ''}, {first.trials_per_task} trials each",
        )
    )


def by_step(scores: SweepScores) -> bool:
    """Whether the figure's x is the training step: all are known and differ."""
    steps = [entry.step for entry in scores.entries]
    return None not in steps and len(set(steps)) == len(steps) > 1


def series(scores: SweepScores) -> tuple[Series, ...]:
    """Scores under each configuration, and the mean of both."""
    places = _places(scores)
    labels = common_labels(scores)
    found = []
    for number, config in enumerate(labels):
        values = [entry.summary.configs[number].mean for entry in scores.entries]
        found.append(_series(labels[config] or config, config if labels[config] else "", values, places, scores))
    if scores.by == AVERAGE:
        values = [entry.value for entry in scores.entries]
        found.append(_series(AVERAGE, "of both", values, places, scores))
    return tuple(found)


def ticks(scores: SweepScores) -> tuple[tuple[float, str], ...]:
    """Names below the figure where there is room for them: (percent of the width, text)."""
    found: list[tuple[float, str]] = []
    names = [f"{entry.step:,}" if by_step(scores) else entry.name for entry in scores.entries]
    for place, name in zip(_places(scores), names, strict=True):
        if not found or place - found[-1][0] >= TICKS_APART:
            found.append((place, name))
    return tuple(found)


def _places(scores: SweepScores) -> list[float]:
    n = len(scores.entries)
    if by_step(scores):
        steps = [entry.step or 0 for entry in scores.entries]
        low, high = min(steps), max(steps)
        shares = [(step - low) / (high - low) for step in steps]
    else:
        shares = [number / (n - 1) if n > 1 else 0.5 for number in range(n)]
    return [MARGIN + (100 - 2 * MARGIN) * share for share in shares]


def _series(name: str, about: str, values: list[Estimate | None], places: list[float], scores: SweepScores) -> Series:
    points = [
        Point(
            x=place,
            y=100 - 100 * value.value,
            low=100 - 100 * value.low,
            high=100 - 100 * value.high,
            title=f"{entry.name}: {name} {percent(value.value, 1)} % ({interval(value.low, value.high)})",
        )
        for entry, value, place in zip(scores.entries, values, places, strict=True)
        if value is not None
    ]
    points.sort(key=lambda point: point.x)
    return Series(name=name, about=about, points=tuple(points))


def _cells(scores: SweepScores, number: int) -> list[tuple[str, str]]:
    """(value, interval) of each score of a checkpoint."""
    summary = scores.entries[number].summary
    found = [_cell(score.mean, f"{score.successes}/{score.done} of {score.planned}") for score in summary.configs]
    if scores.by == AVERAGE:
        found.append(_cell(summary.average.mean if summary.average else None, "?"))
    return found


def _cell(mean: Estimate | None, otherwise: str) -> tuple[str, str]:
    return (f"{percent(mean.value, 1)} %", interval(mean.low, mean.high)) if mean else (otherwise, "")
