"""Protocols under which an error ends more than its own trial."""

from __future__ import annotations

from collections.abc import Iterator

from evalkit.core.outcome import Outcome
from evalkit.core.record import TrialRecord
from evalkit.pool.fair_queue import Stratum, stratum_of
from evalkit.protocol.protocols import load_protocol
from evalkit.store.run import Run

_ERRORS = (Outcome.POLICY_ERROR, Outcome.SIM_ERROR)


class ErrorRule:
    """What an error ends: by the run's protocol its own trial alone, its task, or the run.

    Args:
        run: its protocol and its plan; errors that it has on record count.
    """

    def __init__(self, run: Run) -> None:
        self._protocol = run.info.protocol
        self._rule = load_protocol(run.info.protocol).rules.errors
        self._all = list(dict.fromkeys(stratum_of(spec) for spec in run.plan))

    def ended_by(self, record: TrialRecord) -> Iterator[tuple[Stratum, str]]:
        """Tasks under configurations that a record ends, each with the reason."""
        if record.outcome not in _ERRORS or self._rule not in ("stops_task", "stops_run"):
            return
        spec = record.spec
        reason = (
            f"{spec.task} {spec.config} seed {spec.seed} ended in {record.outcome}, and under protocol "
            f"{self._protocol} an error {'ends the run' if self._rule == 'stops_run' else 'ends its task'}"
        )
        for stratum in self._all if self._rule == "stops_run" else [stratum_of(spec)]:
            yield stratum, reason
