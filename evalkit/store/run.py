"""A run's folder. Plain files, one writer, nothing rewritten: killing the writer loses at most a torn last line.

run.json      manifest, written first
plan.jsonl    the trials that exist, in canonical order
trials.jsonl  finished trials, appended in order of completion
media/        videos
DONE          written last
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalkit.core.errors import HarnessError, UserError
from evalkit.core.files import JsonLinesWriter, read_json_lines, write_atomic, write_json
from evalkit.core.lease import SILENT_S, WriterLease
from evalkit.core.record import ErrorInfo, TrialRecord
from evalkit.core.trial import TrialSpec
from evalkit.store.info import RunInfo

RUN_FILE = "run.json"
PLAN_FILE = "plan.jsonl"
TRIALS_FILE = "trials.jsonl"
INCIDENTS_FILE = "incidents.jsonl"
MEDIA_FOLDER = "media"
DONE_FILE = "DONE"
LOCK_FILE = ".writer.lock"
DECISION_FILE = "decision.json"
"""In a folder that holds two runs: what they decide between their policies."""
SWEEP_FILE = "sweep.json"
"""In a folder of a sweep: its runs, which differ in the policy alone."""


class Run:
    """One run. Make it with ``Run.create`` (to write) or ``open_run`` (to read).

    Attributes:
        folder: the run's folder.
        info: its manifest.
        plan: its trials in canonical order.
    """

    def __init__(self, folder: Path, info: RunInfo, plan: Sequence[TrialSpec]) -> None:
        self.folder = folder
        self.info = info
        self.plan: tuple[TrialSpec, ...] = tuple(plan)
        self._writers: dict[str, JsonLinesWriter] = {}
        self._lock: WriterLease | None = None

    @classmethod
    def create(cls, folder: Path, info: RunInfo, plan: Sequence[TrialSpec]) -> Run:
        """Start a run in ``folder``, or take up the one of the same identity that is there.

        Raises:
            UserError: the folder holds another run (the fields that differ are named), or files that are no run.
        """
        keys = [spec.key for spec in plan]
        if len(set(keys)) != len(keys):
            raise UserError(f"the plan of run {info.run_id} names {len(keys) - len(set(keys))} trials twice")
        run_file = folder / RUN_FILE
        if run_file.exists():
            _refuse_other(folder, _read_info(folder), info)
            info = _read_info(folder)
        elif folder.is_dir() and any(not entry.name.startswith(LOCK_FILE) for entry in folder.iterdir()):
            raise UserError(f"{folder} holds files but no {RUN_FILE}: give --out an empty or new folder")
        else:
            write_json(run_file, info.to_json())
        plan_file = folder / PLAN_FILE
        if plan_file.exists():
            if [spec.key for spec in _read_plan(folder)] != keys:
                raise UserError(f"{plan_file} isn't the plan these settings give: give --out a new folder")
        else:
            write_atomic(plan_file, "".join(json.dumps(asdict(spec)) + "\n" for spec in plan))
        return cls(folder, info, plan)

    @property
    def media(self) -> Path:
        """Folder of the videos."""
        return self.folder / MEDIA_FOLDER

    @property
    def is_done(self) -> bool:
        """Whether the run came to its end."""
        return (self.folder / DONE_FILE).exists()

    def records(self) -> dict[str, TrialRecord]:
        """Finished trials of the plan by key, in plan order.

        A key's first scored record counts (success, failure, policy error). If it has none, its last record does,
        which says why the trial is missing: ``--retry-errors`` may add a later attempt.

        Raises:
            UserError: two scored records of one key have different outcomes, a record isn't in the plan, or a line
                is broken.
        """
        found: dict[str, TrialRecord] = {}
        planned = {spec.key for spec in self.plan}
        for record in self.history():
            key = record.key
            if key not in planned:
                what = f"{record.spec.task} {record.spec.config} seed {record.spec.seed}"
                raise UserError(f"{self.folder / TRIALS_FILE}: {what} (key {key}) isn't in {PLAN_FILE}")
            earlier = found.get(key)
            if earlier is None or not earlier.outcome.is_scored:
                found[key] = record
            elif record.outcome.is_scored and record.outcome is not earlier.outcome:
                raise UserError(
                    f"{self.folder / TRIALS_FILE}: {record.spec.task} {record.spec.config} seed {record.spec.seed} "
                    f"(key {key}) has two outcomes, {earlier.outcome} and {record.outcome}: the trial isn't "
                    "deterministic, or the file was edited; remove the folder and run again"
                )
        return {spec.key: found[spec.key] for spec in self.plan if spec.key in found}

    def history(self) -> list[TrialRecord]:
        """Every record of ``trials.jsonl`` in order of completion, duplicates included.

        Raises:
            UserError: a line other than a torn last one can't be read.
        """
        path = self.folder / TRIALS_FILE
        try:
            return [TrialRecord.from_json(values) for values in read_json_lines(path)]
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path} can't be read: {error}") from error

    def remaining(self, *, retry_errors: bool = False) -> list[TrialSpec]:
        """Planned trials without a record, in plan order: resume is this difference.

        Args:
            retry_errors: count trials that ended in a simulator or harness error as remaining.
        """
        done = self.records()
        return [
            spec
            for spec in self.plan
            if spec.key not in done or (retry_errors and not done[spec.key].outcome.is_scored)
        ]

    def append(self, record: TrialRecord) -> None:
        """Add a finished trial; it is on disk when this returns. The first call makes this process the writer.

        Raises:
            UserError: another process is writing this run.
        """
        self._append(TRIALS_FILE, record.to_json())

    def append_incident(self, key: str, title: str, attempt: int, worker: str, error: ErrorInfo) -> None:
        """Add a failed attempt at a trial. Incidents explain; no result is computed from them."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        values = {"at": now, "key": key, "title": title, "attempt": attempt, "worker": worker, "error": asdict(error)}
        self._append(INCIDENTS_FILE, values)

    def incidents(self) -> list[dict[str, Any]]:
        """Failed attempts in order: ``at``, ``key``, ``title``, ``attempt``, ``worker``, ``error``."""
        return read_json_lines(self.folder / INCIDENTS_FILE)

    def lock(self) -> None:
        """Become the run's only writer.

        Raises:
            UserError: another process is.
        """
        if self._lock is None:
            lock = WriterLease(self.folder / LOCK_FILE)
            if (who := lock.acquire(self._say_waiting)) is not None:
                raise UserError(f"another evalkit process is writing {self.folder} ({who}): wait for it or stop it")
            self._lock = lock

    def mark_done(self, facts: Mapping[str, Any]) -> None:
        """Write ``DONE`` with a few facts (JSON). Call it after every other file is written."""
        write_json(self.folder / DONE_FILE, dict(facts))

    def close(self) -> None:
        """Give up the writer's role."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _say_waiting(self, who: str) -> None:
        print(f"{self.folder} was written by {who}: looking whether it still is, for {SILENT_S:g} s", file=sys.stderr)

    def _append(self, name: str, values: Mapping[str, Any]) -> None:
        self.lock()
        if self._lock is not None and self._lock.is_lost:
            raise HarnessError(f"another evalkit process took over {self.folder} while this one stood still")
        if name not in self._writers:
            self._writers[name] = JsonLinesWriter(self.folder / name)
        self._writers[name].append(values)


def open_run(folder: Path) -> Run:
    """Read a run.

    Raises:
        UserError: ``folder`` isn't a run, or its manifest or plan can't be read.
    """
    if not (folder / RUN_FILE).exists():
        if (folder / DECISION_FILE).exists():
            runs = " or ".join(sorted(str(path.parent) for path in folder.glob(f"*/{RUN_FILE}")))
            raise UserError(f"{folder} is a decision between two runs, no run: evalkit status shows it; or name {runs}")
        if (folder / SWEEP_FILE).exists():
            raise UserError(f"{folder} is a sweep of several runs, no run: {SWEEP_FILE} names them")
        raise UserError(f"{folder} isn't a run: it has no {RUN_FILE}")
    return Run(folder, _read_info(folder), _read_plan(folder))


def _read_info(folder: Path) -> RunInfo:
    path = folder / RUN_FILE
    try:
        return RunInfo.from_json(json.loads(path.read_text()))
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} can't be read: {type(error).__name__}: {error}") from error


def _read_plan(folder: Path) -> tuple[TrialSpec, ...]:
    path = folder / PLAN_FILE
    if not path.exists():
        raise UserError(f"{path} is missing: run the same command again to write it")
    try:
        return tuple(TrialSpec.from_json(values) for values in read_json_lines(path))
    except (ValueError, TypeError) as error:
        raise UserError(f"{path} can't be read: {error}") from error


def _refuse_other(folder: Path, there: RunInfo, ours: RunInfo) -> None:
    old, new = there.identity(), ours.identity()
    differing = [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
    if differing:
        shown = "; ".join(f"{name}: {old.get(name)!r} there, {new.get(name)!r} now" for name in differing[:4])
        more = f"; and {len(differing) - 4} more" if len(differing) > 4 else ""
        raise UserError(f"{folder} holds another run ({shown}{more}): give --out another folder")
