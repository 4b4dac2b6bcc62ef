"""Writing that survives a kill: atomic replacement and append-only JSON lines with a tolerated torn tail."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


def write_atomic(path: Path, data: bytes | str) -> None:
    """Replace ``path`` by ``data`` in one step: readers see the old file or the new one, never half."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(data.encode() if isinstance(data, str) else data)


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; on success fsync it and rename it to ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, path)
        _fsync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as indented JSON, atomically."""
    write_atomic(path, json.dumps(value, indent=1, sort_keys=False, allow_nan=False) + "\n")


class JsonLinesWriter:
    """Append JSON objects, one a line, each on disk before ``append`` returns. One writer a file.

    A torn last line left by a killed writer is cut off when the file is opened.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        _cut_torn_tail(path)
        self._stream: IO[bytes] = path.open("ab")

    def append(self, value: Any) -> None:
        """Write one object and force it to disk."""
        self._stream.write(json.dumps(value, separators=(",", ":"), allow_nan=False).encode() + b"\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


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
