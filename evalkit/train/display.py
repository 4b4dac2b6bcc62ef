"""Progress of a training run on a terminal."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from evalkit.train.loop import Progress as TrainProgress

_TITLES = {"frames": "decoding episodes", "train": "training"}


class Display:
    """One bar for decoding, one for training; a context manager."""

    def __init__(self, console: Console) -> None:
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Display:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def show(self, progress: TrainProgress) -> None:
        """Move the bar of the progress's phase."""
        if progress.phase not in self._tasks:
            title = _TITLES[progress.phase]
            self._tasks[progress.phase] = self._bars.add_task(title, total=progress.total, note="")
        note = ""
        if progress.loss is not None and progress.seconds_per_step is not None:
            note = f"loss {progress.loss:.4f}, {1 / progress.seconds_per_step:.1f} steps/s"
        self._bars.update(self._tasks[progress.phase], completed=progress.done, note=note)
