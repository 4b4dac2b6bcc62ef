"""When to stop a run that can only go wrong: a broken policy or machine must not use up a hundred trials."""

from __future__ import annotations

from evalkit.core.outcome import Outcome
from evalkit.core.record import TrialRecord
from evalkit.pool.fair_queue import Stratum, stratum_of

POLICY_ERRORS = 10
MISSING = 5


class Fuse:
    """Watches records in order of completion. It never changes a record; it only ends the run early, incomplete."""

    def __init__(self) -> None:
        self._worked = False
        self._errors: list[tuple[Outcome, str]] = []

    def check(self, record: TrialRecord) -> str | None:
        """The reason to stop now, or None."""
        if record.outcome in (Outcome.SUCCESS, Outcome.FAILURE):
            self._worked = True
            self._errors.clear()
            return None
        error = record.error
        kind = error.kind if error else ""
        message = error.message if error else ""
        self._errors.append((record.outcome, kind))
        if record.outcome is Outcome.POLICY_ERROR and not self._worked:
            if kind == "action_shape" and record.steps == 0:
                return f"the policy's first actions have the wrong form: {message}"
            if self._in_a_row(POLICY_ERRORS):
                return f"the first {POLICY_ERRORS} trials all ended in policy error {kind}, the last one {message}"
        if not record.outcome.is_scored and self._in_a_row(MISSING):
            return f"{MISSING} trials in a row ended in {record.outcome} {kind}, the last one: {message}"
        return None

    def _in_a_row(self, number: int) -> bool:
        last = self._errors[-number:]
        return len(last) == number and len(set(last)) == 1


class StratumFuse:
    """Watches each task and configuration by itself: where trials only ever go missing, no more of them should start.

    A crash or hang on every scene of one task would otherwise cost a hundred trials, three attempts each.
    """

    def __init__(self) -> None:
        self._worked: set[Stratum] = set()
        self._missing: dict[Stratum, list[tuple[Outcome, str]]] = {}

    def check(self, record: TrialRecord) -> str | None:
        """The reason to start no more trials of the record's task and configuration, or None."""
        stratum = stratum_of(record.spec)
        if record.outcome.is_scored:
            self._worked.add(stratum)
        if stratum in self._worked:
            return None
        kind, message = (record.error.kind, record.error.message) if record.error else ("", "")
        ends = self._missing.setdefault(stratum, [])
        ends.append((record.outcome, kind))
        if len(ends) < MISSING or len(set(ends)) > 1:
            return None
        return f"its first {len(ends)} trials all ended in {record.outcome} {kind}, the last one: {message}"
