"""Writing that survives a kill: atomic replacement and append-only JSON lines with a tolerated torn tail."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evalkit.core.errors import StorageError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of a disk, not of a program."""


def write_atomic(path: Path, data: bytes | str) -> None:
    """Replace ``path`` by ``data`` in one step: readers see the old file or the new one, never half."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(data.encode() if isinstance(data, str) else data)


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; on success fsync it and rename it to ``path``.

    Raises:
        StorageError: the disk doesn't take it; ``path`` is what it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, path)
        _fsync_folder(path.parent)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise _storage_error(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as indented JSON, atomically."""
    write_atomic(path, json.dumps(value, indent=1, sort_keys=False, allow_nan=False) + "\n")


class JsonLinesWriter:
    """Append JSON objects, one a line, each on disk before ``append`` returns. One writer a file.

    A torn last line left by a killed writer is cut off when the file is opened. A line that the disk takes only half
    of is taken back: the file then holds what it held before.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        _cut_torn_tail(path)
        self._path = path
        self._descriptor: int | None = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def append(self, value: Any) -> None:
        """Write one object and force it to disk.

        Raises:
            StorageError: the disk doesn't take it, and the file is what it was.
        """
        if self._descriptor is None:
            raise ValueError(f"{self._path} is closed")
        line = json.dumps(value, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        before = os.fstat(self._descriptor).st_size
        try:
            written = 0
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
            os.fsync(self._descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):  # else the torn line is cut off by the next writer
                os.ftruncate(self._descriptor, before)
            raise _storage_error(self._path, error) from error

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def read_json_lines(path: Path) -> list[Any]:
    """All complete lines of ``path``; a torn last line is left out; a missing file is empty.

    Raises:
        ValueError: a line other than the last isn't JSON; names the file and line.
    """
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    complete, tail = lines[:-1], lines[-1]
    values = []
    for number, line in enumerate(complete, start=1):
        try:
            values.append(json.loads(line))
        except ValueError as error:
            if number == len(complete) and not tail:
                continue
            raise ValueError(f"{path}, line {number} isn't JSON: {error}") from error
    return values


def _cut_torn_tail(path: Path) -> None:
    if not path.exists():
        return
    data = path.read_bytes()
    keep = data.rfind(b"\n") + 1
    if keep < len(data):
        os.truncate(path, keep)


def _fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _storage_error(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"the disk doesn't take {path}: {error.strerror}. What was written before is safe: make room, then the same "
        "command goes on"
    )
