"""Pictures of all training samples as one uint8 array: decoded and resized once, kept in a file for a restart."""

from __future__ import annotations

import mmap
import multiprocessing
import multiprocessing.queues
import os
import queue
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evalkit.core.errors import HarnessError, UserError
from evalkit.core.files import atomic_path
from evalkit.core.hashing import digest
from evalkit.data.episode_file import read_episode
from evalkit.data.index import EpisodeRef
from evalkit.train.recipe import DataRequest

Progress = Callable[[int, int], None]
"""(episodes done, episodes in all)."""
_MAX_PROCESSES = 32


def sample_frames(frames: int, stride: int) -> range:
    """Frames of an episode that start a training sample: the last one has no action after it."""
    return range(0, frames - 1, stride)


def load_frames(
    refs: Sequence[EpisodeRef],
    request: DataRequest,
    stride: int,
    *,
    data_digest: str,
    cache_folder: Path | None,
    progress: Progress,
) -> NDArray[np.uint8]:
    """Pictures of all samples, in episode and frame order.

    Args:
        refs: the episodes.
        request: cameras, size and resizing.
        stride: frames between samples.
        data_digest: digest of the episodes' contents, part of the cache's name.
        cache_folder: where to keep the array; None to keep it in memory only.
        progress: told after each episode.

    Returns:
        (samples, cameras, height, width, 3) uint8; a memory map if cached.

    Raises:
        EpisodeFileError: a picture can't be read; names file, camera and frame.
    """
    rows = sum(len(sample_frames(ref.frames, stride)) for ref in refs)
    shape = (rows, len(request.cameras), request.height_px, request.width_px, 3)
    if cache_folder is None:
        array = np.ndarray(shape, np.uint8, mmap.mmap(-1, max(1, int(np.prod(shape)))))
        _fill(array, refs, request, stride, progress)
        return array
    identity = [data_digest, request.cameras, shape, stride, request.prepare_image_name]
    path = cache_folder / f"frames-{digest(identity)[:16]}.npy"
    if not path.exists():
        _require_space(cache_folder, int(np.prod(shape)))
        with atomic_path(path) as temporary:
            mapped = np.lib.format.open_memmap(temporary, mode="w+", dtype=np.uint8, shape=shape)
            _fill(mapped, refs, request, stride, progress)
            mapped.flush()
            del mapped
    kept: NDArray[np.uint8] = np.load(path, mmap_mode="c")
    if kept.shape != shape or kept.dtype != np.uint8:
        raise UserError(f"{path} holds {kept.dtype} {kept.shape}, expected uint8 {shape}: delete it")
    return kept


def _fill(
    array: NDArray[np.uint8], refs: Sequence[EpisodeRef], request: DataRequest, stride: int, progress: Progress
) -> None:
    """Decode all episodes into their rows of shared memory, in forked processes.

    Measured on 16 cores: threads reached two cores, since HDF5 and numpy hold the interpreter's lock between the
    decodings. Forking also spares pickling the adapter's function, which can't be.
    """
    starts = np.cumsum([0, *(len(sample_frames(ref.frames, stride)) for ref in refs)])
    processes = min(os.cpu_count() or 1, len(refs), _MAX_PROCESSES)
    context = multiprocessing.get_context("fork")
    messages: multiprocessing.queues.Queue[tuple[int, Exception | None]] = context.Queue()

    def fill_share(first: int) -> None:
        for index in range(first, len(refs), processes):
            try:
                episode = read_episode(refs[index].path, request.cameras)
                for offset, frame in enumerate(sample_frames(refs[index].frames, stride)):
                    for column, camera in enumerate(request.cameras):
                        array[starts[index] + offset, column] = request.prepare_image(episode.image(camera, frame))
            except Exception as error:
                messages.put((index, error))
                return
            messages.put((index, None))

    workers = [context.Process(target=fill_share, args=(first,), daemon=True) for first in range(processes)]
    for worker in workers:
        worker.start()
    try:
        for done in range(1, len(refs) + 1):
            _, error = _next_message(messages, workers)
            if error is not None:
                raise error
            progress(done, len(refs))
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


def _next_message(
    messages: multiprocessing.queues.Queue[tuple[int, Exception | None]], workers: Sequence[BaseProcess]
) -> tuple[int, Exception | None]:
    """Wait for a worker's message; a worker that was killed says nothing, so look at them now and then."""
    while True:
        try:
            return messages.get(timeout=5.0)
        except queue.Empty:
            dead = [worker for worker in workers if worker.exitcode not in (None, 0)]
            if dead:
                raise HarnessError(f"a decoding process ended with exit code {dead[0].exitcode}") from None


def _require_space(folder: Path, needed_bytes: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    if free < needed_bytes:
        raise UserError(
            f"{folder} has {free / 1e9:.1f} GB free, the decoded pictures take {needed_bytes / 1e9:.1f} GB: "
            "set data.cache_frames to false or choose another --out"
        )
