"""Checks of one episode file alone: container, schema, numbers, images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import h5py
import numpy as np

from evalkit.core.hashing import digest, file_digest
from evalkit.data.container import EpisodeFileError, open_episode
from evalkit.data.jpeg import ImageDecodeError, decode_rgb
from evalkit.data.schema import ROW_SHAPES, STATE, camera_names, schema_faults

FLAT_IMAGE_STD = 1.0
"""Pictures whose grey values (0 to 255) vary less than this show nothing."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong."""

    path: Path
    kind: str
    """Machine-readable, e.g. ``"truncated"``, ``"missing_dataset"``, ``"hole"``."""
    message: str
    severity: Literal["error", "warning"] = "error"


@dataclass(frozen=True, kw_only=True)
class FileReport:
    """What one episode file looks like."""

    path: Path
    findings: tuple[Finding, ...]
    frames: int | None = None
    seed: int | None = None
    """Seed the file's own attributes name."""
    trajectory: str | None = None
    """Digest of the states: equal trajectories are the same demonstration."""
    sha256: str | None = None
    """Only computed when all images are checked."""


def check_file(path: Path, *, full: bool = False) -> FileReport:
    """Look at one episode file: container, schema, numbers, images."""
    try:
        with open_episode(path) as file:
            findings = [_finding(fault) for fault in schema_faults(file, path)]
            if not findings:
                findings += _disagreement_findings(file, path)
            findings += _number_findings(file, path)
            findings += _image_findings(file, path, full=full)
            state = file.get(STATE)
            readable = isinstance(state, h5py.Dataset) and state.ndim == 2
            return FileReport(
                path=path,
                findings=tuple(findings),
                frames=int(state.shape[0]) if readable else None,
                seed=int(file.attrs["seed"]) if "seed" in file.attrs else None,
                trajectory=digest(np.asarray(state).tobytes().hex()) if readable else None,
                sha256=file_digest(path) if full else None,
            )
    except EpisodeFileError as fault:
        return FileReport(path=path, findings=(_finding(fault),))


def _number_findings(file: h5py.File, path: Path) -> Iterator[Finding]:
    for name in ROW_SHAPES:
        dataset = file.get(name)
        if not isinstance(dataset, h5py.Dataset) or dataset.dtype.kind != "f" or not dataset.size:
            continue
        values = np.asarray(dataset, dtype=np.float64).reshape(dataset.shape[0], -1)
        bad_rows = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if bad_rows.size:
            message = f"/{name} has NaN or infinity in {bad_rows.size} frames, first in frame {bad_rows[0]}"
            yield Finding(path=path, kind="nonfinite", message=message)


def _disagreement_findings(file: h5py.File, path: Path) -> Iterator[Finding]:
    """``vector`` holds the four other joint datasets side by side. For files whose schema is right."""
    names = [f"joint_action/{side}_{part}" for side in ("left", "right") for part in ("arm", "gripper")]
    parts = np.column_stack([np.asarray(file[name]) for name in names])
    if not np.array_equal(parts, np.asarray(file[STATE]), equal_nan=True):
        message = f"/{STATE} isn't left_arm, left_gripper, right_arm, right_gripper side by side"
        yield Finding(path=path, kind="state_disagrees", message=message)


def _image_findings(file: h5py.File, path: Path, *, full: bool) -> Iterator[Finding]:
    for camera in camera_names(file):
        images = file[f"observation/{camera}/rgb"]
        if not isinstance(images, h5py.Dataset) or images.ndim != 1 or images.dtype.kind != "S" or not len(images):
            continue
        frames = range(len(images)) if full else sorted({0, len(images) // 2, len(images) - 1})
        faults = list(_camera_faults(images, frames))
        if faults:
            first_frame, kind, message = faults[0]
            more = f" (and {len(faults) - 1} more of {len(frames)} frames checked)" if len(faults) > 1 else ""
            yield Finding(path=path, kind=kind, message=f"{camera}, frame {first_frame}: {message}{more}")


def _camera_faults(images: h5py.Dataset, frames: Iterable[int]) -> Iterator[tuple[int, str, str]]:
    """(frame, kind, message) of the frames that don't decode, show nothing, or have another size than the first."""
    size: tuple[int, ...] | None = None
    for frame in frames:
        try:
            pixels = decode_rgb(images[frame])
        except ImageDecodeError as error:
            yield frame, "image", str(error)
            continue
        size = size or pixels.shape
        if pixels.shape != size:
            yield frame, "image_size", f"image of shape {pixels.shape}, earlier frames have {size}"
        elif pixels.std() < FLAT_IMAGE_STD:
            look = "black" if pixels.max() < 8 else "of one colour"
            yield frame, "flat_image", f"the picture is {look} (mean RGB {pixels.mean(axis=(0, 1)).round().tolist()})"


def _finding(fault: EpisodeFileError) -> Finding:
    return Finding(path=fault.path, kind=fault.kind, message=fault.detail)
