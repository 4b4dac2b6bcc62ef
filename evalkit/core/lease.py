"""One writer per folder, over several machines: a lock where locks work, and signs of life where they may not.

``flock`` keeps processes of one machine apart. Over a network file system it may hold on one machine only (NFS mounted
with ``nolock`` or ``local_lock``, Lustre with ``localflock``), or not at all. So the writer also leaves a file that
says who it is and touches it all the time; another machine's writer takes over only when that has stopped for a while.
The while is counted by the one who waits: clocks of machines needn't agree.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from evalkit.core.files import write_atomic
from evalkit.core.lock import FileLock

BEAT_S = 10.0
SILENT_S = 35.0
"""After so long without a sign of life a writer on another machine counts as dead."""
_LOOK_S = 0.5


class WriterLease:
    """The right to write in a folder. It ends with its process.

    Args:
        lock: path of the lock file; the writer's file lies beside it, with ``.owner`` added.
        beat_s: seconds between two signs of life.
        silent_s: see ``SILENT_S``.
    """

    def __init__(self, lock: Path, *, beat_s: float = BEAT_S, silent_s: float = SILENT_S) -> None:
        self._lock, self._owner = FileLock(lock), lock.with_name(f"{lock.name}.owner")
        self._beat_s, self._silent_s = beat_s, silent_s
        self._me = json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "id": uuid.uuid4().hex})
        self._over = threading.Event()
        self.is_lost = False
        """Whether somebody else took over: this process was silent for too long, e.g. suspended."""

    def acquire(self, on_wait: Callable[[str], None] = lambda who: None) -> str | None:
        """Take the lease; None if that worked, or who has it.

        Args:
            on_wait: told whose signs of life are waited for.
        """
        if not self._lock.acquire():
            return self._read().get("who") or "another process"
        before = self._read()
        if before and before.get("host") != socket.gethostname():
            on_wait(before["who"])
            if self._shows_life():
                self._lock.release()
                return before["who"]
        elif before and not self._lock.is_held and _is_running(before.get("pid")):
            return before["who"]  # this machine's, on a file system without locks
        write_atomic(self._owner, self._me)
        threading.Thread(target=self._live, name="writer-lease", daemon=True).start()
        return None

    def release(self) -> None:
        """Give the lease back; does nothing if it isn't held."""
        self._over.set()
        if not self.is_lost and self._content() == self._me:
            self._owner.unlink(missing_ok=True)
        self._lock.release()

    def _live(self) -> None:
        while not self._over.wait(self._beat_s):
            if self._content() not in (self._me, None):
                self.is_lost = True
                return
            try:
                os.utime(self._owner)
            except OSError:
                continue  # the file system is away for a moment: a later beat will do

    def _shows_life(self) -> bool:
        first, until = self._sign(), time.monotonic() + self._silent_s
        while time.monotonic() < until:
            time.sleep(min(_LOOK_S, self._silent_s / 10))
            if (now := self._sign()) is None:
                return False  # given back meanwhile
            if now != first:
                return True
        return False

    def _sign(self) -> tuple[int, str] | None:
        try:
            os.listdir(self._owner.parent)  # makes network file systems look again
            return self._owner.stat().st_mtime_ns, self._content() or ""
        except OSError:
            return None

    def _content(self) -> str | None:
        try:
            return self._owner.read_text()
        except OSError:
            return None

    def _read(self) -> dict[str, str]:
        try:
            found = json.loads(self._content() or "{}")
            return {**found, "who": f"process {found['pid']} on {found['host']}"} if found else {}
        except (ValueError, KeyError, TypeError):
            return {}  # half a file of a writer that died while taking over


def _is_running(pid: object) -> bool:
    return isinstance(pid, int) and pid != os.getpid() and Path(f"/proc/{pid}").exists()
