"""Triangle meshes made from a few curves: boxes, rounded boxes, turned bodies, lofts.

Lengths are metres. Object frames have y up and their origin on the table under the object.
Coordinates are rounded to a micrometre so that the same object gives the same bytes on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Axis = Literal["x", "y", "z"]
Vector = tuple[float, float, float]
_CREASE = math.cos(math.radians(38))


@dataclass(frozen=True)
class Mesh:
    """A triangle mesh.

    Attributes:
        vertices_m: (N, 3) float64.
        normals: (N, 3) float64, unit length.
        faces: (M, 3) int64, counter-clockwise seen from outside.
    """

    vertices_m: NDArray[np.float64]
    normals: NDArray[np.float64]
    faces: NDArray[np.int64]

    def moved(self, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Mesh:
        """The mesh shifted by (x, y, z) metres."""
        return Mesh(self.vertices_m + np.array([x, y, z]), self.normals, self.faces)

    def turned(self, axis: Axis, angle_rad: float) -> Mesh:
        """The mesh turned about one axis through the origin."""
        c, s = math.cos(angle_rad), math.sin(angle_rad)
        i, j = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
        rotation = np.eye(3)
        rotation[i, i] = rotation[j, j] = c
        rotation[i, j], rotation[j, i] = -s, s
        return Mesh(self.vertices_m @ rotation.T, self.normals @ rotation.T, self.faces)

    def stretched(self, x: float = 1.0, y: float = 1.0, z: float = 1.0) -> Mesh:
        """The mesh scaled by positive factors along the axes."""
        factors = np.array([x, y, z])
        normals = self.normals / factors
        return Mesh(self.vertices_m * factors, normals / np.linalg.norm(normals, axis=1, keepdims=True), self.faces)

    def inside_out(self) -> Mesh:
        """The same surface seen from its other side."""
        return Mesh(self.vertices_m, -self.normals, self.faces[:, ::-1])

    def bounds_m(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Smallest and largest corner, each (3,)."""
        return self.vertices_m.min(0), self.vertices_m.max(0)


def box(x: float, y: float, z: float, at: Vector = (0.0, 0.0, 0.0)) -> Mesh:
    """A sharp box; ``at`` is the centre of its bottom face, x, y and z its edge lengths."""
    vertices: list[NDArray[np.float64]] = []
    normals: list[NDArray[np.float64]] = []
    faces: list[list[int]] = []
    for axis in range(3):
        for sign in (1.0, -1.0):
            u, v = np.eye(3)[(axis + 1) % 3], np.eye(3)[(axis + 2) % 3]
            normal = np.eye(3)[axis] * sign
            first = len(vertices)
            for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
                vertices.append((normal + a * u * sign + b * v) * np.array([x, y, z]) / 2)
                normals.append(normal)
            faces += [[first, first + 1, first + 2], [first, first + 2, first + 3]]
    return Mesh(np.array(vertices), np.array(normals), np.array(faces, np.int64)).moved(at[0], at[1] + y / 2, at[2])


def tapered_box(x: float, y: float, z: float, *, top_x: float, top_z: float) -> Mesh:
    """A box standing on the origin whose top face measures ``top_x`` by ``top_z``."""
    straight = box(x, y, z)
    share = straight.vertices_m[:, 1:2] / y
    widths = np.array([[top_x / x, 1.0, top_z / z]])
    vertices = straight.vertices_m * (1 + share * (widths - 1))
    return Mesh(vertices, _vertex_normals(vertices, straight.faces), straight.faces)


def rounded_box(x: float, y: float, z: float, radius_m: float, at: Vector = (0.0, 0.0, 0.0), segments: int = 3) -> Mesh:
    """A box with rounded edges and corners; arguments as in :func:`box`."""
    half = np.array([x, y, z]) / 2
    r = min(radius_m, float(half.min()) * 0.999)
    quarter = np.linspace(0, math.pi / 2, segments + 1)
    around = [(k * math.pi / 2 + a, k) for k in range(4) for a in quarter]
    up = [(-math.pi / 2 + a, -1.0) for a in quarter] + [(a, 1.0) for a in quarter]
    signs = ((1, 1), (-1, 1), (-1, -1), (1, -1))
    vertices, normals = [], []
    for latitude, sign_y in up:
        for longitude, k in around:
            n = np.array(
                [
                    math.cos(latitude) * math.cos(longitude),
                    math.sin(latitude),
                    math.cos(latitude) * math.sin(longitude),
                ]
            )
            normals.append(n)
            vertices.append(n * r + (half - r) * np.array([signs[k][0], sign_y, signs[k][1]]))
    columns, rows = len(around), len(up)
    faces = _grid_faces(rows, columns)
    top, bottom = (rows - 1) * columns, 0
    step = segments + 1
    for first, order in ((top, (0, 3, 2, 1)), (bottom, (0, 1, 2, 3))):
        a, b, c, d = (first + k * step for k in order)
        faces += [[a, b, c], [a, c, d]]
    return Mesh(np.array(vertices), np.array(normals), np.array(faces, np.int64)).moved(at[0], at[1] + y / 2, at[2])


def turned_body(
    profile_m: Sequence[tuple[float, float]],
    segments: int = 28,
    axis: Axis = "y",
    *,
    cap_bottom: bool = True,
    cap_top: bool = True,
) -> Mesh:
    """A body of revolution.

    Args:
        profile_m: (radius, height) points from the bottom upward along the outside. Corners sharper than 38 degrees
            stay sharp.
        segments: corners around.
        axis: the axis of revolution; heights run along it.
        cap_bottom: close a first point off the axis with a flat disc.
        cap_top: the same for the last point.
    """
    points = [(max(0.0, r), h) for r, h in profile_m]
    if cap_bottom and points[0][0] > 0:
        points.insert(0, (0.0, points[0][1]))
    if cap_top and points[-1][0] > 0:
        points.append((0.0, points[-1][1]))
    p = np.array(points)
    delta = np.diff(p, axis=0)
    lengths = np.hypot(delta[:, 0], delta[:, 1])
    p, delta, lengths = np.vstack([p[:1], p[1:][lengths > 1e-9]]), delta[lengths > 1e-9], lengths[lengths > 1e-9]
    slopes = np.stack([delta[:, 1], -delta[:, 0]], 1) / lengths[:, None]
    rings: list[tuple[float, float, NDArray[np.float64], NDArray[np.float64]]] = []
    strips: list[tuple[int, int]] = []
    for k in range(len(slopes)):
        starts_smooth = k > 0 and float(slopes[k] @ slopes[k - 1]) > _CREASE
        if not starts_smooth:
            rings.append((*p[k], slopes[k], slopes[k]))
        ends_smooth = k + 1 < len(slopes) and float(slopes[k] @ slopes[k + 1]) > _CREASE
        normal = slopes[k] + slopes[k + 1] if ends_smooth else slopes[k]
        rings.append((*p[k + 1], normal / np.linalg.norm(normal), slopes[k]))
        strips.append((len(rings) - 2, len(rings) - 1))
    angles = np.arange(segments) * (2 * math.pi / segments)
    cos, sin = np.cos(angles), np.sin(angles)
    vertices = np.concatenate([np.stack([r * cos, 0 * cos + h, r * sin], 1) for r, h, _, _ in rings])
    normals = np.concatenate([np.stack([n[0] * cos, 0 * cos + n[1], n[0] * sin], 1) for _, _, n, _ in rings])
    faces: list[list[int]] = []
    for low, high in strips:
        for k in range(segments):
            a, b = low * segments + k, low * segments + (k + 1) % segments
            c, d = high * segments + k, high * segments + (k + 1) % segments
            if rings[low][0] > 0:
                faces.append([a, d, b])
            if rings[high][0] > 0:
                faces.append([a, c, d])
    order = {"y": (0, 1, 2), "z": (2, 0, 1), "x": (1, 2, 0)}[axis]
    index = list(order)
    return Mesh(vertices[:, index], normals[:, index], np.array(faces, np.int64))


def cylinder(
    radius_m: float, height_m: float, *, top_radius_m: float | None = None, segments: int = 28, axis: Axis = "y"
) -> Mesh:
    """A cylinder or cone frustum standing on the origin, its height along ``axis``."""
    top = radius_m if top_radius_m is None else top_radius_m
    return turned_body([(radius_m, 0.0), (top, height_m)], segments, axis)


def ball(radius_m: float, segments: int = 24) -> Mesh:
    """A sphere about the origin."""
    angles = np.linspace(-math.pi / 2, math.pi / 2, segments // 2 + 1)
    return turned_body([(radius_m * math.cos(a), radius_m * math.sin(a)) for a in angles], segments)


def loft(sections_m: ArrayLike) -> Mesh:
    """A closed skin over a row of closed curves.

    Args:
        sections_m: (K, n, 3) array: K curves of n points each, running counter-clockwise seen from the last curve
            looking back at the first; both ends are closed by fans.
    """
    curves = np.asarray(sections_m, np.float64)
    count, n = curves.shape[:2]
    vertices = curves.reshape(-1, 3)
    faces = _grid_faces(count, n, flip=True)
    smooth = _vertex_normals(vertices, np.array(faces, np.int64))
    blocks_v, blocks_n, first = [vertices], [smooth], len(vertices)
    for curve, reverse in ((curves[0], True), (curves[-1], False)):
        ring = np.vstack([curve, curve.mean(0)])
        fan = [[k, (k + 1) % n, n] for k in range(n)]
        fan = [[b, a, c] for a, b, c in fan] if reverse else fan
        blocks_v.append(ring)
        blocks_n.append(_vertex_normals(ring, np.array(fan, np.int64)))
        faces += [[first + i for i in face] for face in fan]
        first += n + 1
    return Mesh(np.concatenate(blocks_v), np.concatenate(blocks_n), np.array(faces, np.int64))


def wedge(corners_m: ArrayLike) -> Mesh:
    """A convex piece with eight corners, (8, 3): four of one side, then the four opposite ones in the same order.

    Used for collision only: its normals are not meant for pictures.
    """
    corners = np.asarray(corners_m, np.float64)
    sides = [[0, 1, 2, 3], [7, 6, 5, 4]] + [[k, k + 4, (k + 1) % 4 + 4, (k + 1) % 4] for k in range(4)]
    faces = np.array([t for s in sides for t in ([s[0], s[1], s[2]], [s[0], s[2], s[3]])], np.int64)
    return Mesh(corners, _vertex_normals(corners, faces), faces)


def _grid_faces(rows: int, columns: int, flip: bool = False) -> list[list[int]]:
    """Two triangles a cell of a grid that closes on itself along its columns."""
    faces = []
    for i in range(rows - 1):
        for k in range(columns):
            a, b = i * columns + k, i * columns + (k + 1) % columns
            c, d = a + columns, b + columns
            faces += [[a, b, d], [a, d, c]] if flip else [[a, d, b], [a, c, d]]
    return faces


def _vertex_normals(vertices: NDArray[np.float64], faces: NDArray[np.int64]) -> NDArray[np.float64]:
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    face_normals = np.cross(b - a, c - a)
    normals = np.zeros_like(vertices)
    for k in range(3):
        np.add.at(normals, faces[:, k], face_normals)
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    fallback = np.array([0.0, 1.0, 0.0])
    return np.where(lengths > 1e-15, normals / np.maximum(lengths, 1e-15), fallback)
