"""RoboTwin's ``_result.txt`` trees, and FastWAM's files of the same form.

``eval_result/<task>/<policy>/<task_config>/<checkpoint>/<timestamp>/_result.txt`` holds a time, the instruction type
and, on its last non-empty line, the success rate as a fraction. Batch mode adds the fields Batch Workers and Skipped
Seeds.
FastWAM writes ``<task>/_result_clean.txt`` and ``_result_random.txt``. None of them states the number of trials.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evalkit.core.errors import UserError
from evalkit.core.tasks import TASKS
from evalkit.store.foreign.scores import ImportedScores, ImportedTask, check_rate, collect

KIND = "robotwin"
_CONFIG_OF_FILE = {"_result.txt": None, "_result_clean.txt": "demo_clean", "_result_random.txt": "demo_randomized"}
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}[ _]\d{2}[:-]\d{2}[:-]\d{2}(_\d+)?\Z")
_HEADER = re.compile(r"([A-Z][A-Za-z ]+): *(.*)\Z")
NO_TRIALS = "_result.txt doesn't state the number of trials"
BATCH = "batch mode: the rate is over the trials that were finished, which may be fewer than were asked for"


@dataclass(frozen=True)
class _Result:
    """One file: where it lies, and what it says."""

    source: str
    task: str
    config: str
    policy: str
    timestamp: str
    rate: float
    split: str | None
    batch: bool


def read(path: Path, *, only: str | None = None, latest: bool = False) -> ImportedScores:
    """Read a tree, or a part of it: a task's folder, or one file.

    Args:
        path: folder or file.
        only: take only files whose path holds this text.
        latest: of several time stamps for one task and checkpoint, take the last; otherwise they are refused.

    Raises:
        UserError: no such file, one that can't be read, several policies or checkpoints, or several time stamps.
    """
    files = [path] if path.is_file() else sorted(file for name in _CONFIG_OF_FILE for file in path.rglob(name))
    results = [_read_file(file, path) for file in files if only is None or only in file.as_posix()]
    if not results:
        raise UserError(f"{path} holds no _result.txt{f' whose path has {only!r} in it' if only else ''}")
    policies = sorted({result.policy for result in results})
    if len(policies) > 1:
        shown = ", ".join(policies[:4]) + (f" and {len(policies) - 4} more" if len(policies) > 4 else "")
        raise UserError(f"{path} holds results of several checkpoints ({shown}): name one with --only")
    chosen = _one_each(results, latest)
    notes = [NO_TRIALS]
    if any(result.batch for result in chosen):
        notes.append(BATCH)
    if latest and len(chosen) < len(results):
        notes.append(f"{len(results) - len(chosen)} older results of the same tasks were left out (--latest)")
    tasks = [
        ImportedTask(
            task=result.task,
            config=result.config,
            rate=result.rate,
            trials=None,
            successes=None,
            instruction_split=result.split,
            source=result.source,
        )
        for result in chosen
    ]
    return collect(KIND, str(path), tasks, policy=policies[0] or None, notes=notes)


def parse(text: str, where: str) -> tuple[float, dict[str, str]]:
    """Success rate and header fields of a ``_result.txt``.

    Raises:
        UserError: the last non-empty line isn't a fraction.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise UserError(f"{where} is empty: its run was cut off")
    try:
        rate = check_rate(float(lines[-1]), where)
    except ValueError as error:
        raise UserError(f"{where} ends in {lines[-1]!r}, not in a success rate: its run was cut off") from error
    fields = {match[1]: match[2] for line in lines[:-1] if (match := _HEADER.match(line))}
    return rate, fields


def _read_file(file: Path, root: Path) -> _Result:
    where = str(file)
    try:
        rate, fields = parse(file.read_text(encoding="utf-8-sig"), where)
    except UnicodeDecodeError as error:
        raise UserError(f"{where} isn't a text file") from error
    parts = file.resolve().parent.parts
    config = _CONFIG_OF_FILE.get(file.name)
    policy = timestamp = ""
    if config is not None:
        task = parts[-1]
        if task not in TASKS:
            raise UserError(f"{where}: {task!r} isn't a task of RoboTwin")
    else:
        task, policy, config, timestamp = _from_folders(parts, where)
    split = fields.get("Instruction Type")
    return _Result(
        source=str(file.relative_to(root)) if root.is_dir() else file.name,
        task=task,
        config=config,
        policy=policy,
        timestamp=timestamp,
        rate=rate,
        split=split if split in ("seen", "unseen") else None,
        batch="Batch Workers" in fields,
    )


def _from_folders(parts: Sequence[str], where: str) -> tuple[str, str, str, str]:
    """Task, policy with checkpoint, configuration and time stamp. A checkpoint may be several folders deep."""
    # A policy may be called as a task is, so the last task name that leaves room for the rest counts.
    places = [place for place, part in enumerate(parts[:-3]) if part in TASKS]
    if not places or not _TIMESTAMP.match(parts[-1]):
        raise UserError(
            f"{where} isn't where RoboTwin writes it: <task>/<policy>/<task_config>/<checkpoint>/<time>/_result.txt"
        )
    place = places[-1]
    checkpoint = "/".join(parts[place + 3 : -1])
    policy = f"{parts[place + 1]}/{checkpoint}" if checkpoint else parts[place + 1]
    return parts[place], policy, parts[place + 2], parts[-1]


def _one_each(results: Sequence[_Result], latest: bool) -> list[_Result]:
    groups: dict[tuple[str, str], list[_Result]] = defaultdict(list)
    for result in results:
        groups[result.task, result.config].append(result)
    chosen = []
    for (task, config), group in groups.items():
        if len(group) > 1 and not latest:
            times = ", ".join(sorted(result.timestamp for result in group))
            raise UserError(
                f"{task} under {config} has {len(group)} results ({times}): name one with --only, or take the last "
                "with --latest"
            )
        # Time stamps of both layouts sort as text once their separators agree.
        chosen.append(max(group, key=lambda result: re.sub(r"[ _:-]", "", result.timestamp)))
    return chosen
