"""X-VLA's ``results.json``: one JSON object a line, ``{"sim/<task>": 0 or 1}`` for each finished trial.

The client appends, so two evaluations into one folder run into each other. It also appends one line per finished task
to ``perc.json`` beside it, by which that can be seen. Trials in which the rollout raised are in neither file.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalkit.core.errors import UserError
from evalkit.store.foreign.scores import ImportedScores, ImportedTask, canonical_task, collect

KIND = "x-vla"
FILE, RATES_FILE = "results.json", "perc.json"
PREFIX = "sim/"
NOTES = (
    "results.json doesn't state the task configuration or the seeds",
    "trials in which the rollout raised are left out by X-VLA's client: they are in no denominator",
    "X-VLA's client gives the task's name as the instruction and counts its seeds from 2000",
)


def read(path: Path) -> ImportedScores:
    """Read a file, or the one in a folder.

    Raises:
        UserError: no such file, one of another form, or results of several evaluations in one file.
        UnknownNameError: a task that isn't RoboTwin's.
    """
    file = path if path.is_file() else path / FILE
    if not file.is_file():
        raise UserError(f"{path} holds no {FILE}")
    _refuse_several(file.with_name(RATES_FILE))
    outcomes: dict[str, list[bool]] = defaultdict(list)
    for name, value in _lines(file):
        if value not in (0, 1):
            raise UserError(f"{file}: {name} has {value!r}, not 0 or 1: give {FILE}, not {RATES_FILE}")
        outcomes[canonical_task(name)].append(bool(value))
    tasks = [
        ImportedTask(
            task=task,
            config=None,
            rate=sum(ends) / len(ends),
            trials=len(ends),
            successes=sum(ends),
            source=file.name,
        )
        for task, ends in outcomes.items()
    ]
    return collect(KIND, str(path), tasks, notes=NOTES)


def _refuse_several(file: Path) -> None:
    if not file.is_file():
        return
    finished = Counter(name for name, _ in _lines(file))
    name, times = max(finished.items(), key=lambda item: item[1], default=("", 0))
    if times > 1:
        raise UserError(
            f"{file} says that {name} was evaluated {times} times: {FILE} mixes them, give a clean folder's"
        )


def _lines(file: Path) -> Iterator[tuple[str, Any]]:
    """Task name and value of each line."""
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f"{file} isn't a text file") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            ((name, value),) = json.loads(line).items()
        except (ValueError, AttributeError) as error:
            raise UserError(f'{file}, line {number} isn\'t of the form {{"sim/<task>": 1}}') from error
        if not name.startswith(PREFIX):
            raise UserError(f"{file}, line {number} names {name!r}, not sim/<task>")
        yield name.removeprefix(PREFIX), value
