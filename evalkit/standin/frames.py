"""Grasp frames and functional points, in the convention RoboTwin reads.

A grasp is said in words that can be checked by eye: where, from which direction, which way the fingers close.
RoboTwin's contact frame relates to its gripper frame by: gripper x = -frame y, gripper y = -frame z, gripper z =
frame x. A functional point that is used by its number has its z axis pointing down when the object stands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evalkit.standin.meshes import Vector

Matrix = list[list[float]]
UP: Vector = (0.0, 1.0, 0.0)
DOWN: Vector = (0.0, -1.0, 0.0)
X: Vector = (1.0, 0.0, 0.0)
Z: Vector = (0.0, 0.0, 1.0)


def grasp(at_m: Vector, approach: Vector, fingers: Vector) -> Matrix:
    """A contact frame, (4, 4).

    Args:
        at_m: where the point between the fingers, 12 cm ahead of the wrist, shall be.
        approach: direction the gripper moves in to grasp.
        fingers: direction from one finger to the other, at right angles to ``approach``.
    """
    a, f = _unit(approach), _unit(fingers)
    return _matrix([np.cross(a, f), -a, -f], at_m)


def point(at_m: Vector, z: Vector = DOWN, x: Vector = X) -> Matrix:
    """A functional point, (4, 4), given by its z and x axes."""
    z_axis, x_axis = _unit(z), _unit(x)
    return _matrix([x_axis, np.cross(z_axis, x_axis), z_axis], at_m)


def from_above(height_m: float, axes: Sequence[Vector], x: float = 0.0, z: float = 0.0) -> list[Matrix]:
    """Top-down grasps at one height, for each finger axis in both senses."""
    return [grasp((x, height_m, z), DOWN, _scaled(axis, sign)) for axis in axes for sign in (1, -1)]


def around(height_m: float, count: int = 8, offset_m: float = 0.0) -> list[Matrix]:
    """Grasps at right angles to the y axis from ``count`` sides, in both senses of the fingers.

    Args:
        height_m: along the y axis.
        count: number of sides.
        offset_m: how far the grasp point stays away from the axis, toward the gripper.
    """
    frames = []
    for k in range(count):
        angle = 2 * math.pi * k / count
        outward: Vector = (math.cos(angle), 0.0, math.sin(angle))
        sideways: Vector = (math.sin(angle), 0.0, -math.cos(angle))
        at = (outward[0] * offset_m, height_m, outward[2] * offset_m)
        frames += [grasp(at, _scaled(outward, -1), _scaled(sideways, sign)) for sign in (1, -1)]
    return frames


def _scaled(v: Vector, factor: float) -> Vector:
    return (v[0] * factor, v[1] * factor, v[2] * factor)


def _unit(v: Vector) -> NDArray[np.float64]:
    array = np.asarray(v, np.float64)
    return array / np.linalg.norm(array)


def _matrix(columns: Sequence[NDArray[np.float64]], at_m: Vector) -> Matrix:
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = np.stack(columns, 1), at_m
    rows: Matrix = (matrix.round(9) + 0.0).tolist()
    return rows
