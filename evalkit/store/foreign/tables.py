"""Score tables that people keep as CSV: what spreadsheets do to them is undone or refused, and nothing is counted as 0.

Understood: a byte order mark, UTF-16, ``;`` or tab as separator, a ``sep=`` line, decimal commas, CRLF, blank rows,
percent signs, ``k/n``, display names of tasks, an Average row (left out), cells of unfinished runs (missing).
Refused: formulas, a unit that can't be told, unknown tasks, cells that are no number.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evalkit.core.errors import UserError
from evalkit.store.foreign.scores import ImportedScores, ImportedTask, canonical_task, collect, successes_of

KIND = "csv"
Unit = Literal["percent", "fraction"]

_MISSING = frozenset(
    {"", "-", "--", "?", "n/a", "na", "nan", "none", "null", "tbd", "running", "still running", "pending"}
)
_AVERAGES = re.compile(r"_*(average|avg|mean|overall|total|macro)(\b|_).*", re.IGNORECASE)
_TASK_COLUMNS = ("task", "task_name", "tasks")
_RATE_COLUMNS = ("rate", "score", "success_rate", "success rate", "sr")
_TRIAL_COLUMNS = ("trials_done", "trials", "n", "num_episodes")
_CONFIG_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "demo_clean": ("demo_clean", "clean", "easy", "c2c", "clean_success_rate"),
    "demo_randomized": ("demo_randomized", "randomized", "random", "hard", "c2r", "random_success_rate"),
}
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\Z")
_RATIO = re.compile(r"(\d+) */ *(\d+)\Z")


@dataclass(frozen=True)
class CsvTable:
    """A table's cells as text, blank rows left out."""

    source: str
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, str], ...]
    lines: tuple[int, ...]
    """Line of the file in which each row ends."""


@dataclass(frozen=True)
class _Cell:
    task: str
    config: str | None
    text: str
    trials: str
    unit: str
    where: str


def read(path: Path, *, unit: Unit | None = None) -> ImportedScores:
    """Read a table of tasks: one column per configuration, or a ``task``, a ``config`` and a ``score`` column.

    Args:
        path: the file.
        unit: of numbers without a percent sign. If None, a ``unit`` column or a number above 1 tells.

    Raises:
        UserError: the table can't be understood without guessing.
        UnknownNameError: a task that isn't RoboTwin's.
    """
    table = read_csv(path)
    notes = [f"{path.name} doesn't state the seeds or the instructions"]
    cells = []
    for cell in _cells(table):
        if _AVERAGES.match(cell.task.strip()):
            notes.append(f"the row {cell.task!r} is no task: left out")
        elif cell.text.lower() in _MISSING:
            notes.append(f"{cell.task} has {cell.text!r} under {cell.config or 'its configuration'}: missing, not 0")
        else:
            cells.append(cell)
    found = unit or _unit_of(cells, table.source)
    return collect(KIND, str(path), [_task(cell, found) for cell in cells], notes=notes)


def read_csv(path: Path) -> CsvTable:
    """Read a CSV file as it is found in the wild.

    Raises:
        UserError: it isn't UTF-8 or UTF-16, is empty, has a column twice, rows too long, or formulas.
    """
    text = _decode(path)
    lines = text.splitlines(keepends=True)
    separator = None
    if lines and (stated := re.match(r"sep=(.)\s*\Z", lines[0])):
        separator, lines = stated[1], lines[1:]
    first = next((line for line in lines if line.strip(" ;,\t\r\n")), "")
    separator = separator or max(";\t,", key=first.count)
    reader = csv.reader(io.StringIO("".join(lines), newline=""), delimiter=separator)
    columns: tuple[str, ...] = ()
    rows, numbers = [], []
    for raw in _rows(reader, path):
        cells = [_clean(cell, f"{path}, line {reader.line_num}") for cell in raw]
        if not any(cells):
            continue
        if not columns:
            columns = tuple(cells[: max(place for place, cell in enumerate(cells, start=1) if cell)])
            twice = next((name for name in columns if columns.count(name) > 1), None)
            if twice is not None:
                raise UserError(f"{path} has the column {twice!r} twice")
            continue
        if any(cells[len(columns) :]):
            raise UserError(f"{path}, line {reader.line_num} has {len(cells)} cells for {len(columns)} columns")
        rows.append(dict(zip(columns, cells + [""] * len(columns), strict=False)))
        numbers.append(reader.line_num)
    if not rows:
        raise UserError(f"{path} holds no rows")
    return CsvTable(source=str(path), columns=columns, rows=tuple(rows), lines=tuple(numbers))


def parse_number(text: str, where: str) -> float:
    """A number with a decimal point or comma.

    Raises:
        UserError: it isn't one.
    """
    if not _NUMBER.match(text):
        raise UserError(f"{where}: {text!r} isn't a number")
    return float(text.replace(",", "."))


def _rows(reader: Iterator[list[str]], path: Path) -> Iterator[list[str]]:
    try:
        yield from reader
    except csv.Error as error:
        raise UserError(f"{path} isn't a CSV file: {error}") from error


def _decode(path: Path) -> str:
    if not path.is_file():
        raise UserError(f"{path} isn't a file: give the path of one table")
    data = path.read_bytes()
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} isn't UTF-8 or UTF-16: save it as CSV UTF-8") from error


def _clean(cell: str, where: str) -> str:
    text = cell.strip().replace("\N{NO-BREAK SPACE}", " ")
    if text.startswith(("=", "@")):
        raise UserError(f"{where}: the cell {text!r} is a formula: save values instead")
    # Spreadsheets and evalkit write an apostrophe before a text that looks like a formula.
    return text[1:] if re.match(r"'[=+\-@]", text) else text


def _cells(table: CsvTable) -> Iterator[_Cell]:
    names = {name.lower().strip(): name for name in table.columns}
    task_column = next((names[name] for name in _TASK_COLUMNS if name in names), None)
    rate_column = next((names[name] for name in _RATE_COLUMNS if name in names), None)
    trial_column = next((names[name] for name in _TRIAL_COLUMNS if name in names), "")
    wide = {config: names[name] for config, known in _CONFIG_COLUMNS.items() for name in known if name in names}
    if task_column is None or (rate_column is None and not wide):
        raise UserError(
            f"{table.source} has the columns {', '.join(table.columns)}: it needs task, and clean and random or score"
        )
    for row, line in zip(table.rows, table.lines, strict=True):
        config_of_row = row.get(names.get("config", ""), "") or None
        columns = [(config_of_row, rate_column)] if rate_column else list(wide.items())
        for config, column in columns:
            yield _Cell(
                task=row[task_column],
                config=config,
                text=row[column],
                trials=row.get(trial_column, ""),
                unit=row.get(names.get("unit", ""), "").lower(),
                where=f"{table.source}, line {line}",
            )


def _unit_of(cells: list[_Cell], source: str) -> Unit:
    stated = {cell.unit for cell in cells if cell.unit}
    if len(stated) > 1 or stated - {"percent", "%", "fraction"}:
        raise UserError(f"{source} has the units {', '.join(sorted(stated))}: evalkit reads percent or fraction")
    if stated:
        return "fraction" if stated == {"fraction"} else "percent"
    bare = [
        parse_number(cell.text, cell.where) for cell in cells if not cell.text.endswith("%") and "/" not in cell.text
    ]
    if not bare or max(bare) > 1:
        return "percent"
    raise UserError(f"{source}: are its numbers fractions or percent? No number is above 1: give --unit")


def _task(cell: _Cell, unit: Unit) -> ImportedTask:
    task = canonical_task(cell.task)
    trials = round(parse_number(cell.trials, cell.where)) if cell.trials else None
    ratio = _RATIO.match(cell.text)
    if ratio:
        successes, trials = int(ratio[1]), int(ratio[2])
        if not 0 < trials >= successes:
            raise UserError(f"{cell.where}: {cell.text} isn't a success rate")
        rate = successes / trials
    else:
        percent = cell.text.endswith("%") or unit == "percent"
        rate = parse_number(cell.text.rstrip("% "), cell.where) / (100 if percent else 1)
        if not 0 <= rate <= 1:
            raise UserError(
                f"{cell.where}: {cell.text} isn't a success rate in {'percent' if percent else 'fractions'}"
            )
    found = successes_of(rate, trials) if trials else None
    if trials and found is None:
        raise UserError(f"{cell.where}: {cell.text} of {task} isn't a whole number of {trials} trials")
    return ImportedTask(
        task=task,
        config=cell.config,
        rate=found / trials if trials and found is not None else rate,
        trials=trials or None,
        successes=found,
        source=Path(cell.where.split(", line")[0]).name,
    )
