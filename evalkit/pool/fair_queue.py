"""Which trial starts next: the one whose task and configuration lag behind most, and of those the longest."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from evalkit.core.record import TrialRecord
from evalkit.core.trial import TrialSpec

GUESS_S = 0.1
"""Expected wall time per action of the horizon before any was measured."""
Stratum = tuple[str, str]
"""Task and configuration."""


def stratum_of(spec: TrialSpec) -> Stratum:
    """The stratum a trial belongs to."""
    return spec.task, spec.config


@dataclass
class _Line:
    """Trials of one stratum that wait."""

    planned: int
    horizon_steps: int
    waiting: deque[TrialSpec] = field(default_factory=deque)
    measured: int = 0
    measured_s: float = 0.0

    @property
    def share_started(self) -> float:
        return 1.0 - len(self.waiting) / self.planned


class FairQueue:
    """Trials that wait, in strata. Why this order: ``docs/decisions/0011-the-order-of-trials.md``.

    A stratum's share is how many of its planned trials have started, those of earlier sessions included. The smallest
    share goes first, so a run cut short has covered all strata evenly (they differ by one trial); among equal shares,
    the stratum whose trials are expected to take longest, so that the last round ends with the short ones.

    Args:
        remaining: trials to run, in plan order.
        plan: all trials of the run, in plan order; those that aren't in ``remaining`` count as started.
        task_order: tasks in the order their trials are to start, or none for the rule above.
    """

    def __init__(
        self, remaining: Sequence[TrialSpec], plan: Sequence[TrialSpec] = (), task_order: Sequence[str] = ()
    ) -> None:
        self._task_order = {task: number for number, task in enumerate(task_order)}
        self._lines: dict[Stratum, _Line] = {}
        planned: dict[Stratum, int] = {}
        for spec in plan or remaining:
            planned[stratum_of(spec)] = planned.get(stratum_of(spec), 0) + 1
        for spec in remaining:
            stratum = stratum_of(spec)
            if stratum not in self._lines:
                self._lines[stratum] = _Line(planned[stratum], spec.horizon_steps)
            self._lines[stratum].waiting.append(spec)
        self._steps, self._seconds = 0, 0.0

    def __len__(self) -> int:
        return sum(len(line.waiting) for line in self._lines.values())

    def pop(self) -> TrialSpec | None:
        """The next trial, or None if none waits."""
        waiting = [stratum for stratum, line in self._lines.items() if line.waiting]
        if not waiting:
            return None
        if self._task_order:
            first = min(waiting, key=lambda stratum: self._task_order[stratum[0]])
        else:
            first = min(waiting, key=lambda stratum: (self._lines[stratum].share_started, -self.expected_s(stratum)))
        return self._lines[first].waiting.popleft()

    def learn(self, record: TrialRecord) -> None:
        """Take the wall time of a trial that came to its end."""
        line = self._lines.get(stratum_of(record.spec))
        self._steps += record.spec.horizon_steps
        self._seconds += record.timings.wall_s
        if line is not None:
            line.measured += 1
            line.measured_s += record.timings.wall_s

    def expected_s(self, stratum: Stratum) -> float:
        """Expected wall time of a trial: the stratum's mean so far, else its horizon at the run's mean rate."""
        line = self._lines[stratum]
        if line.measured:
            return line.measured_s / line.measured
        return line.horizon_steps * (self._seconds / self._steps if self._steps else GUESS_S)

    def holds(self, stratum: Stratum) -> bool:
        """Whether trials of a stratum passed through this queue."""
        return stratum in self._lines

    def drop(self, stratum: Stratum) -> int:
        """Let no more trials of a stratum start; says how many waited."""
        number = len(self._lines[stratum].waiting)
        self._lines[stratum].waiting.clear()
        return number
