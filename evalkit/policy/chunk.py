"""Checking and cutting of action chunks: the boundary between a policy and the robot."""

from __future__ import annotations

from typing import Any

import numpy as np

from evalkit.core.errors import PolicyError
from evalkit.policy.contract import ACTION_DIMS, ActionChunk, PolicySpec

GRIPPER_COLUMNS = {"qpos": (6, 13), "ee": (7, 15)}
GRIPPER_TOLERANCE = 0.01
"""Commands this far outside [0, 1] are taken; RoboTwin clips them."""


def check_chunk(chunk: Any, spec: PolicySpec) -> ActionChunk:
    """The chunk as float64 (steps, dimension), or an error that says what is off.

    Args:
        chunk: whatever the policy returned; anything ``numpy.asarray`` turns into a (steps, dimension) array.
        spec: the policy's declaration.

    Raises:
        PolicyError: kind ``action_shape``, ``action_nonfinite`` or ``action_gripper_range``.
    """
    dimension = ACTION_DIMS[spec.action_type]
    try:
        actions = np.asarray(chunk, dtype=np.float64)
    except (TypeError, ValueError) as error:
        what = f"policy {spec.name} returned {type(chunk).__name__}, not an array: {error}"
        raise PolicyError("action_shape", what) from error
    if actions.ndim != 2 or actions.shape[1] != dimension or not 1 <= actions.shape[0] <= spec.chunk_steps:
        raise PolicyError(
            "action_shape",
            f"policy {spec.name} returned actions of shape {actions.shape}; "
            f"{spec.action_type} actions are (1 to {spec.chunk_steps}, {dimension})",
        )
    bad = np.argwhere(~np.isfinite(actions))
    if bad.size:
        row, column = (int(i) for i in bad[0])
        raise PolicyError(
            "action_nonfinite",
            f"policy {spec.name} returned {actions[row, column]} at chunk row {row}, dimension {column}",
        )
    for column in GRIPPER_COLUMNS[spec.action_type]:
        values = actions[:, column]
        worst = float(values[np.argmax(np.abs(values - 0.5))])
        if not -GRIPPER_TOLERANCE <= worst <= 1 + GRIPPER_TOLERANCE:
            outside = float((np.abs(values - 0.5) > 0.5 + GRIPPER_TOLERANCE).mean())
            raise PolicyError(
                "action_gripper_range",
                f"policy {spec.name} commanded gripper {worst:.4g} (dimension {column}, {outside:.0%} of this chunk's "
                "out of range); the range is 0 (closed) to 1 (open)",
            )
    return actions
