"""What the driver tells about its work, to whoever shows it."""

from __future__ import annotations

from evalkit.core.record import TrialRecord
from evalkit.pool.jobs import Failed


class Observer:
    """Hears everything, shows nothing. Subclasses override what they show."""

    def seeds(self, task: str, config: str, accepted: int, wanted: int) -> None:
        """A seed list grew."""

    def trial(self, record: TrialRecord) -> None:
        """A trial is finished and on disk."""

    def incident(self, title: str, failure: Failed, attempt: int) -> None:
        """An attempt failed; it may be tried again."""

    def notice(self, message: str) -> None:
        """Something happened to a device, a node or a policy server that isn't one trial's affair."""

    def tick(self, busy: int) -> None:
        """Called about twice a second with the number of busy workers."""
