"""Pictures of all training samples as one uint8 array: decoded and resized once, kept in a file for a restart."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evalkit.core.errors import UserError
from evalkit.core.files import atomic_path
from evalkit.core.hashing import digest
from evalkit.data.episode_file import read_episode
from evalkit.data.index import EpisodeRef
from evalkit.train.recipe import DataRequest

Progress = Callable[[int, int], None]
"""(episodes done, episodes in all)."""


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
        array = np.empty(shape, np.uint8)
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
    """Decode all episodes into their rows; decoding and resizing release the GIL, so threads are enough."""

    def fill_episode(ref: EpisodeRef, row: int) -> None:
        episode = read_episode(ref.path, request.cameras)
        for offset, frame in enumerate(sample_frames(ref.frames, stride)):
            for column, camera in enumerate(request.cameras):
                array[row + offset, column] = request.prepare_image(episode.image(camera, frame))

    starts = np.cumsum([0, *(len(sample_frames(ref.frames, stride)) for ref in refs)])
    with ThreadPoolExecutor(max_workers=min(32, os.cpu_count() or 1)) as pool:
        jobs = [pool.submit(fill_episode, ref, int(start)) for ref, start in zip(refs, starts, strict=False)]
        try:
            for done, job in enumerate(as_completed(jobs), start=1):
                job.result()
                progress(done, len(jobs))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _require_space(folder: Path, needed_bytes: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    if free < needed_bytes:
        raise UserError(
            f"{folder} has {free / 1e9:.1f} GB free, the decoded pictures take {needed_bytes / 1e9:.1f} GB: "
            "set data.cache_frames to false or choose another --out"
        )
