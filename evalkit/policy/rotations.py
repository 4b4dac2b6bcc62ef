"""Representations of a rotation, and the way from each to each.

``quaternion_wxyz`` and ``quaternion_xyzw`` are unit quaternions. ``rotation_6d_columns`` is the first two columns of
the rotation matrix, one after the other; ``rotation_6d_rows`` its first two rows. ``axis_angle`` is axis times angle in
rad. ``euler_xyz`` is roll, pitch, yaw in rad about the fixed x, y and z axes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from evalkit.core.errors import PolicyError

WIDTHS: Mapping[str, int] = {
    "quaternion_wxyz": 4,
    "quaternion_xyzw": 4,
    "rotation_6d_columns": 6,
    "rotation_6d_rows": 6,
    "axis_angle": 3,
    "euler_xyz": 3,
}
"""Representation → numbers it takes."""
LEAST_NORM = 1e-6
"""A quaternion or a 6-D column shorter than this names no rotation."""
Array = NDArray[np.float64]


def to_matrix(kind: str, values: Array) -> Array:
    """Rotation matrices of a representation.

    Args:
        kind: one of ``WIDTHS``.
        values: (..., width). Quaternions and 6-D values needn't be normalised: networks don't.

    Returns:
        (..., 3, 3)

    Raises:
        PolicyError: kind ``action_rotation``: the numbers name no rotation.
    """
    flat = np.asarray(values, np.float64).reshape(-1, WIDTHS[kind])
    return _TO_MATRIX[kind](flat).reshape(*values.shape[:-1], 3, 3)


def from_matrix(kind: str, matrices: Array) -> Array:
    """Inverse of ``to_matrix``; of a quaternion's two signs, the one with w ≥ 0.

    Args:
        kind: one of ``WIDTHS``.
        matrices: (..., 3, 3)

    Returns:
        (..., width)
    """
    flat = np.asarray(matrices, np.float64).reshape(-1, 3, 3)
    return _FROM_MATRIX[kind](flat).reshape(*matrices.shape[:-2], WIDTHS[kind])


def convert(source: str, target: str, values: Array) -> Array:
    """A rotation in another representation; the order of a quaternion's numbers changes without arithmetic."""
    if source == target:
        return values
    if (source, target) == ("quaternion_wxyz", "quaternion_xyzw"):
        return values[..., [1, 2, 3, 0]]
    if (source, target) == ("quaternion_xyzw", "quaternion_wxyz"):
        return values[..., [3, 0, 1, 2]]
    return from_matrix(target, to_matrix(source, values))


def one_sign(values: Array, robot: str) -> Array:
    """RoboTwin's vectors (steps, 14 or 16) with w >= 0: a quaternion and its negative are one rotation."""
    if robot != "ee":
        return values
    rows = values.reshape(-1, 8).copy()
    rows[:, 3:7] *= np.where(rows[:, 3:4] < 0, -1.0, 1.0)
    return rows.reshape(values.shape)


def _unit(vectors: Array, what: str) -> Array:
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    if not norms.size or float(norms.min()) >= LEAST_NORM:
        unit: Array = vectors / norms
        return unit
    worst = vectors[int(np.argmin(norms[:, 0]))]
    raise PolicyError("action_rotation", f"{what} {np.round(worst, 9).tolist()} is too short to name a rotation")


def _from_columns(values: Array) -> Array:
    first = _unit(values[:, :3], "first column")
    second = values[:, 3:] - (first * values[:, 3:]).sum(-1, keepdims=True) * first
    second = _unit(second, "second column")
    return np.stack([first, second, np.cross(first, second)], axis=-1)


_TO_MATRIX: Mapping[str, Callable[[Array], Array]] = {
    "quaternion_wxyz": lambda values: Rotation.from_quat(_unit(values[:, [1, 2, 3, 0]], "quaternion")).as_matrix(),
    "quaternion_xyzw": lambda values: Rotation.from_quat(_unit(values, "quaternion")).as_matrix(),
    "rotation_6d_columns": _from_columns,
    "rotation_6d_rows": lambda values: np.swapaxes(_from_columns(values), -1, -2),
    "axis_angle": lambda values: Rotation.from_rotvec(values).as_matrix(),
    "euler_xyz": lambda values: Rotation.from_euler("xyz", values).as_matrix(),
}
_FROM_MATRIX: Mapping[str, Callable[[Array], Array]] = {
    "quaternion_wxyz": lambda matrices: Rotation.from_matrix(matrices).as_quat(canonical=True)[:, [3, 0, 1, 2]],
    "quaternion_xyzw": lambda matrices: Rotation.from_matrix(matrices).as_quat(canonical=True),
    "rotation_6d_columns": lambda matrices: np.concatenate([matrices[:, :, 0], matrices[:, :, 1]], axis=-1),
    "rotation_6d_rows": lambda matrices: np.concatenate([matrices[:, 0], matrices[:, 1]], axis=-1),
    "axis_angle": lambda matrices: Rotation.from_matrix(matrices).as_rotvec(),
    "euler_xyz": lambda matrices: Rotation.from_matrix(matrices).as_euler("xyz"),
}
