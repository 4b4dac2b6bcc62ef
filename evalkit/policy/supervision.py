"""Watching the memory of a process that isn't ours, and ending it before the machine runs out."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Mapping

import psutil

from evalkit.core.errors import UserError

LIMIT = "EVALKIT_POLICY_MEMORY"
"""Bytes that a policy's process, and what it started, may hold. In the environment, so that it reaches every form."""
LOOK_S = 1.0


def resident_bytes(pid: int) -> int:
    """Resident memory of a process and all below it; 0 if it is gone. Pages that they share count for each."""
    total = 0
    try:
        root = psutil.Process(pid)
        processes = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            total += process.memory_info().rss
    return total


def policy_limit_bytes(environ: Mapping[str, str] | None = None) -> int | None:
    """The limit that the environment sets, or None.

    Raises:
        UserError: it isn't a positive number of bytes.
    """
    text = (os.environ if environ is None else environ).get(LIMIT, "")
    if not text:
        return None
    if not text.isdigit() or int(text) == 0:
        raise UserError(f"{LIMIT} is {text!r}: give a number of bytes")
    return int(text)


class MemoryGuard:
    """Kills a process group that holds more than it may. Looks once a second, also while a call is under way.

    Args:
        pid: leader of the group.
        limit_bytes: for the leader and all below it.
        look_s: time between looks; ``LOOK_S`` by default.
    """

    def __init__(self, pid: int, limit_bytes: int, look_s: float | None = None) -> None:
        self._pid, self.limit_bytes = pid, limit_bytes
        self._look_s = LOOK_S if look_s is None else look_s
        self.found_bytes: int | None = None
        """What it held when it was killed; None if it wasn't."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"memory of {pid}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Watch no longer. Call it before the process is waited for, so that its id can't be another's."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(self._look_s):
            held = resident_bytes(self._pid)
            if held > self.limit_bytes:
                self.found_bytes = held
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._pid, signal.SIGKILL)
                return
