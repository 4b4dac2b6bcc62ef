"""Bottles and bowls."""

from __future__ import annotations

import math
from collections.abc import Iterator

from evalkit.standin.frames import DOWN, around, grasp
from evalkit.standin.glb import Part
from evalkit.standin.meshes import Mesh, cylinder, turned_body, wedge
from evalkit.standin.model import Model
from evalkit.standin.objects import colours as c

# body, cap, label
_BOTTLES: tuple[tuple[c.RGB, c.RGB, c.RGB], ...] = (
    (c.RED, c.RED, c.YELLOW),
    (c.YELLOW, c.RED, c.WHITE),
    (c.BLACK, c.YELLOW, c.GREY),
    (c.YELLOW, c.GREEN, c.ORANGE),
    (c.ORANGE, c.WHITE, c.GREEN),
    (c.ORANGE, c.BLUE, c.YELLOW),
    (c.ORANGE, c.GREEN, c.WHITE),
    (c.ORANGE, c.YELLOW, c.BLACK),
    (c.BROWN, c.WHITE, c.CREAM),
    (c.BROWN, c.GREEN, c.RED),
    (c.BROWN, c.GREEN, c.YELLOW),
    (c.YELLOW, c.WHITE, c.GREEN),
    (c.GREEN, c.YELLOW, c.WHITE),
    (c.DARK_RED, c.RED, c.WHITE),
    (c.BLUE, c.WHITE, c.LIGHT_BLUE),
    (c.BROWN, c.WHITE, c.LIGHT_GREEN),
    (c.GREEN, c.GREEN, c.LIGHT_GREEN),
    (c.WHITE, c.BLUE, c.LIGHT_BLUE),
    (c.CREAM, c.RED, c.BLUE),
    (c.BLUE, c.BLUE, c.WHITE),
)


def bottle(number: int) -> Model:
    """001_bottle: neck along +y. Eight flat sides carry it when it lies; each faces a grasp."""
    body, cap, label = _BOTTLES[number]
    apothem = 0.0240 + 0.0008 * (number % 4)
    height = 0.165 + 0.006 * (number % 5)
    shoulder, waist = height - 0.055, number % 3 == 1
    r = apothem * 1.03
    squeeze = 0.93 if waist else 1.0
    neck = 0.0095 + 0.0015 * (number % 2)
    profile = [
        (r - 0.004, 0.0),
        (r, 0.005),
        (r, shoulder * 0.28),
        (r * squeeze, shoulder * 0.36),
        (r * squeeze, shoulder * 0.78),
        (r, shoulder * 0.86),
        (r, shoulder),
        (r * 0.93, shoulder + 0.009),
        (r * 0.70, shoulder + 0.019),
        (neck + 0.002, shoulder + 0.030),
        (neck, shoulder + 0.036),
        (neck, height - 0.012),
    ]
    band = [(r * squeeze + 0.0009, shoulder * 0.39), (r * squeeze + 0.0009, shoulder * 0.75)]
    stripe = [(r * squeeze + 0.0013, shoulder * 0.50), (r * squeeze + 0.0013, shoulder * 0.58)]
    lid = [(neck + 0.0030, height - 0.017), (neck + 0.0030, height - 0.002), (neck + 0.0018, height)]
    visual = [
        Part(turned_body(profile), c.glossy(body)),
        Part(turned_body(band), c.satin(label)),
        Part(turned_body(stripe), c.satin(cap)),
        Part(turned_body(lid, segments=18), c.satin(cap)),
    ]

    def octagon(inner: float, h: float, inner_top: float | None = None) -> Mesh:
        out = 1 / math.cos(math.pi / 8)
        top = None if inner_top is None else inner_top * out
        return cylinder(inner * out, h, top_radius_m=top, segments=8).turned("y", math.pi / 8)

    collision = [
        octagon(apothem, shoulder),
        octagon(apothem, 0.030, neck).moved(y=shoulder),
        octagon(neck, height - shoulder - 0.030).moved(y=shoulder + 0.030),
    ]
    return Model("001_bottle", number, visual, collision, around(0.072, 8, offset_m=0.012))


def bowl(number: int) -> Model:
    """002_bowl: taken by the rim; grasps from +z, +x, -z, -x."""
    base_r, rim_r, height, wall = 0.030, 0.060, 0.050, 0.004
    inside, outside, edge = {3: (c.LIGHT_BLUE, c.BLUE, c.BROWN)}[number]
    outside_wall = _wall(base_r, rim_r, height)
    inside_wall = [(r - wall, h) for r, h in outside_wall]
    lip = [
        (rim_r - wall - 0.0012, height - 0.003),
        (rim_r - wall / 2, height + 0.0012),
        (rim_r + 0.0008, height - 0.001),
    ]
    visual = [
        Part(
            turned_body([(base_r - 0.003, 0.0), (base_r - 0.001, 0.003), *outside_wall], 36, cap_top=False),
            c.glossy(outside),
        ),
        Part(turned_body([(0.0, 0.006), *inside_wall], 36, cap_top=False).inside_out(), c.glossy(inside)),
        Part(
            turned_body([(rim_r + 0.0008, height - 0.003), *reversed(lip)], 36, cap_bottom=False, cap_top=False),
            c.satin(edge),
        ),
    ]
    sides = 12
    collision = [cylinder(base_r, 0.005, segments=20)]
    for k in range(sides):
        edges = [2 * math.pi * (k - 0.02) / sides, 2 * math.pi * (k + 1.02) / sides]
        corners = [
            (r * math.cos(a), h, r * math.sin(a))
            for a in edges
            for r, h in ((base_r - wall, 0.0), (base_r, 0.0), (rim_r, height), (rim_r - wall, height))
        ]
        collision.append(wedge(corners))
    at = 0.058
    grasps = [grasp((at * x, 0.048, at * z), DOWN, (x, 0, z)) for z, x in ((1, 0), (0, 1), (-1, 0), (0, -1))]
    return Model("002_bowl", number, visual, collision, grasps)


def _wall(base_r: float, rim_r: float, height: float) -> list[tuple[float, float]]:
    """The outer wall from the foot up; bulges a millimetre outside the straight collision wall."""
    shares = [k / 7 for k in range(8)]
    return [
        (base_r + (rim_r - base_r) * s + 0.0015 * math.sin(math.pi * s), 0.004 + (height - 0.004) * s) for s in shares
    ]


def models() -> Iterator[Model]:
    """Every variant that a task draws."""
    yield from (bottle(n) for n in range(len(_BOTTLES)))
    yield bowl(3)
