"""Files for other programs: ``summary.json``, ``leaderboard.csv``, ``leaderboard_tasks.csv``.

The same records give the same bytes, whatever the order in which the trials ended.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evalkit.aggregate.scores import Summary
from evalkit.core.files import write_atomic, write_json
from evalkit.report.rows import Row, checkpoint_row, task_rows
from evalkit.store.run import Run

SUMMARY_FILE = "summary.json"
LEADERBOARD_FILE = "leaderboard.csv"
TASKS_FILE = "leaderboard_tasks.csv"
SCHEMA = 1

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\Z")


def write_exports(run: Run, summary: Summary, folder: Path | None = None) -> tuple[Path, ...]:
    """Write the three files.

    Args:
        run: the run the summary is of.
        summary: its summary.
        folder: where to; the run's own folder if None.

    Returns:
        Paths of ``summary.json``, ``leaderboard.csv`` and ``leaderboard_tasks.csv``.
    """
    folder = run.folder if folder is None else folder
    paths = tuple(folder / name for name in (SUMMARY_FILE, LEADERBOARD_FILE, TASKS_FILE))
    write_json(paths[0], to_json(summary))
    write_atomic(paths[1], to_csv([checkpoint_row(summary)]))
    write_atomic(paths[2], to_csv(task_rows(summary)))
    return paths


def to_json(summary: Summary) -> dict[str, Any]:
    """The summary as plain JSON values; rates are fractions from 0 to 1."""
    return {"schema": SCHEMA, "unit": "fraction", **asdict(summary)}


def to_csv(rows: Sequence[Row]) -> str:
    """Rows as CSV (RFC 4180 quoting, lines end in LF), columns in order of first appearance.

    A text that a spreadsheet would run as a formula gets a leading apostrophe.
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([safe_cell(name) for name in columns])
    for row in rows:
        writer.writerow([safe_cell(row.get(name, "")) for name in columns])
    return stream.getvalue()


def safe_cell(text: str) -> str:
    """The text, with an apostrophe before it if a spreadsheet would take it for a formula. Numbers stay numbers."""
    if text.startswith(("=", "+", "-", "@", "\t", "\r")) and not _NUMBER.match(text):
        return f"'{text}"
    return text
