"""Video of a trial: one head camera frame per observation. A writer that fails never changes a trial."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CAMERA = "head_camera"
FRAMES_PER_S = 10
_log = logging.getLogger(__name__)


class TrialVideo:
    """An mp4 under construction. It appears under its name only when ``finish`` succeeds.

    Args:
        path: where the video will lie.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._temporary = path.with_name(f".{path.stem}.tmp-{os.getpid()}{path.suffix}")
        self._writer: Generator[None, bytes | None, None] | None = None
        self._failed = False

    def add(self, frame: NDArray[np.uint8]) -> None:
        """Append one (height, width, 3) RGB frame."""
        if self._failed:
            return
        try:
            if self._writer is None:
                self._writer = self._open(frame)
            self._writer.send(np.ascontiguousarray(frame).tobytes())
        except (OSError, RuntimeError, ValueError, StopIteration) as error:
            self._fail(error)

    def finish(self) -> Path | None:
        """Close the file and put it in its place; None if there is no video."""
        if self._failed or self._writer is None:
            return None
        try:
            self._writer.close()
            os.replace(self._temporary, self._path)
        except (OSError, RuntimeError) as error:
            self._fail(error)
            return None
        return self._path

    def discard(self) -> None:
        """End the encoder and remove an unfinished file; after ``finish`` there is none."""
        try:
            if self._writer is not None:
                self._writer.close()
            self._temporary.unlink(missing_ok=True)
        except (OSError, RuntimeError) as error:
            self._fail(error)

    def _open(self, frame: NDArray[np.uint8]) -> Generator[None, bytes | None, None]:
        import imageio_ffmpeg

        self._path.parent.mkdir(parents=True, exist_ok=True)
        height_px, width_px = frame.shape[:2]
        writer: Generator[None, bytes | None, None] = imageio_ffmpeg.write_frames(
            str(self._temporary), (width_px, height_px), fps=FRAMES_PER_S, codec="libx264", macro_block_size=2
        )
        writer.send(None)
        return writer

    def _fail(self, error: BaseException) -> None:
        self._failed = True
        _log.warning("no video %s: %s: %s", self._path, type(error).__name__, error)
