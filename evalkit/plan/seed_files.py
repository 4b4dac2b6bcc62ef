"""Where accepted seeds are kept: lists that travel with evalkit, and the local files that go on from them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from evalkit.core.errors import UserError
from evalkit.core.files import JsonLinesWriter, read_json_lines
from evalkit.core.locations import bundled
from evalkit.core.lock import FileLock
from evalkit.plan.seeds import SeedEntry


def local_folder() -> Path:
    """Default folder of the local files."""
    return Path("results/seeds")


def read_entries(root: Path, physics_digest: str, task: str, config: str) -> list[SeedEntry]:
    """All entries of a list under ``root``, whatever their configuration digest; empty if there is no file.

    Raises:
        UserError: a file can't be read.
    """
    path = _path(root, physics_digest, task, config)
    try:
        return [SeedEntry.from_json(values) for values in read_json_lines(path)]
    except (ValueError, TypeError) as error:
        raise UserError(f"seed list {path} can't be read: {error}") from error


def bundled_folder() -> Path:
    """Folder of the lists that travel with evalkit."""
    return bundled("task_configs") / "seeds"


class SeedFiles:
    """Reads both kinds of files. As a context manager also appends to the local ones; other writers wait meanwhile.

    Args:
        root: folder of the local files.
        physics_digest: names the backend the lists belong to.
        travelling: folder of read-only lists, consulted first.
        on_wait: called about once a second while another writer is waited for.
    """

    def __init__(
        self,
        root: Path,
        physics_digest: str,
        travelling: Path | None = None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        self._root, self._physics_digest, self._on_wait = root, physics_digest, on_wait
        self._travelling = travelling if travelling is not None else bundled_folder()
        self._lock = FileLock(root / physics_digest / ".writer.lock")
        self._writers: dict[tuple[str, str], JsonLinesWriter] = {}

    def __enter__(self) -> SeedFiles:
        while not self._lock.acquire():
            self._on_wait()
            time.sleep(1.0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
        self._lock.release()

    def read(self, task: str, config: str, folder: str = "") -> list[SeedEntry]:
        """Entries of both files; where both know a seed, the travelling list counts.

        Args:
            task: RoboTwin's task.
            config: name of the configuration.
            folder: keeps lists made by another rule apart (``evalkit.protocol.variant.SeedRule.folder``).
        """
        backend = f"{self._physics_digest}/{folder}" if folder else self._physics_digest
        return [entry for root in (self._root, self._travelling) for entry in read_entries(root, backend, task, config)]

    def append(self, task: str, config: str, entry: SeedEntry, folder: str = "") -> None:
        """Add an entry to the local file; it is on disk when this returns. Only inside the ``with`` block."""
        backend = f"{self._physics_digest}/{folder}" if folder else self._physics_digest
        key = backend, f"{task}.{config}"
        if key not in self._writers:
            self._writers[key] = JsonLinesWriter(_path(self._root, backend, task, config))
        self._writers[key].append(entry.to_json())


def _path(root: Path, physics_digest: str, task: str, config: str) -> Path:
    return root / physics_digest / f"{task}.{config}.jsonl"
