"""A motion planner for the CPU, behind the interface of RoboTwin's ``CuroboPlanner``.

Inverse kinematics by damped least squares on the arm's URDF chain, then a smooth joint-space move, or a straight
line of the wrist for short moves. It avoids nothing, as RoboTwin's own planner avoids nothing with this robot, and
uses no random numbers: the same question gets the same answer.

This file is copied into the generated world and runs in RoboTwin's interpreter: numpy and the standard library only,
Python 3.8 or newer, nothing else of evalkit.
"""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

STEP_S = 1 / 250
"""RoboTwin's physics step: one trajectory sample each."""
LOWER_RAD = np.array([-3.0, -0.1, -0.1, -1.7, -1.7, -3.2])
UPPER_RAD = np.array([3.0, 3.6, 3.3, 1.7, 1.7, 3.2])
"""Working range of the arm's six joints; the URDF's own limits, 10 rad, say nothing about reach."""
SPEED_RAD_S, ACCELERATION_RAD_S2, SHORTEST_MOVE_S = 1.6, 3.0, 0.3
LINE_UP_TO_M, LINE_KNOTS, LINE_JUMP_RAD = 0.16, 12, 0.35
POSITION_TOLERANCE_M, ROTATION_TOLERANCE_RAD = 3e-4, 2e-3
ITERATIONS, PATIENCE = 80, 15
NEAR_RAD = 2.0
GRIPPER_STEPS = 200
# rows of joint angles from which the search starts beside the present pose, spread over elbow and wrist postures
_STARTS_RAD = np.array(
    [
        [0, 0, 0, 0, 0, 0],
        [0, 1.2, 1.0, 0.0, 0, 0],
        [0, 1.6, 1.6, -0.9, 0, 0],
        [0, 2.0, 1.8, 0.9, 0, 1.57],
        [0, 1.4, 1.2, 0.5, 0.8, -1.57],
        [0.5, 1.4, 1.4, 0, -0.8, 0],
        [-0.5, 1.4, 1.4, 0, 0.8, 0],
    ],
    dtype=np.float64,
)


class Chain:
    """Forward kinematics of one arm, for many joint vectors at once.

    Args:
        urdf_path: the robot's URDF.
        tip: link whose pose is asked for.
        base_in_world: (4, 4) pose of the URDF's root link.
        joint_names: the arm's joints from the shoulder outward.
    """

    def __init__(self, urdf_path: str, tip: str, base_in_world: Array, joint_names: Sequence[str]) -> None:
        by_child = {}
        for joint in ElementTree.parse(urdf_path).getroot().iter("joint"):
            child = joint.find("child")
            if child is not None:
                by_child[child.get("link")] = joint
        path = []
        link: str | None = tip
        while link in by_child:
            path.append(by_child[link])
            parent = by_child[link].find("parent")
            link = None if parent is None else parent.get("link")
        self.base = base_in_world
        self.offsets: list[Array] = []
        self.axes: list[Array] = []
        moving: list[str | None] = []
        fixed = np.eye(4)
        for joint in reversed(path):
            fixed = fixed @ _origin(joint)
            if joint.get("name") in joint_names:
                axis = _numbers(joint.find("axis"), "xyz", "1 0 0")
                self.offsets.append(fixed)
                self.axes.append(axis / np.linalg.norm(axis))
                moving.append(joint.get("name"))
                fixed = np.eye(4)
        self.tail = fixed
        if moving != list(joint_names):
            raise ValueError(f"{urdf_path}: joints on the way to {tip} are {moving}, expected {list(joint_names)}")

    def pose(self, q_rad: Array) -> Array:
        """Tip poses in the world, (B, 4, 4), of joint vectors (B, 6)."""
        return self._walk(q_rad)[0]

    def pose_and_jacobian(self, q_rad: Array) -> tuple[Array, Array]:
        """Tip poses (B, 4, 4) and Jacobians (B, 6, 6): rows are linear, then angular velocity in the world."""
        tip, origins, axes = self._walk(q_rad)
        jacobian = np.empty((len(q_rad), 6, len(self.axes)))
        for i, axis in enumerate(axes):
            jacobian[:, :3, i] = np.cross(axis, tip[:, :3, 3] - origins[i])
            jacobian[:, 3:, i] = axis
        return tip, jacobian

    def _walk(self, q_rad: Array) -> tuple[Array, list[Array], list[Array]]:
        transform = np.broadcast_to(self.base, (len(q_rad), 4, 4))
        origins, axes = [], []
        for i, axis in enumerate(self.axes):
            transform = transform @ self.offsets[i]
            origins.append(transform[:, :3, 3])
            axes.append(transform[:, :3, :3] @ axis)
            turn = np.zeros((len(q_rad), 4, 4))
            turn[:, :3, :3] = _turn(axis, q_rad[:, i])
            turn[:, 3, 3] = 1
            transform = transform @ turn
        return transform @ self.tail, origins, axes

    def out_of_reach(self, targets: Array) -> NDArray[np.bool_]:
        """Which poses (B, 4, 4) no joint vector can attain, by the lengths of the links alone; (B,) bool.

        The last two joints' offsets along the fifth axis cancel, so the point ``x6`` behind the tip lies within the
        fourth offset's distance from the fourth joint. A pose that passes may still be out of reach.
        """
        lengths = [float(np.linalg.norm(o[:3, 3])) for o in self.offsets]
        along = float(self.offsets[5][0, 3])
        forearm = float(np.hypot(self.offsets[4][0, 3], self.offsets[4][1, 3]))
        slack = abs(float(self.offsets[4][2, 3] + self.offsets[5][2, 3])) + abs(float(self.offsets[5][1, 3]))
        reach_m = lengths[1] + lengths[2] + lengths[3] + forearm + slack
        shoulder = (self.base @ self.offsets[0])[:3, 3]
        wrist = targets[:, :3, 3] - along * targets[:, :3, 0]
        far: NDArray[np.bool_] = np.linalg.norm(wrist - shoulder, axis=1) > reach_m
        return far


class StandInPlanner:
    """Plans for one arm; takes the place of the name ``CuroboPlanner`` in RoboTwin's robot module.

    Args:
        robot_origion_pose: pose of the robot's root in the world, with ``p`` (3,) and ``q`` (4,), w first. The
            spelling is RoboTwin's, which passes it by position or name.
        active_joints_name: the arm's joints from the shoulder outward.
        all_joints: all active joints in the order of the joint vectors given later.
        robot_config: content of ``curobo_<arm>_tmp.yml`` with paths resolved.
        yml_path: the file itself, if no ``robot_config`` is given.
    """

    _failures: ClassVar[dict[str, int]] = {}

    def __init__(
        self,
        robot_origion_pose: Any,
        active_joints_name: Sequence[str],
        all_joints: Sequence[str],
        robot_config: dict[str, Any] | None = None,
        yml_path: str | None = None,
    ) -> None:
        if robot_config is None:
            if yml_path is None:
                raise ValueError("StandInPlanner needs robot_config or yml_path")
            with open(yml_path, encoding="utf-8") as stream:
                robot_config = json.load(stream)
        kinematics = robot_config["robot_cfg"]["kinematics"]
        urdf_path = str(kinematics["urdf_path"])
        if yml_path is not None:
            root = os.path.abspath(os.path.join(os.path.dirname(yml_path), "../../.."))
            urdf_path = urdf_path.replace("${ASSETS_PATH}", root)
        base = _pose(robot_origion_pose)
        self._index = [list(all_joints).index(name) for name in active_joints_name]
        self.chain = Chain(urdf_path, kinematics["ee_link"], base, list(active_joints_name))

    @classmethod
    def take_failures(cls) -> dict[str, int]:
        """Failures counted since the last call, by kind, both arms together; the count starts anew.

        Kinds: ``not_finite``, ``unreachable``, ``ik_not_converged``; ``line_became_joint_move`` is a fall-back, not
        a failure. Poses that RoboTwin only tries out in a batch are counted as ``candidate_<kind>``.
        """
        counted = dict(cls._failures)
        cls._failures.clear()
        return counted

    def plan_path(
        self,
        curr_joint_pos: Sequence[float],
        target_gripper_pose: Any,
        constraint_pose: Sequence[float] | None = None,
        arms_tag: str | None = None,
    ) -> dict[str, Any]:
        """Plan from joint positions to a wrist pose.

        Args:
            curr_joint_pos: positions of all active joints, rad or m.
            target_gripper_pose: pose of the wrist link in the world, with ``p`` and ``q`` (w first).
            constraint_pose: if given, RoboTwin wants the orientation held: the move is a straight line if there is
                one.
            arms_tag: unused.

        Returns:
            ``status`` "Success" or "Fail"; on success ``position`` and ``velocity``, (n, 6), one row a physics step.
        """
        start = self._start(curr_joint_pos)
        target = _pose(target_gripper_pose)
        goal = self.solve(target[None], start, counted_as="")[0]
        if goal is None:
            return {"status": "Fail"}
        distance_m = float(np.linalg.norm(self.chain.pose(start[None])[0, :3, 3] - target[:3, 3]))
        if constraint_pose is not None or distance_m < LINE_UP_TO_M:
            line = self._line(start, target)
            if line is not None:
                return line
            self._count("line_became_joint_move")
        return _trajectory(start, np.stack([start, goal]))

    def plan_batch(
        self,
        curr_joint_pos: Sequence[float],
        target_gripper_pose_list: Sequence[Any],
        constraint_pose: Sequence[float] | None = None,
        arms_tag: str | None = None,
    ) -> dict[str, Any]:
        """Try several wrist poses from the same start.

        Returns:
            ``status``, ``position`` and ``velocity``: object arrays, one entry a pose; status is "Success" or
            "Failure".
        """
        start = self._start(curr_joint_pos)
        targets = np.stack([_pose(p) for p in target_gripper_pose_list])
        moves: list[dict[str, Any]] = []
        for goal in self.solve(targets, start, counted_as="candidate_"):
            if goal is None:
                moves.append({"status": "Failure", "position": np.zeros((0, 6)), "velocity": np.zeros((0, 6))})
            else:
                moves.append(_trajectory(start, np.stack([start, goal])))
        result: dict[str, Any] = {}
        for key in ("status", "position", "velocity"):
            column = np.empty(len(moves), dtype=object)
            for k, move in enumerate(moves):
                column[k] = move[key]
            result[key] = column
        return result

    def plan_grippers(self, now_val: float, target_val: float) -> dict[str, Any]:
        """A linear ramp of the gripper's opening over 200 physics steps."""
        values = np.linspace(now_val, target_val, GRIPPER_STEPS)
        return {"num_step": GRIPPER_STEPS, "per_step": (target_val - now_val) / GRIPPER_STEPS, "result": values}

    def solve(self, targets: Array, start_rad: Array, counted_as: str = "") -> list[Array | None]:
        """Joint vectors that attain wrist poses, the one nearest to the start for each, or None.

        Args:
            targets: (B, 4, 4) in the world.
            start_rad: (6,).
            counted_as: prefix of the failure kinds counted.
        """
        found: list[Array | None] = [None] * len(targets)
        finite = np.isfinite(targets).all(axis=(1, 2))
        far = np.zeros(len(targets), bool)
        far[finite] = self.chain.out_of_reach(targets[finite])
        self._count(counted_as + "not_finite", int((~finite).sum()))
        self._count(counted_as + "unreachable", int(far.sum()))
        asked = np.flatnonzero(finite & ~far)
        if not len(asked):
            return found
        near, good = self.iterate(targets[asked], np.tile(start_rad, (len(asked), 1)))
        good &= np.abs(near - start_rad).max(axis=1) < NEAR_RAD
        for row in np.flatnonzero(good):
            found[asked[row]] = near[row]
        hard = asked[~good]
        if len(hard):
            starts = np.concatenate([start_rad[None], _STARTS_RAD])
            n = len(starts)
            q, good = self.iterate(np.repeat(targets[hard], n, axis=0), np.tile(starts, (len(hard), 1)))
            q, good = q.reshape(len(hard), n, 6), good.reshape(len(hard), n)
            cost = np.where(good, np.abs(q - start_rad).max(axis=2), np.inf)
            for k, nearest in enumerate(cost.argmin(axis=1)):
                if good[k, nearest]:
                    found[hard[k]] = q[k, nearest]
                else:
                    self._count(counted_as + "ik_not_converged")
        return found

    def iterate(self, targets: Array, starts_rad: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Damped least squares from given starts: (B, 4, 4) and (B, 6) to joint vectors (B, 6) and success (B,).

        A row stops when it is within tolerance, or when its error hasn't fallen for ``PATIENCE`` iterations.
        """
        q = starts_rad.copy()
        done, stuck = np.zeros(len(q), bool), np.zeros(len(q), bool)
        best, since = np.full(len(q), np.inf), np.zeros(len(q), int)
        for _ in range(ITERATIONS):
            rows = np.flatnonzero(~done & ~stuck)
            if not len(rows):
                break
            tip, jacobian = self.chain.pose_and_jacobian(q[rows])
            shift = targets[rows, :3, 3] - tip[:, :3, 3]
            twist = _rotation_vector(targets[rows, :3, :3] @ tip[:, :3, :3].transpose(0, 2, 1))
            shift_m, twist_rad = np.linalg.norm(shift, axis=1), np.linalg.norm(twist, axis=1)
            good = (shift_m < POSITION_TOLERANCE_M) & (twist_rad < ROTATION_TOLERANCE_RAD)
            done[rows[good]] = True
            error = shift_m + 0.2 * twist_rad
            better = error < 0.98 * best[rows]
            best[rows] = np.minimum(best[rows], error)
            since[rows] = np.where(better, 0, since[rows] + 1)
            stuck[rows] = since[rows] > PATIENCE
            wanted = np.concatenate([_at_most(shift, 0.15), _at_most(twist, 0.6)], axis=1)
            damping = 1e-4 + 0.02 * np.minimum(1, (wanted**2).sum(axis=1))
            transposed = jacobian.transpose(0, 2, 1)
            normal = jacobian @ transposed + damping[:, None, None] * np.eye(6)
            step = _at_most((transposed @ np.linalg.solve(normal, wanted[..., None]))[..., 0], 0.5)
            step[good] = 0
            q[rows] = np.clip(q[rows] + step, LOWER_RAD, UPPER_RAD)
        return q, done

    def _line(self, start: Array, target: Array) -> dict[str, Any] | None:
        """A move whose wrist goes straight, or None if the arm can't follow it without a jump."""
        first = self.chain.pose(start[None])[0]
        turn = _rotation_vector((target[:3, :3] @ first[:3, :3].T)[None])[0]
        angle = float(np.linalg.norm(turn))
        axis = turn / angle if angle > 1e-6 else np.array([1.0, 0.0, 0.0])
        knots = [start]
        for share in np.linspace(0, 1, LINE_KNOTS + 1)[1:]:
            pose = np.eye(4)
            pose[:3, :3] = _turn(axis, np.array([angle * share]))[0] @ first[:3, :3]
            pose[:3, 3] = first[:3, 3] * (1 - share) + target[:3, 3] * share
            q, good = self.iterate(pose[None], knots[-1][None])
            if not good[0] or np.abs(q[0] - knots[-1]).max() > LINE_JUMP_RAD:
                return None
            knots.append(q[0])
        return _trajectory(start, np.array(knots))

    def _start(self, joint_positions: Sequence[float]) -> Array:
        return np.array([float(joint_positions[i]) for i in self._index])

    def _count(self, kind: str, times: int = 1) -> None:
        if times:
            StandInPlanner._failures[kind] = StandInPlanner._failures.get(kind, 0) + times


def _trajectory(start: Array, knots: Array) -> dict[str, Any]:
    """Samples along joint vectors (k, 6): at rest at both ends, the last sample exactly the last knot."""
    travel = float(np.abs(np.diff(knots, axis=0)).sum(axis=0).max())
    # a fifth-degree time law peaks at 1.875 times the mean speed and 5.77 times the mean acceleration
    duration_s = max(SHORTEST_MOVE_S, 1.875 * travel / SPEED_RAD_S, float(np.sqrt(5.77 * travel / ACCELERATION_RAD_S2)))
    n = round(duration_s / STEP_S)
    t = np.linspace(0, 1, n + 1)[1:]
    along = (10 * t**3 - 15 * t**4 + 6 * t**5) * (len(knots) - 1)
    cell = np.minimum(along.astype(int), len(knots) - 2)
    u = (along - cell)[:, None]
    slopes = np.gradient(knots, axis=0)
    a, b, da, db = knots[cell], knots[cell + 1], slopes[cell], slopes[cell + 1]
    position = a + u * (da + u * (3 * (b - a) - 2 * da - db + u * (2 * (a - b) + da + db)))
    position[-1] = knots[-1]
    velocity = np.diff(np.vstack([start, position]), axis=0) / STEP_S
    velocity[-1] = 0
    return {"status": "Success", "position": position, "velocity": velocity}


def _pose(pose: Any) -> Array:
    """(4, 4) matrix of an object with ``p`` and ``q`` (w first)."""
    w, x, y, z = np.asarray(pose.q, float) / np.linalg.norm(pose.q)
    matrix = np.eye(4)
    matrix[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    matrix[:3, 3] = pose.p
    return matrix


def _origin(joint: ElementTree.Element) -> Array:
    """(4, 4) of a URDF joint's origin; its rpy turns about the fixed x, y and z axes."""
    element = joint.find("origin")
    roll, pitch, yaw = _numbers(element, "rpy", "0 0 0")
    turns = [_turn(np.eye(3)[k], np.array([angle]))[0] for k, angle in enumerate((roll, pitch, yaw))]
    matrix = np.eye(4)
    matrix[:3, :3] = turns[2] @ turns[1] @ turns[0]
    matrix[:3, 3] = _numbers(element, "xyz", "0 0 0")
    return matrix


def _numbers(element: ElementTree.Element | None, key: str, default: str) -> Array:
    text = default if element is None else element.get(key, default)
    return np.array([float(v) for v in text.split()])


def _turn(axis: Array, angle_rad: Array) -> Array:
    """Rotation matrices (B, 3, 3) about a unit axis (3,) by angles (B,)."""
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    sin, cos = np.sin(angle_rad)[:, None, None], np.cos(angle_rad)[:, None, None]
    matrices: Array = np.eye(3) + sin * cross + (1 - cos) * (cross @ cross)
    return matrices


def _rotation_vector(rotations: Array) -> Array:
    """Axis times angle (B, 3) of rotation matrices (B, 3, 3)."""
    skew = np.stack(
        [
            rotations[:, 2, 1] - rotations[:, 1, 2],
            rotations[:, 0, 2] - rotations[:, 2, 0],
            rotations[:, 1, 0] - rotations[:, 0, 1],
        ],
        axis=1,
    )
    length = np.linalg.norm(skew, axis=1)
    angle = np.arctan2(length, np.trace(rotations, axis1=1, axis2=2) - 1)
    vectors: Array = skew * np.where(length > 1e-9, angle / np.maximum(length, 1e-9), 0.5)[:, None]
    for i in np.flatnonzero((length <= 1e-6) & (angle > 1)):  # half a turn: the axis is the one that stays in place
        _, columns = np.linalg.eigh((rotations[i] + rotations[i].T) / 2)
        vectors[i] = columns[:, -1] * angle[i]
    return vectors


def _at_most(rows: Array, limit: float) -> Array:
    """Rows (B, n) scaled down so that no entry exceeds ``limit``."""
    scaled: Array = rows * np.minimum(1, limit / np.maximum(np.abs(rows).max(axis=1), 1e-12))[:, None]
    return scaled
