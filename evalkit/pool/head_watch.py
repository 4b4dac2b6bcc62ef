"""Noticing that Ray's head is gone. Ray itself waits for a minute, then ends the process without a word to anybody."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable

GONE_S = 5.0
"""Nobody listens at the address any more: the head's process has ended."""
SILENT_S = 20.0
"""No answer at all: its machine or the network is gone."""
UNHEEDED_S = 10.0
"""After so long the main thread is interrupted, whatever it waits for."""
EVERY_S = 1.0


class HeadWatch:
    """Asks the head's port every second, in a thread of its own.

    Args:
        address: the head's, ``HOST:PORT``.
        on_lost: called once, with the reason.
    """

    def __init__(self, address: str, on_lost: Callable[[str], None]) -> None:
        self.is_lost = False
        self._address, self._on_lost = address, on_lost
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="ray-head-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the watch."""
        self._over.set()

    def _watch(self) -> None:
        host, port = split_address(self._address)
        last_seen = time.monotonic()
        while not self._over.wait(EVERY_S):
            try:
                socket.create_connection((host, port), timeout=2.0).close()
                last_seen = time.monotonic()
                continue
            except ConnectionRefusedError:
                limit_s, what = GONE_S, "has ended"
            except OSError as error:
                limit_s, what = SILENT_S, f"can't be reached ({error})"
            if time.monotonic() - last_seen > limit_s:
                self.is_lost = True
                self._on_lost(f"Ray's head at {self._address} {what}")
                if not self._over.wait(UNHEEDED_S):
                    os.kill(os.getpid(), signal.SIGINT)
                return


def split_address(address: str) -> tuple[str, int]:
    """``host:port`` -> host, port; IPv6 hosts in brackets.

    Raises:
        ValueError: it isn't of that form.
    """
    host, separator, port = address.rpartition(":")
    if not separator or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(address)
    return host.strip("[]"), int(port)
