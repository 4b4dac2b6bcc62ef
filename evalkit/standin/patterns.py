"""Patterns of wood, cloth, stone, paint and tiles, as fields of brightness.

Each function takes a random generator and returns a (256, 256) field whose scale doesn't matter.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Field = NDArray[np.float64]
SIZE_PX = 256


def _grid() -> tuple[Field, Field]:
    axis = np.arange(SIZE_PX) / SIZE_PX
    x, y = np.meshgrid(axis, axis)
    return x, y


def _noise(generator: np.random.Generator, cells: int, octaves: int, stretch: int = 1) -> Field:
    """Smooth noise that repeats at the edges, about -1 to 1; ``stretch`` times finer along y."""
    total = np.zeros((SIZE_PX, SIZE_PX))
    for octave in range(octaves):
        nx, ny = cells * 2**octave, cells * stretch * 2**octave
        if max(nx, ny) > SIZE_PX // 2:
            break
        grid = generator.uniform(-1, 1, (ny, nx))
        total += _upsampled(grid) / 2**octave
    return total


def _upsampled(grid: Field) -> Field:
    ny, nx = grid.shape
    x, y = np.arange(SIZE_PX) * nx / SIZE_PX, np.arange(SIZE_PX) * ny / SIZE_PX
    i, j = x.astype(int), y.astype(int)
    u, v = x - i, y - j
    u, v = u * u * (3 - 2 * u), v * v * (3 - 2 * v)
    i2, j2 = (i + 1) % nx, (j + 1) % ny
    top = grid[np.ix_(j, i)] * (1 - u) + grid[np.ix_(j, i2)] * u
    low = grid[np.ix_(j2, i)] * (1 - u) + grid[np.ix_(j2, i2)] * u
    field: Field = top * (1 - v)[:, None] + low * v[:, None]
    return field


def planks(generator: np.random.Generator) -> Field:
    """Boards with grain along x."""
    _, y = _grid()
    boards = int(generator.integers(3, 6))
    board = np.floor(y * boards)
    tone = generator.uniform(-0.35, 0.35, boards)[board.astype(int)]
    warp = _noise(generator, 2, 4, stretch=6)
    grain = np.sin(2 * math.pi * (y * generator.uniform(14, 22) + 0.6 * warp))
    fine = _noise(generator, 3, 3, stretch=16)
    seam = np.abs(y * boards - board - 0.5) > 0.485
    field: Field = 0.35 * grain + 0.5 * fine + tone - 1.2 * seam
    return field


def rings(generator: np.random.Generator) -> Field:
    """Wood sawn near the heart: long ovals."""
    x, y = _grid()
    cx, cy = generator.uniform(-0.4, 0.1), generator.uniform(0.3, 0.7)
    distance = np.hypot((x - cx) * generator.uniform(0.18, 0.3), y - cy) + 0.02 * _noise(generator, 3, 4)
    return np.sin(2 * math.pi * distance * generator.uniform(16, 24)) * 0.6 + 0.5 * _noise(generator, 2, 3, stretch=20)


def weave(generator: np.random.Generator) -> Field:
    """Plain cloth: threads over and under."""
    x, y = _grid()
    threads = int(generator.integers(20, 34))
    over = (np.floor(x * threads) + np.floor(y * threads)) % 2
    across, along = np.abs(np.sin(math.pi * x * threads)), np.abs(np.sin(math.pi * y * threads))
    return np.where(over > 0, across, along) * 0.8 + 0.35 * _noise(generator, 4, 4)


def twill(generator: np.random.Generator) -> Field:
    """Cloth with diagonal ribs."""
    x, y = _grid()
    ribs = int(generator.integers(22, 36))
    return np.abs(np.sin(math.pi * (x + y) * ribs)) * 0.7 + 0.5 * _noise(generator, 5, 4)


def marble(generator: np.random.Generator) -> Field:
    """Stone with veins."""
    x, y = _grid()
    turbulence = _noise(generator, 3, 6)
    angle = generator.uniform(0, math.pi)
    base = x * math.cos(angle) + y * math.sin(angle)
    veins = 1 - np.abs(np.sin(2 * math.pi * (base * generator.uniform(1, 2) + 0.35 * turbulence))) ** 0.35
    return -veins + 0.12 * turbulence


def granite(generator: np.random.Generator) -> Field:
    """Stone with grains."""
    coarse = _noise(generator, 24, 2)
    specks = generator.uniform(-1, 1, (SIZE_PX // 2, SIZE_PX // 2)).repeat(2, 0).repeat(2, 1)
    field: Field = 0.5 * coarse + 0.5 * np.sign(specks) * np.abs(specks) ** 3 + 0.15 * _noise(generator, 3, 3)
    return field


def paint(generator: np.random.Generator) -> Field:
    """A painted wall: almost one colour."""
    roller = _noise(generator, 40, 2)
    return 0.25 * roller + 0.5 * _noise(generator, 2, 3) + 3.0 * (_grid()[0] < 0.004)


def brushed(generator: np.random.Generator) -> Field:
    """Brush strokes along x."""
    return _noise(generator, 2, 3, stretch=24) + 0.3 * _noise(generator, 3, 3)


def stripes(generator: np.random.Generator) -> Field:
    """Stripes of unequal width."""
    x, y = _grid()
    base = x if generator.random() < 0.5 else y
    count = int(generator.integers(4, 9))
    wave = np.sin(2 * math.pi * base * count) + 0.6 * np.sin(2 * math.pi * base * count * 2 + 1.0)
    return np.tanh(4 * wave) + 0.12 * _noise(generator, 6, 4)


def tiles(generator: np.random.Generator) -> Field:
    """Square tiles with joints."""
    x, y = _grid()
    count = int(generator.integers(4, 8))
    i, j = np.floor(x * count).astype(int), np.floor(y * count).astype(int)
    tone = generator.uniform(-0.25, 0.25, (count, count))[j, i]
    joint = (np.abs(x * count - i - 0.5) > 0.465) | (np.abs(y * count - j - 0.5) > 0.465)
    field: Field = tone + 0.15 * _noise(generator, 5, 4) - 1.3 * joint
    return field


def bricks(generator: np.random.Generator) -> Field:
    """Bricks in running bond."""
    x, y = _grid()
    rows = 2 * int(generator.integers(3, 6))
    j = np.floor(y * rows).astype(int)
    shifted = x * rows / 2 + 0.5 * (j % 2)
    i = np.floor(shifted).astype(int) % (rows // 2)
    tone = generator.uniform(-0.4, 0.4, (rows, rows // 2))[j, i]
    joint = (np.abs(shifted - np.floor(shifted) - 0.5) > 0.465) | (np.abs(y * rows - j - 0.5) > 0.43)
    field: Field = tone + 0.25 * _noise(generator, 8, 4) - 1.5 * joint
    return field


def checks(generator: np.random.Generator) -> Field:
    """A chequered cloth."""
    x, y = _grid()
    count = int(generator.integers(3, 7))
    bands = np.sign(np.sin(2 * math.pi * x * count)) + np.sign(np.sin(2 * math.pi * y * count))
    return bands + 0.25 * _noise(generator, 16, 3)


def dots(generator: np.random.Generator) -> Field:
    """A dotted cloth."""
    x, y = _grid()
    count = int(generator.integers(6, 11))
    u, v = x * count, y * count
    u = u + 0.5 * (np.floor(v) % 2)
    distance = np.hypot(u - np.floor(u) - 0.5, v - np.floor(v) - 0.5)
    return np.tanh((0.27 - distance) * 22) + 0.12 * _noise(generator, 12, 3)


def terrazzo(generator: np.random.Generator) -> Field:
    """Chips of stone in cement: nearest of scattered points, on a surface that repeats."""
    x, y = _grid()
    points = generator.uniform(0, 1, (90, 3))
    nearest, second = np.full_like(x, 9.0), np.full_like(x, 9.0)
    tone = np.zeros_like(x)
    for px, py, shade in points:
        dx, dy = np.abs(x - px), np.abs(y - py)
        distance = np.hypot(np.minimum(dx, 1 - dx), np.minimum(dy, 1 - dy))
        closer = distance < nearest
        second = np.where(closer, nearest, np.minimum(second, distance))
        tone = np.where(closer, shade, tone)
        nearest = np.where(closer, distance, nearest)
    return np.where(second - nearest > 0.018, tone, -0.25) + 0.06 * _noise(generator, 16, 3)


def herringbone(generator: np.random.Generator) -> Field:
    """Short boards laid in zigzag."""
    x, y = _grid()
    count = int(generator.integers(4, 7))
    zigzag = np.abs((x * count) % 2 - 1)
    u = y * count * 2 + zigzag * 2
    board = np.floor(u)
    tone = np.sin(board * 12.9898 + np.floor(x * count) * 78.233) * 0.35
    joint = (u - board < 0.06) | (np.abs(x * count - np.round(x * count)) < 0.03)
    field: Field = tone + 0.3 * _noise(generator, 3, 4, stretch=8) - 1.2 * joint
    return field


def clouds(generator: np.random.Generator) -> Field:
    """Mottled plaster."""
    return _noise(generator, 3, 6)
