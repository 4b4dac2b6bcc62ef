"""What a file that should be HDF5 really is: the faults of downloads, disks and killed writers, told apart."""

from __future__ import annotations

import errno
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py

from evalkit.core.errors import UserError

_LFS = b"version https://git-lfs.github.com/spec/"
_BLOCK_BYTES = 1 << 20


class EpisodeFileError(UserError):
    """An episode file that can't be used.

    Args:
        path: the file.
        kind: short machine-readable kind, e.g. ``"truncated"``, ``"missing_dataset"``, ``"frame_count"``.
        detail: what was found and what was expected.
    """

    def __init__(self, path: Path, kind: str, detail: str) -> None:
        super().__init__(f"{path}: {detail}")
        self.path, self.kind, self.detail = path, kind, detail

    def __reduce__(self) -> tuple[object, ...]:
        return EpisodeFileError, (self.path, self.kind, self.detail)


@contextmanager
def open_episode(path: Path) -> Iterator[h5py.File]:
    """Open an HDF5 file for reading.

    The handle belongs to the ``with`` block: handles kept over a fork or shared by processes give wrong data.

    Raises:
        EpisodeFileError: the file can't be opened (says what it is instead), or a read in the block failed.
    """
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise _explain(path, error) from error
    with file:
        try:
            yield file
        except Exception as error:
            # Damaged structures make h5py raise almost any type: what counts is who raised.
            if not _is_raised_by_h5py(error):
                raise
            raise EpisodeFileError(path, "damaged", f"HDF5 can't read its content: {error}") from error


def _is_raised_by_h5py(error: Exception) -> bool:
    *_, (frame, _line) = traceback.walk_tb(error.__traceback__)
    return "h5py" in Path(frame.f_code.co_filename).parts


def _explain(path: Path, error: OSError) -> EpisodeFileError:
    """Name the reason why HDF5 refused a file."""
    if isinstance(error, FileNotFoundError) or not path.exists():
        return EpisodeFileError(path, "missing_file", "no such file")
    if isinstance(error, PermissionError):
        return EpisodeFileError(path, "unreadable", "no permission to read the file")
    if error.errno == errno.EAGAIN:
        advice = "wait for it to end, or set HDF5_USE_FILE_LOCKING=FALSE if the data is only read"
        return EpisodeFileError(path, "locked", f"another process is writing the file: {advice}")
    if not path.is_file():
        return EpisodeFileError(path, "not_a_file", "not a regular file")
    size_bytes = path.stat().st_size
    if size_bytes == 0:
        return EpisodeFileError(path, "empty", "empty file (0 bytes)")
    with path.open("rb") as stream:
        head = stream.read(512)
    if head.startswith(_LFS):
        return EpisodeFileError(path, "lfs_pointer", "a git-LFS pointer, not the data: run git lfs pull")
    if head.lstrip().lower().startswith((b"<!doctype html", b"<html", b"<?xml")):
        return EpisodeFileError(path, "html", "a web page, not the data: the download address was wrong")
    if not any(head) and _is_zero_filled(path):
        return EpisodeFileError(path, "zero_filled", f"all {size_bytes} bytes are zero")
    text = str(error)
    if "truncated file" in text:
        return EpisodeFileError(path, "truncated", f"truncated HDF5 file of {size_bytes} bytes ({text})")
    if "signature not found" in text:
        return EpisodeFileError(path, "not_hdf5", f"not an HDF5 file: starts with {head[:8].hex(' ')}")
    return EpisodeFileError(path, "damaged", f"HDF5 can't open it: {text}")


def _is_zero_filled(path: Path) -> bool:
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK_BYTES):
            if any(block):
                return False
    return True
