"""Progress of seeds and trials: a live display on a terminal, a plain line now and then elsewhere. Always on stderr."""

from __future__ import annotations

import time
from collections import Counter
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from evalkit.core.outcome import Outcome
from evalkit.core.record import TrialRecord
from evalkit.pool.jobs import Failed
from evalkit.pool.observer import Observer
from evalkit.store.run import Run

PLAIN_EVERY_S = 10.0


class RunProgress(Observer):
    """Shows what the driver tells. A context manager.

    Args:
        workers: number of workers.
        console: where to show it; stderr by default.
    """

    def __init__(self, workers: int, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self.seed_word = "accepted"
        """What is counted of seeds."""
        self.notices: list[str] = []
        """What happened to devices, nodes and policy servers so far; for the closing summary."""
        self._workers = workers
        self._live: Live | None = None
        self._lists: dict[tuple[str, str], tuple[int, int]] = {}
        self._done: Counter[str] = Counter()
        self._successes: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._planned = 0
        self._steps_left = 0
        self._steps_done = 0
        self._trials_here = 0
        self._started = time.monotonic()
        self._shown = 0.0
        self._busy = 0

    def __enter__(self) -> RunProgress:
        if self._console.is_terminal:
            self._live = Live(console=self._console, refresh_per_second=2, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        """Print one line above the display."""
        self._console.print(text, markup=False, soft_wrap=True)

    def begin_trials(self, run: Run) -> None:
        """Start counting trials; those already recorded count as done."""
        records = run.records()
        self._lists.clear()
        self._planned = len(run.plan)
        self._steps_left = sum(spec.horizon_steps for spec in run.plan if spec.key not in records)
        self._started = time.monotonic()
        for record in records.values():
            self._count(record)

    def seeds(self, task: str, config: str, accepted: int, wanted: int) -> None:
        """See ``Observer``."""
        self._lists[task, config] = accepted, wanted

    def trial(self, record: TrialRecord) -> None:
        """See ``Observer``."""
        self._count(record)
        self._trials_here += 1
        self._steps_done += record.spec.horizon_steps
        self._steps_left -= record.spec.horizon_steps
        if record.error is not None:
            where = f"{record.spec.task} {record.spec.config} seed {record.spec.seed}"
            self.say(f"{where}: {record.outcome}: {record.error.kind}: {record.error.message}")

    def incident(self, title: str, failure: Failed, attempt: int) -> None:
        """See ``Observer``."""
        self.say(f"{title}: attempt {attempt} failed: {failure.error.kind}: {failure.error.message}")

    def notice(self, message: str) -> None:
        """See ``Observer``."""
        self.notices.append(message)
        self.say(f"evalkit: {message}")

    def tick(self, busy: int) -> None:
        """See ``Observer``."""
        self._busy = busy
        if self._live is not None:
            self._live.update(Text(self.line()))
        elif time.monotonic() - self._shown >= PLAIN_EVERY_S:
            self._shown = time.monotonic()
            self.say(self.line())

    def line(self) -> str:
        """The present state in one line."""
        busy = f"{self._busy} of {self._workers} workers busy"
        if self._lists:
            accepted = sum(have for have, _ in self._lists.values())
            wanted = sum(want for _, want in self._lists.values())
            open_lists = sum(have < want for have, want in self._lists.values())
            return f"seeds {accepted}/{wanted} {self.seed_word}, {open_lists} lists open, {busy}"
        parts = [f"trials {self._done.total()}/{self._planned}"]
        parts += [f"{config} {self._successes[config]}/{self._done[config]} succeeded" for config in sorted(self._done)]
        parts += [f"{outcome} {number}" for outcome, number in sorted(self._errors.items())]
        hours = (time.monotonic() - self._started) / 3600
        if self._trials_here and hours > 0:
            parts.append(f"{self._trials_here / hours:.0f} trials/h")
            parts.append(f"{_duration(self._steps_left / self._steps_done * hours * 3600)} left")
        return ", ".join([*parts, busy])

    def _count(self, record: TrialRecord) -> None:
        self._done[record.spec.config] += 1
        self._successes[record.spec.config] += record.outcome is Outcome.SUCCESS
        if record.outcome not in (Outcome.SUCCESS, Outcome.FAILURE):
            self._errors[str(record.outcome)] += 1


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
