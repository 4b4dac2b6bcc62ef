"""One writer per file: an advisory lock that ends with its process, however the process ends."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path


class FileLock:
    """``flock`` on a file made for the purpose.

    File systems without locks (some network mounts) let everyone in; ``evalkit.core.lease`` looks further.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self.is_held = False
        """Whether the file system really locked it."""

    def acquire(self) -> bool:
        """Take the lock; False if someone else holds it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.is_held = True
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                os.close(descriptor)
                raise
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Give the lock back; does nothing if it isn't held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor, self.is_held = None, False
