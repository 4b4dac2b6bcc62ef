"""Progress of ``evalkit collect`` on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from evalkit.data.collect import Collection


class CollectProgress:
    """One bar over all tasks' episodes, and a line for each task that ends.

    Args:
        collections: what is being collected.
        console: where to draw.
    """

    def __init__(self, collections: Sequence[Collection], console: Console) -> None:
        self._collections = collections
        self._reported: set[str] = set()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("episodes, {task.fields[rejected]} seeds rejected"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
        )
        total = sum(collection.target for collection in collections)
        self._bar = self._progress.add_task("collect", total=total, rejected=0)

    def __enter__(self) -> CollectProgress:
        self._progress.start()
        self._draw("collect")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()

    def update(self, collection: Collection) -> None:
        """Show that a seed of a collection was settled."""
        name = collection.dataset.task
        self._draw(name)
        if name in self._reported:
            return
        if collection.stopped:
            self._reported.add(name)
            self._say(f"{name}: stopped at {collection.accepted} episodes: {collection.stopped}")
        elif collection.is_complete:
            self._reported.add(name)
            self._say(
                f"{name}: {collection.accepted} episodes from {collection.tried} seeds in {collection.dataset.path}"
            )

    def _say(self, line: str) -> None:
        self._progress.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _draw(self, description: str) -> None:
        done = sum(min(collection.accepted, collection.target) for collection in self._collections)
        rejected = sum(collection.tried - collection.accepted for collection in self._collections)
        self._progress.update(self._bar, completed=done, description=description, rejected=rejected)
