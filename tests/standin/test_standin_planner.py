import ast
import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from evalkit.standin import embodiment, planner
from evalkit.standin.planner import LOWER_RAD, UPPER_RAD, StandInPlanner

ROOT_POSE = SimpleNamespace(p=[0.0, -0.65, 0.0], q=[0.707, 0.0, 0.0, 0.707])
JOINTS = [f"{side}_joint{k}" for k in range(1, 9) for side in ("fl", "fr")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("assets")
    for path, data in embodiment.files().items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return root / embodiment.FOLDER


@pytest.fixture(params=["fl", "fr"])
def arm(request: pytest.FixtureRequest, folder: Path) -> StandInPlanner:
    name = "left" if request.param == "fl" else "right"
    StandInPlanner.take_failures()
    joints = [f"{request.param}_joint{k}" for k in range(1, 7)]
    return StandInPlanner(ROOT_POSE, joints, JOINTS, yml_path=str(folder / f"curobo_{name}.yml"))


def _pose(matrix: np.ndarray) -> SimpleNamespace:
    w = np.sqrt(max(0.0, 1 + matrix[0, 0] + matrix[1, 1] + matrix[2, 2])) / 2
    if w < 1e-4:
        pytest.fail("test pose is half a turn away from the identity: choose another")
    r = matrix[:3, :3]
    q = [w, (r[2, 1] - r[1, 2]) / (4 * w), (r[0, 2] - r[2, 0]) / (4 * w), (r[1, 0] - r[0, 1]) / (4 * w)]
    return SimpleNamespace(p=matrix[:3, 3], q=q)


def _full(q_rad: np.ndarray, arm: StandInPlanner) -> np.ndarray:
    positions = np.zeros(len(JOINTS))
    positions[arm._index] = q_rad
    return positions


def _random_postures(count: int) -> np.ndarray:
    low, high = np.maximum(LOWER_RAD + 0.15, -2.0), np.minimum(UPPER_RAD - 0.15, 2.4)
    return np.random.default_rng(7).uniform(low, high, (count, 6))


def test_home_pose_is_where_the_kinematic_table_puts_it(folder: Path) -> None:
    joints = [f"fl_joint{k}" for k in range(1, 7)]
    left = StandInPlanner(ROOT_POSE, joints, JOINTS, yml_path=str(folder / "curobo_left.yml"))
    np.testing.assert_allclose(left.chain.pose(np.zeros((1, 6)))[0, :3, 3], [-0.298, -0.314, 0.942], atol=1.5e-3)


def test_robot_config_and_file_give_the_same_chain(folder: Path, arm: StandInPlanner) -> None:
    name = "left" if arm._index[0] == 0 else "right"
    text = (folder / f"curobo_{name}_tmp.yml").read_text().replace("${ASSETS_PATH}", str(folder.parents[2]))
    joints = [JOINTS[i] for i in arm._index]
    other = StandInPlanner(ROOT_POSE, joints, JOINTS, robot_config=json.loads(text))
    q = _random_postures(3)
    np.testing.assert_array_equal(other.chain.pose(q), arm.chain.pose(q))


def test_jacobian_is_the_derivative_of_the_pose(arm: StandInPlanner) -> None:
    q, h = _random_postures(4), 1e-6
    pose, jacobian = arm.chain.pose_and_jacobian(q)
    for k in range(6):
        moved = q.copy()
        moved[:, k] += h
        ahead = arm.chain.pose(moved)
        np.testing.assert_allclose((ahead[:, :3, 3] - pose[:, :3, 3]) / h, jacobian[:, :3, k], atol=1e-5)
        spin = planner._rotation_vector(ahead[:, :3, :3] @ pose[:, :3, :3].transpose(0, 2, 1)) / h
        np.testing.assert_allclose(spin, jacobian[:, 3:, k], atol=1e-4)


def test_reachable_poses_are_solved(arm: StandInPlanner) -> None:
    postures = _random_postures(60)
    targets = arm.chain.pose(postures)
    assert not arm.chain.out_of_reach(targets).any()
    found = arm.solve(targets, np.zeros(6))
    solved = [k for k, q in enumerate(found) if q is not None]
    assert len(solved) >= 57
    q = np.array([found[k] for k in solved])
    reached = arm.chain.pose(q)
    np.testing.assert_allclose(reached[:, :3, 3], targets[solved, :3, 3], atol=planner.POSITION_TOLERANCE_M)
    turn = planner._rotation_vector(reached[:, :3, :3] @ targets[solved, :3, :3].transpose(0, 2, 1))
    assert np.linalg.norm(turn, axis=1).max() <= planner.ROTATION_TOLERANCE_RAD
    assert (q >= LOWER_RAD).all()
    assert (q <= UPPER_RAD).all()


def test_reach_test_never_refuses_what_the_arm_attains(arm: StandInPlanner) -> None:
    q = np.random.default_rng(3).uniform(-np.pi, np.pi, (20_000, 6))
    assert not arm.chain.out_of_reach(arm.chain.pose(q)).any()


def test_unreachable_and_broken_poses_fail_fast_and_are_counted(arm: StandInPlanner) -> None:
    far = SimpleNamespace(p=[0.0, 1.5, 0.9], q=[1, 0, 0, 0])
    broken = SimpleNamespace(p=[0.0, np.nan, 0.9], q=[1, 0, 0, 0])
    shoulder = (arm.chain.base @ arm.chain.offsets[0])[:3, 3]
    twisted = SimpleNamespace(p=shoulder - np.array([0.0, 0.05, 0.1]), q=[0.0, 0.0, 0.0, 1.0])
    start = time.perf_counter()
    assert arm.plan_path(np.zeros(16), far) == {"status": "Fail"}
    assert arm.plan_path(np.zeros(16), broken) == {"status": "Fail"}
    assert time.perf_counter() - start < 0.05
    assert arm.plan_path(np.zeros(16), twisted)["status"] == "Fail"
    batch = arm.plan_batch(np.zeros(16), [far, far])
    assert list(batch["status"]) == ["Failure", "Failure"]
    counted = StandInPlanner.take_failures()
    assert counted["unreachable"] == 1
    assert counted["not_finite"] == 1
    assert counted["candidate_unreachable"] == 2
    assert counted.get("ik_not_converged", 0) == 1
    assert StandInPlanner.take_failures() == {}


@pytest.mark.parametrize("constraint", [None, [1, 1, 1, 0, 0, 0]])
def test_paths_start_and_end_exactly_and_stay_slow(arm: StandInPlanner, constraint: list[int] | None) -> None:
    for q0, q1 in zip(_random_postures(8), _random_postures(9)[1:], strict=True):
        goal = q0 + 0.2 * (q1 - q0)
        plan = arm.plan_path(_full(q0, arm), _pose(arm.chain.pose(goal[None])[0]), constraint_pose=constraint)
        assert plan["status"] == "Success"
        position, velocity = plan["position"], plan["velocity"]
        assert position.shape == velocity.shape == (len(position), 6)
        path = np.vstack([q0, position])
        assert np.abs(path[1] - q0).max() < 1e-3
        np.testing.assert_allclose(
            arm.chain.pose(position[-1:])[0, :3, 3], arm.chain.pose(goal[None])[0, :3, 3], atol=5e-4
        )
        np.testing.assert_array_equal(velocity[-1], 0)
        assert np.abs(np.diff(path, axis=0)).max() / planner.STEP_S <= 1.6 * planner.SPEED_RAD_S
        np.testing.assert_allclose(velocity[:-1], np.diff(path, axis=0)[:-1] / planner.STEP_S)


def test_last_sample_of_a_trajectory_is_its_last_knot() -> None:
    knots = np.random.default_rng(1).uniform(-1, 1, (5, 6))
    plan = planner._trajectory(knots[0], knots)
    np.testing.assert_array_equal(plan["position"][-1], knots[-1])


def test_short_moves_keep_the_wrist_on_a_line(arm: StandInPlanner) -> None:
    q0 = np.array([0.1, 1.4, 1.3, 0.2, 0.1, 0.0])
    first = arm.chain.pose(q0[None])[0]
    target = first.copy()
    target[2, 3] += 0.08
    plan = arm.plan_path(_full(q0, arm), _pose(target))
    track = arm.chain.pose(plan["position"])[:, :3, 3]
    assert np.abs(track[:, :2] - first[:2, 3]).max() < 2e-3
    assert "line_became_joint_move" not in StandInPlanner.take_failures()


def test_same_question_same_answer(folder: Path) -> None:
    def ask() -> Any:
        joints = [f"fr_joint{k}" for k in range(1, 7)]
        right = StandInPlanner(ROOT_POSE, joints, JOINTS, yml_path=str(folder / "curobo_right.yml"))
        targets = [_pose(m) for m in right.chain.pose(_random_postures(5) * 0.5 + 0.4)]
        return right.plan_batch(np.zeros(16), targets)

    first, second = ask(), ask()
    assert list(first["status"]) == list(second["status"])
    for a, b in zip(first["position"], second["position"], strict=True):
        np.testing.assert_array_equal(a, b)


def test_gripper_ramp_has_robotwins_length(arm: StandInPlanner) -> None:
    ramp = arm.plan_grippers(1.0, 0.0)
    assert ramp["num_step"] == 200
    assert ramp["per_step"] == pytest.approx(-0.005)
    assert ramp["result"][0] == 1.0
    assert ramp["result"][-1] == 0.0


def test_planner_file_stands_alone_and_parses_as_python_3_8() -> None:
    source = Path(planner.__file__).read_text()
    tree = ast.parse(source, feature_version=(3, 8))
    imported = {a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    imported |= {(n.module or "").split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert imported <= {"__future__", "collections", "json", "os", "xml", "typing", "numpy"}
    assert "zip" not in {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
