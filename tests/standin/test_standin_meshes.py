import math

import numpy as np
import pytest

from evalkit.standin import meshes
from evalkit.standin.frames import DOWN, X, around, grasp, point
from evalkit.standin.meshes import Mesh


def _volume(mesh: Mesh) -> float:
    a, b, c = (mesh.vertices_m[mesh.faces[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)


@pytest.mark.parametrize(
    ("mesh", "volume_m3", "relative"),
    [
        (meshes.box(0.1, 0.2, 0.3, (1, 2, 3)), 0.006, 1e-9),
        (meshes.tapered_box(0.1, 0.3, 0.1, top_x=0.2, top_z=0.2), 0.3 * (0.01 + 0.04 + 0.02) / 3, 1e-9),
        (meshes.rounded_box(0.1, 0.2, 0.3, 1e-6), 0.006, 1e-3),
        (meshes.cylinder(0.1, 0.5, segments=200), math.pi * 0.01 * 0.5, 1e-3),
        (meshes.cylinder(0.1, 0.5, segments=200, axis="x"), math.pi * 0.01 * 0.5, 1e-3),
        (meshes.ball(0.1, 120), math.pi * 4 / 3 * 0.001, 2e-3),
        (meshes.ball(0.1, 120).turned("x", 1.0).stretched(y=2.0), math.pi * 8 / 3 * 0.001, 2e-3),
    ],
)
def test_bodies_have_their_volume_so_faces_look_outward(mesh: Mesh, volume_m3: float, relative: float) -> None:
    assert _volume(mesh) == pytest.approx(volume_m3, rel=relative)


@pytest.mark.parametrize(
    "mesh",
    [
        meshes.box(0.1, 0.2, 0.3),
        meshes.rounded_box(0.1, 0.2, 0.3, 0.02).turned("y", 0.3),
        meshes.turned_body([(0.02, 0.0), (0.03, 0.05), (0.01, 0.06), (0.01, 0.08)]),
        meshes.turned_body([(0.02, 0.0), (0.03, 0.05)], axis="z").turned("z", 0.7),
    ],
)
def test_normals_agree_with_faces(mesh: Mesh) -> None:
    a, b, c = (mesh.vertices_m[mesh.faces[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    area = np.linalg.norm(normals, axis=1)
    kept = area > 1e-12
    unit = normals[kept] / area[kept, None]
    for k in range(3):
        assert (np.einsum("ij,ij->i", unit, mesh.normals[mesh.faces[kept, k]]) > 0.5).all()


def test_turning_a_surface_inside_out_negates_its_volume() -> None:
    ball = meshes.ball(0.1)
    assert _volume(ball.inside_out()) == pytest.approx(-_volume(ball))


def test_loft_of_a_tube_is_closed() -> None:
    angles = np.linspace(0, 2 * math.pi, 60, endpoint=False)
    curves = [np.stack([0.1 * np.cos(angles), 0.1 * np.sin(angles), 0 * angles + z], 1) for z in (0.0, 0.2, 0.5)]
    assert _volume(meshes.loft(curves)) == pytest.approx(math.pi * 0.01 * 0.5, rel=5e-3)


def test_grasp_frame_is_what_robotwin_turns_into_a_gripper_pose() -> None:
    frame = np.array(grasp((0.1, 0.2, 0.3), DOWN, X))
    gripper_x, gripper_y = -frame[:3, 1], -frame[:3, 2]
    np.testing.assert_allclose(gripper_x, DOWN)
    np.testing.assert_allclose(gripper_y, X)
    np.testing.assert_allclose(frame[:3, 3], (0.1, 0.2, 0.3))


def test_grasps_around_an_axis_look_at_it_from_every_side() -> None:
    frames = np.array(around(0.07, 8, offset_m=0.012))
    assert len(frames) == 16
    approach = -frames[:, :3, 1]
    np.testing.assert_allclose(approach[:, 1], 0, atol=1e-9)
    np.testing.assert_allclose(frames[:, :3, 3] + 0.012 * approach, np.tile([0, 0.07, 0], (16, 1)), atol=1e-9)


def test_functional_points_look_down_unless_told() -> None:
    np.testing.assert_allclose(np.array(point((0, 0, 0)))[:3, 2], DOWN)
