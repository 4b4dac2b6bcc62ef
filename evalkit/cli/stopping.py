"""SIGTERM and Ctrl-C: the first one asks the loop to stop, a second one doesn't ask."""

from __future__ import annotations

import signal
from types import FrameType

EXIT_RESUMABLE = 75
"""``EX_TEMPFAIL``: queue systems requeue a job that ends so."""


class StopRequest:
    """Whether somebody asked this process to stop. Call ``install`` again after libraries that set handlers."""

    def __init__(self) -> None:
        self.requested = False

    def __call__(self) -> bool:
        """True once a signal has come."""
        return self.requested

    def install(self) -> None:
        """Take over SIGTERM and SIGINT."""
        signal.signal(signal.SIGTERM, self._handle)
        signal.signal(signal.SIGINT, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
