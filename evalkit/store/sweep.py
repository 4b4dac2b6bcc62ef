"""A sweep: several runs that differ in the policy alone. ``sweep.json`` says which; every run stands by itself.

The runs may lie elsewhere: the file holds paths relative to its own folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evalkit.core.errors import UserError
from evalkit.core.files import write_json
from evalkit.store.info import RunInfo
from evalkit.store.run import SWEEP_FILE, Run, open_run

SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class SweepInfo:
    """What ``sweep.json`` holds."""

    sweep: str
    """The sweep's name."""
    created_at: str
    """UTC, ISO 8601."""
    runs: tuple[str, ...]
    """Folders of the runs, relative to the sweep's, in the order of the table."""
    settings: str
    """SHA-256 over what the runs have in common: all of their identity but the policy."""
    left_out: tuple[str, ...] = ()
    """Checkpoints that a pattern matched but that weren't whole, one line each."""
    failures: Mapping[str, str]
    """Run id -> why the last session on it ended early."""
    command: tuple[str, ...] = ()
    schema: int = SCHEMA


def common_settings(info: RunInfo) -> dict[str, Any]:
    """A run's identity without its policy."""
    return {name: value for name, value in info.identity().items() if not name.startswith("policy.")}


def write_sweep(folder: Path, info: SweepInfo) -> Path:
    """Write ``sweep.json``."""
    path = folder / SWEEP_FILE
    write_json(path, asdict(info))
    return path


def read_sweep(folder: Path) -> SweepInfo:
    """What ``sweep.json`` of a folder says.

    Raises:
        UserError: it can't be read.
    """
    path = folder / SWEEP_FILE
    try:
        values: dict[str, Any] = json.loads(path.read_text())
        if values["schema"] > SCHEMA:
            raise UserError(f"{path} has schema {values['schema']}, newer than {SCHEMA}: update evalkit")
        for name in ("runs", "left_out", "command"):
            values[name] = tuple(values[name])
        return SweepInfo(**values)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} can't be read: {type(error).__name__}: {error}") from error


def open_sweep(folder: Path) -> tuple[SweepInfo, tuple[Run, ...]]:
    """A sweep and its runs, to read.

    Raises:
        UserError: the folder isn't a sweep's, or a run of it can't be read.
    """
    info = read_sweep(folder)
    return info, tuple(open_run(run_folder(folder, name)) for name in info.runs)


def run_folder(folder: Path, name: str) -> Path:
    """Where a run of a sweep lies, as a short path."""
    return Path(os.path.normpath(folder / name))


def names_of_runs(folder: Path, runs: Sequence[Run]) -> tuple[str, ...]:
    """The runs' folders as ``sweep.json`` in ``folder`` names them."""
    return tuple(os.path.relpath(run.folder.resolve(), folder.resolve()) for run in runs)
