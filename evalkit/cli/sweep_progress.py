"""Progress of a sweep: how many scenes are done, and how often each policy succeeded on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from evalkit.aggregate.sweep import unique_names
from evalkit.cli.progress import RunProgress
from evalkit.core.outcome import Outcome
from evalkit.core.record import TrialRecord
from evalkit.store.run import Run


class SweepProgress(RunProgress):
    """Shows the trials of several runs together."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self._names: dict[str, str] = {}
        self._by_policy: Counter[str] = Counter()
        self._succeeded: Counter[str] = Counter()
        self._all = 0

    def begin(self, runs: Sequence[Run]) -> None:
        """Start with what is recorded already."""
        self._lists.clear()
        self._names = dict(
            zip(
                [run.info.policy.digest for run in runs],
                unique_names([run.info.policy for run in runs]),
                strict=True,
            )
        )
        self._all = sum(len(run.plan) for run in runs)
        for run in runs:
            for record in run.records().values():
                self._note(record)

    def trial(self, record: TrialRecord) -> None:
        """See ``Observer``."""
        super().trial(record)
        self._note(record)

    def line(self) -> str:
        """The present state in one line."""
        if self._lists or not self._names:
            return super().line()
        parts = [f"{name} {self._succeeded[policy]}/{self._by_policy[policy]}" for policy, name in self._names.items()]
        busy = f"{self._busy} of {self._workers} workers busy"
        return f"trials {self._by_policy.total()}/{self._all}; succeeded: {', '.join(parts)}; {busy}"

    def _note(self, record: TrialRecord) -> None:
        self._by_policy[record.spec.policy] += 1
        self._succeeded[record.spec.policy] += record.outcome is Outcome.SUCCESS
