"""The forms in which a run can be written, by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from evalkit.aggregate.scores import Summary
from evalkit.core.errors import UnknownNameError, UserError
from evalkit.core.files import write_atomic, write_json
from evalkit.report import documents
from evalkit.report.export import LEADERBOARD_FILE, SUMMARY_FILE, TASKS_FILE, to_csv, to_json
from evalkit.report.rows import checkpoint_row, task_rows
from evalkit.store.run import Run

MARKDOWN_FILE, LATEX_FILE = "scores.md", "scores.tex"
PARQUET_FILE, OFFICIAL_FILE = "trials.parquet", "official_entry.json"
OFFICIAL = "official"
DEFAULT = ("csv", "json")


def parse_formats(text: str) -> tuple[str, ...]:
    """Names of formats, each once, as listed.

    Raises:
        UnknownNameError: one isn't known.
        UserError: none is named.
    """
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if name not in FORMATS:
            raise UnknownNameError("format", name, FORMATS)
    if not names:
        raise UserError(f"no format named: give --format one or more of {','.join(FORMATS)}")
    return names


def write_formats(run: Run, summary: Summary, names: Iterable[str], folder: Path | None = None) -> tuple[Path, ...]:
    """Write a run in several formats, ``official`` apart.

    Args:
        run: the run the summary is of.
        summary: its summary.
        names: keys of ``WRITERS``.
        folder: where to; the run's own folder if None.

    Returns:
        Paths of the files written.
    """
    folder = run.folder if folder is None else folder
    return tuple(path for name in names for path in WRITERS[name](run, summary, folder))


def write_entry(entry: Mapping[str, Any], folder: Path) -> Path:
    """Write an entry of the official board (see ``evalkit.report.official``)."""
    path = folder / OFFICIAL_FILE
    write_atomic(path, json.dumps(entry, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    return path


def _csv(run: Run, summary: Summary, folder: Path) -> Sequence[Path]:
    paths = folder / LEADERBOARD_FILE, folder / TASKS_FILE
    write_atomic(paths[0], to_csv([checkpoint_row(summary)]))
    write_atomic(paths[1], to_csv(task_rows(summary)))
    return paths


def _json(run: Run, summary: Summary, folder: Path) -> Sequence[Path]:
    write_json(folder / SUMMARY_FILE, to_json(summary))
    return [folder / SUMMARY_FILE]


def _markdown(run: Run, summary: Summary, folder: Path) -> Sequence[Path]:
    write_atomic(folder / MARKDOWN_FILE, documents.to_markdown(summary))
    return [folder / MARKDOWN_FILE]


def _latex(run: Run, summary: Summary, folder: Path) -> Sequence[Path]:
    write_atomic(folder / LATEX_FILE, documents.to_latex(summary))
    return [folder / LATEX_FILE]


def _parquet(run: Run, summary: Summary, folder: Path) -> Sequence[Path]:
    documents.write_parquet(run, summary, folder / PARQUET_FILE)
    return [folder / PARQUET_FILE]


WRITERS: Mapping[str, Callable[[Run, Summary, Path], Sequence[Path]]] = MappingProxyType(
    {"csv": _csv, "json": _json, "markdown": _markdown, "latex": _latex, "parquet": _parquet}
)
FORMATS = (*WRITERS, OFFICIAL)
