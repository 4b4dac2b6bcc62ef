"""Whether a device is to blame for what failed on it. Pure: fed with events, says when enough is enough.

A failure may be the fault of the trial, of the policy or of the device. What tells them apart: a bad device fails
whatever trial it is given, a bad trial fails on whatever device. So failures on a device count while nothing succeeds
there in between, each trial once; and a trial that failed alone on two devices is proven bad, and counts for none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

TOLERATED = 3
"""More failures in a row than these take a device out of use."""


class DeviceHealth:
    """Counts failures by device.

    Args:
        tolerated: see ``TOLERATED``, which is the default.
    """

    def __init__(self, tolerated: int | None = None) -> None:
        self._tolerated = TOLERATED if tolerated is None else tolerated
        self._in_a_row: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
        self._failed_on: dict[str, set[str]] = defaultdict(set)

    def failed(self, device: str, event: str, jobs: Collection[str]) -> bool:
        """Something failed on a device.

        Args:
            device: names it.
            event: names what failed, such as one server: the same event counts once.
            jobs: keys of the jobs that were there. With a single one, the job may be to blame.

        Returns:
            Whether the device has failed too often.
        """
        for job in jobs:
            self._failed_on[job].add(device)
        alone = next(iter(jobs)) if len(jobs) == 1 else None
        if alone is not None and len(self._failed_on[alone]) > 1:
            self._acquit(alone)
        else:
            self._in_a_row[device].setdefault(alone if alone is not None else event, frozenset(jobs))
        return len(self._in_a_row[device]) > self._tolerated

    def worked(self, device: str, job: str) -> None:
        """A job came to its end on a device."""
        self._in_a_row.pop(device, None)
        self._failed_on.pop(job, None)

    def failed_on(self, job: str) -> frozenset[str]:
        """Devices on which a job failed: the next attempt is better made elsewhere."""
        return frozenset(self._failed_on.get(job, ()))

    def count(self, device: str) -> int:
        """Failures in a row."""
        return len(self._in_a_row.get(device, ()))

    def _acquit(self, job: str) -> None:
        """The job is to blame: take back what was counted for it."""
        for events in self._in_a_row.values():
            for event in [name for name, jobs in events.items() if job in jobs]:
                del events[event]
