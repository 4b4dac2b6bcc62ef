"""What is looked at in a policy's actions: ranges, columns that never move, copies of the state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalkit.core.trial import ActionType
from evalkit.policy.chunk import GRIPPER_COLUMNS, GRIPPER_TOLERANCE
from evalkit.policy.contract import ActionChunk, Observation, PolicySpec

JOINT_LIMIT_RAD = 10.0
"""What RoboTwin's description of its robot allows each joint of an arm; demonstrations stay within about pi."""
TURN_LIMIT_RAD = 1.0
"""A joint further than this from where it is, at the first action, is unusual: demonstrations start close by."""
MOVE_LIMIT_M = 0.2
"""The same for the position of a hand."""
HARDLY_OPEN = 0.1
"""Share of a gripper's way that a policy in another unit (0.04 m is RoboTwin's 1) doesn't get beyond."""
OPEN = 0.5
COPY = 1e-9
_PLACES = [0, 1, 2, 8, 9, 10]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    note: bool = False
    """It may be meant so, or not: worth a look, no reason to wait."""


def arm_columns(action_type: ActionType) -> list[int]:
    """Columns of an action that are no gripper."""
    width = 14 if action_type == "qpos" else 16
    return [column for column in range(width) if column not in GRIPPER_COLUMNS[action_type]]


def ranges(spec: PolicySpec, rows: Sequence[Observation], chunks: Sequence[ActionChunk]) -> list[Finding]:
    """Arms within the robot's limits, grippers within 0 to 1, quaternions of length 1."""
    actions = np.concatenate(list(chunks))
    found = [_joints(actions)] if spec.action_type == "qpos" else [_quaternions(actions)]
    return [*found, _grippers(spec, rows, actions)]


def motion(spec: PolicySpec, rows: Sequence[Observation], chunks: Sequence[ActionChunk]) -> list[Finding]:
    """Does the policy look at what it sees, and do anything?"""
    held = [row.state if spec.action_type == "qpos" else row.endpose for row in rows]
    copies = [
        state is not None and bool((np.abs(chunk - state) <= COPY).all())
        for chunk, state in zip(chunks, held, strict=True)
    ]
    if all(copies):
        what = "every action is the state it was shown: it holds still, or its answer isn't its actions"
        return [Finding(name="motion", ok=True, note=True, detail=what)]
    if len(chunks) > 1 and all(np.array_equal(chunks[0], chunk) for chunk in chunks[1:]):
        what = f"the same actions for {len(chunks)} different observations: what it is sent doesn't reach it"
        return [Finding(name="motion", ok=False, detail=what)]
    actions = np.concatenate(list(chunks))
    still = [column for column in range(actions.shape[1]) if np.ptp(actions[:, column]) == 0]
    if still:
        names = ", ".join(map(str, still))
        what = f"action dimension {names} never moves: wrong statistics, a wrong order, or a hand that it never uses"
        return [Finding(name="motion", ok=True, note=True, detail=what)]
    return [Finding(name="motion", ok=True, detail="follows what it sees, in every dimension")]


def starts_nearby(spec: PolicySpec, rows: Sequence[Observation], chunks: Sequence[ActionChunk]) -> Finding:
    """The first action of a policy that imitates stays near the state; far off, its representation is mixed up."""
    arms = arm_columns("qpos")
    if spec.action_type == "qpos":
        far = [float(np.abs(chunk[0] - row.state)[arms].max()) for row, chunk in zip(rows, chunks, strict=True)]
    else:
        far = [
            float(np.abs(chunk[0] - row.endpose)[_PLACES].max())
            for row, chunk in zip(rows, chunks, strict=True)
            if row.endpose is not None
        ]
    unit, limit = ("rad", TURN_LIMIT_RAD) if spec.action_type == "qpos" else ("m", MOVE_LIMIT_M)
    median = float(np.median(far))
    remedy = "" if median <= limit else ": absolute targets, in this order, frame and unit? whose statistics?"
    return Finding(
        name="first action", ok=median <= limit, detail=f"median distance from the state {median:.3g} {unit}{remedy}"
    )


def _joints(rows: ActionChunk) -> Finding:
    arms = np.abs(rows[:, arm_columns("qpos")])
    worst = float(arms.max())
    ok = worst <= JOINT_LIMIT_RAD
    remedy = "" if ok else f", beyond the robot's {JOINT_LIMIT_RAD:g}: degrees? (joints: degrees in the profile)"
    return Finding(name="arms", ok=ok, detail=f"joints up to {worst:.3g} rad from zero{remedy}")


def _grippers(spec: PolicySpec, rows: Sequence[Observation], actions: ActionChunk) -> Finding:
    values = actions[:, list(GRIPPER_COLUMNS[spec.action_type])]
    low, high = float(values.min()), float(values.max())
    outside = float(((values < -GRIPPER_TOLERANCE) | (values > 1 + GRIPPER_TOLERANCE)).mean())
    remedy = ""
    if outside:
        what = "RoboTwin's go from 0 (closed) to 1 (open)"
        remedy = f", {outside:.0%} of them out of range: {what}; add a gripper step to the profile"
    shut = not outside and hardly_open(max(widest_gripper(row.state, "qpos") for row in rows), high)
    if shut:
        remedy = ", hardly open where they were open: another unit (metres)? add a gripper step to the profile"
    return Finding(name="grippers", ok=not outside, note=shut, detail=f"from {low + 0:.3g} to {high:.3g}{remedy}")


def widest_gripper(rows: NDArray[np.float64], action_type: ActionType) -> float:
    """The widest that a gripper is in a state (14,) or actions (steps, 14 or 16)."""
    return float(rows[..., list(GRIPPER_COLUMNS[action_type])].max())


def hardly_open(seen: float, commanded: float) -> bool:
    """Whether grippers that were open were never commanded to be: in another unit, they stay nearly closed.

    Args:
        seen: the widest that one was.
        commanded: the widest that one was commanded to be.
    """
    return seen > OPEN and commanded < HARDLY_OPEN


def _quaternions(rows: ActionChunk) -> Finding:
    norms = np.concatenate([np.linalg.norm(rows[:, start : start + 4], axis=1) for start in (3, 11)])
    worst = float(np.abs(norms - 1).max())
    remedy = "" if worst < 1e-3 else ": other numbers than a quaternion's are there (order, 6-D rotation, statistics?)"
    return Finding(name="quaternions", ok=worst < 1e-3, detail=f"norms differ from 1 by at most {worst:.2g}{remedy}")
