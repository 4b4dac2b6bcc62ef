"""The drill's table: as Markdown, and as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from evalkit.drill.row import Row
from evalkit.drill.same_outcomes import Way

COLUMNS = ("fault", "what happened", "recorded", "other trials", "table", "left behind", "s")


def cells(row: Row) -> tuple[str, ...]:
    """A row's cells, in the order of ``COLUMNS``."""
    happened = row.happened if row.passed else f"FAILED: {'; '.join(row.problems)} ({row.happened})"
    same = "identical" if row.identical else "DIFFERENT"
    left = ", ".join(row.left) or "nothing"
    return row.fault, happened, row.recorded, f"{row.others} of {row.others_planned}", same, left, f"{row.seconds:.0f}"


def markdown(rows: Sequence[Row]) -> str:
    """The table of ``docs/reliability.md``."""
    lines = [COLUMNS, ("---",) * len(COLUMNS), *(cells(row) for row in rows)]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |\n" for line in lines)


def markdown_ways(ways: Sequence[Way]) -> str:
    """The table of ways to run one plan."""
    lines = ["| run by | trials | differing | killed | s |\n", "|---|---|---|---|---|\n"]
    for way in ways:
        killed = ", ".join(way.killed) or "nothing"
        lines.append(f"| {way.name} | {way.trials} | {len(way.differing)} | {killed} | {way.seconds:.0f} |\n")
    return "".join(lines)


def to_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows as plain values."""
    return [{**asdict(row), "passed": row.passed} for row in rows]


def ways_to_json(ways: Sequence[Way]) -> list[dict[str, Any]]:
    """Ways as plain values."""
    return [{**asdict(way), "passed": way.passed} for way in ways]
