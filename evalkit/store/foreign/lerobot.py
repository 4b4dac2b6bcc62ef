"""LeRobot's ``eval_info.json``.

``lerobot-eval`` writes it once, at the end: ``per_task`` is a list of ``{"task_group", "task_id", "metrics"}`` whose
``metrics.successes`` holds one boolean per episode. For RoboTwin the group is the task's name. The older form
(``per_episode``, ``aggregated``) doesn't name its task. Neither names the task configuration or the instruction.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalkit.core.errors import UserError
from evalkit.store.foreign.scores import ImportedScores, ImportedTask, canonical_task, collect

KIND = "lerobot"
FILE = "eval_info.json"
NOTES = (
    "eval_info.json doesn't state the task configuration, the seeds or the instructions",
    "LeRobot's RoboTwin environment filters no seeds by the expert and has one step limit for all tasks",
)


def read(path: Path) -> ImportedScores:
    """Read a file, or every ``eval_info.json`` below a folder.

    Raises:
        UserError: no such file, or one of another form.
        UnknownNameError: a task that isn't RoboTwin's.
    """
    files = [path] if path.is_file() else sorted(path.rglob(FILE))
    tasks = [
        task for file in files for task in _tasks(file, str(file.relative_to(path)) if path.is_dir() else file.name)
    ]
    return collect(KIND, str(path), tasks, notes=NOTES)


def load_json(file: Path) -> Any:
    """A JSON file's value.

    Raises:
        UserError: it isn't JSON.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise UserError(f"{file} isn't JSON ({error}): its run was cut off, or it is another file") from error


def _tasks(file: Path, source: str) -> Iterator[ImportedTask]:
    values = load_json(file)
    if isinstance(values, Mapping) and "per_episode" in values and "per_task" not in values:
        raise UserError(
            f"{file} is of LeRobot's older form, which doesn't name the task: give the newer one (per_task)"
        )
    try:
        entries = [(str(entry["task_group"]), list(entry["metrics"]["successes"])) for entry in values["per_task"]]
    except (KeyError, TypeError) as error:
        raise UserError(f"{file} isn't LeRobot's eval_info.json: {type(error).__name__} {error}") from error
    for name, successes in entries:
        if not successes or not all(isinstance(value, bool) or value in (0, 1) for value in successes):
            raise UserError(f"{file}: the successes of {name} aren't one true or false for each episode")
        count = sum(map(bool, successes))
        yield ImportedTask(
            task=canonical_task(name),
            config=None,
            rate=count / len(successes),
            trials=len(successes),
            successes=count,
            source=source,
        )
