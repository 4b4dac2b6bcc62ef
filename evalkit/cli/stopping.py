"""Signals: the first one asks the loop to stop, a second one doesn't ask."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

EXIT_RESUMABLE = 75
"""``EX_TEMPFAIL``: queue systems requeue a job that ends so."""
STOP_GRACE_S = 15.0
"""How long trials in flight may take to end. A preempted Slurm job has 30 s, and ending Ray takes some of them."""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP)
"""Queue systems send TERM when they preempt and USR1 before the time limit; a terminal that closes sends HUP."""
_ONE_REQUEST_S = 1.0
"""Queue systems signal every process of a job, and a job's script may pass the signal on: it is one request still."""
_POLLED_S = 5.0
"""A loop that runs asks more often."""


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Give the signals back, after the ``with`` block, to who had them before: commands and Ray take them over."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class StopRequest:
    """Whether somebody wants this process to stop. Call ``install`` again after libraries that set handlers.

    As long as no loop asks (a policy is being loaded), the first signal raises KeyboardInterrupt: nothing is in flight.

    Args:
        grace_s: how long trials in flight may go on.
    """

    def __init__(self, grace_s: float = STOP_GRACE_S) -> None:
        self.grace_s = grace_s
        self.reason: str | None = None
        """Why, if it was no signal."""
        self._cut = threading.Event()
        self._asked_at: float | None = None
        self._polled_at = float("-inf")

    @property
    def requested(self) -> bool:
        """Whether to stop."""
        return self._asked_at is not None

    def __call__(self) -> bool:
        """True once nothing new may start."""
        self._polled_at = time.monotonic()
        return self.requested

    def at_once(self) -> bool:
        """True once what is in flight isn't waited for any longer."""
        if self._asked_at is None:
            return False
        return self._cut.is_set() or time.monotonic() - self._asked_at >= self.grace_s

    def give_up(self, reason: str) -> None:
        """Stop at once, for a reason that is no signal. May be called by any thread."""
        self.reason = self.reason or reason
        self._asked_at = self._asked_at or time.monotonic()
        self._cut.set()

    def install(self) -> None:
        """Take over the signals. One that is ignored stays ignored: ``nohup`` wants that of HUP."""
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._asked_at is None:
            self._asked_at = now
            if now - self._polled_at <= _POLLED_S:
                return
        elif now - self._asked_at < _ONE_REQUEST_S:
            return
        self._cut.set()
        raise KeyboardInterrupt
