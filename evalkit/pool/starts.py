"""Simulators that don't start: whose fault it is not, when to try again, and when to give up on all of them."""

from __future__ import annotations

import time
from collections.abc import Collection

AT_LEAST = 2
"""Failed starts that end a run of one worker: the first might be bad luck."""
LONGEST_REST_S = 60.0


class Starts:
    """Counts failed starts in a row of each worker.

    A worker whose simulator doesn't start rests, ever longer, as long as others work: one bad GPU among eight must not
    end a run. The run ends when that is how it went with all of them.
    """

    def __init__(self) -> None:
        self._failed: dict[int, int] = {}
        self._rests_until: dict[int, float] = {}
        self._any_came_up = False
        self._told: set[str] = set()

    def came_up(self, worker: int) -> None:
        """The worker's simulator did something, be it wrong."""
        self._any_came_up = True
        self._failed.pop(worker, None)
        self._rests_until.pop(worker, None)

    def failed(self, worker: int) -> None:
        """The worker's simulator didn't start."""
        self._failed[worker] = self._failed.get(worker, 0) + 1
        self._rests_until[worker] = time.monotonic() + min(2.0 ** self._failed[worker], LONGEST_REST_S)

    def rests(self, worker: int) -> bool:
        """Whether the worker should get no job yet, as long as others work."""
        return time.monotonic() < self._rests_until.get(worker, 0.0)

    def is_news(self, message: str) -> bool:
        """Whether this is the first failed start with these words: one diagnosis is enough."""
        news = message not in self._told
        self._told.add(message)
        return news

    def verdict(self, workers: Collection[int]) -> str | None:
        """Why to give up on all workers, or None.

        Args:
            workers: those that can be used.
        """
        tries = sum(self._failed.get(worker, 0) for worker in workers)
        each = AT_LEAST if self._any_came_up else 1
        if tries < AT_LEAST or any(self._failed.get(worker, 0) < each for worker in workers):
            return None
        since = "any more" if self._any_came_up else "at all"
        return f"no simulator starts {since} ({tries} tries)"
