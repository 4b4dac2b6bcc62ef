"""Datasets of an episode file in RoboTwin's raw layout, and the check of a file against them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import h5py

from evalkit.data.container import EpisodeFileError

STATE = "joint_action/vector"
"""(T, 14): left arm 6, left gripper, right arm 6, right gripper; its length is the number of frames."""

ROW_SHAPES: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        STATE: (14,),
        "joint_action/left_arm": (6,),
        "joint_action/left_gripper": (),
        "joint_action/right_arm": (6,),
        "joint_action/right_gripper": (),
        "endpose/left_endpose": (7,),
        "endpose/left_gripper": (),
        "endpose/right_endpose": (7,),
        "endpose/right_gripper": (),
    }
)
"""Required dataset → shape of one frame's entry."""

CAMERA_ROW_SHAPES: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {"intrinsic_cv": (3, 3), "extrinsic_cv": (3, 4), "cam2world_gl": (4, 4)}
)
"""Optional dataset of a camera → shape of one frame's entry."""


def camera_names(file: h5py.File) -> tuple[str, ...]:
    """Cameras whose images the file holds, in name order."""
    group = file.get("observation")
    if not isinstance(group, h5py.Group):
        return ()
    return tuple(sorted(name for name in group if f"{name}/rgb" in group))


def check_schema(file: h5py.File, path: Path) -> None:
    """Raise the first fault of ``schema_faults``, if there is one."""
    for fault in schema_faults(file, path):
        raise fault


def schema_faults(file: h5py.File, path: Path) -> Iterator[EpisodeFileError]:
    """Every dataset that is missing or has the wrong type, shape or number of frames.

    Args:
        file: the open file.
        path: its path, for messages.
    """
    state = _dataset(file, STATE)
    frames = state.shape[0] if state is not None and state.ndim else None
    rows = "T" if frames is None else str(frames)
    for name, row_shape in ROW_SHAPES.items():
        dataset = _dataset(file, name)
        if dataset is None:
            expected = _shape_text(rows, row_shape)
            yield EpisodeFileError(path, "missing_dataset", f"no dataset /{name}, expected {expected} float64")
        else:
            yield from _numbers_faults(path, name, dataset, frames, row_shape)
    if frames is not None and frames < 2:
        yield EpisodeFileError(path, "too_short", f"/{STATE} has {frames} frames, expected at least 2")
    cameras = camera_names(file)
    if not cameras:
        yield EpisodeFileError(
            path, "missing_dataset", f"no dataset /observation/<camera>/rgb, expected ({rows},) JPEG bytes of a camera"
        )
    for camera in cameras:
        yield from _camera_faults(path, file, camera, frames)
    points = _dataset(file, "pointcloud")
    if points is not None and frames is not None and (not points.ndim or points.shape[0] != frames):
        yield _frame_count_fault(path, "pointcloud", points, frames)


def _camera_faults(path: Path, file: h5py.File, camera: str, frames: int | None) -> Iterator[EpisodeFileError]:
    name = f"observation/{camera}/rgb"
    images = _dataset(file, name)
    if images is None:
        yield EpisodeFileError(path, "wrong_type", f"/{name} is not a dataset, expected JPEG bytes per frame")
    elif images.ndim != 1 or images.dtype.kind != "S":
        found = f"{images.shape} {images.dtype}"
        yield EpisodeFileError(
            path, "wrong_type", f"/{name} is {found}, expected ({frames or 'T'},) fixed-length bytes (JPEG per frame)"
        )
    elif frames is not None and images.shape[0] != frames:
        yield _frame_count_fault(path, name, images, frames)
    for parameter, row_shape in CAMERA_ROW_SHAPES.items():
        name = f"observation/{camera}/{parameter}"
        dataset = _dataset(file, name)
        if dataset is not None:
            yield from _numbers_faults(path, name, dataset, frames, row_shape)


def _numbers_faults(
    path: Path, name: str, dataset: h5py.Dataset, frames: int | None, row_shape: tuple[int, ...]
) -> Iterator[EpisodeFileError]:
    if dataset.dtype.kind != "f":
        yield EpisodeFileError(path, "wrong_type", f"/{name} has dtype {dataset.dtype}, expected floating point")
    if dataset.ndim != 1 + len(row_shape) or dataset.shape[1:] != row_shape:
        expected = _shape_text(str(frames or "T"), row_shape)
        yield EpisodeFileError(path, "wrong_shape", f"/{name} is {dataset.shape}, expected {expected}")
    elif frames is not None and dataset.shape[0] != frames:
        yield _frame_count_fault(path, name, dataset, frames)


def _frame_count_fault(path: Path, name: str, dataset: h5py.Dataset, frames: int) -> EpisodeFileError:
    found = dataset.shape[0] if dataset.ndim else "no"
    return EpisodeFileError(
        path, "frame_count", f"/{name} has {found} frames, expected {frames} (the length of /{STATE})"
    )


def _dataset(file: h5py.File, name: str) -> h5py.Dataset | None:
    try:
        found = file[name]
    except KeyError:
        return None
    return found if isinstance(found, h5py.Dataset) else None


def _shape_text(rows: str, row_shape: tuple[int, ...]) -> str:
    return f"({rows}, {', '.join(map(str, row_shape))})" if row_shape else f"({rows},)"
