"""Named colours of the stand-in objects, linear RGB."""

from __future__ import annotations

from evalkit.standin.glb import Paint

RGB = tuple[float, float, float]

BLACK: RGB = (0.025, 0.025, 0.03)
CHARCOAL: RGB = (0.07, 0.07, 0.08)
GREY: RGB = (0.32, 0.33, 0.35)
WHITE: RGB = (0.80, 0.80, 0.78)
CREAM: RGB = (0.80, 0.68, 0.48)
BEIGE: RGB = (0.66, 0.52, 0.36)
LIGHT_WOOD: RGB = (0.58, 0.36, 0.17)
WOOD: RGB = (0.42, 0.22, 0.09)
DARK_WOOD: RGB = (0.22, 0.11, 0.05)
RED: RGB = (0.65, 0.04, 0.03)
DARK_RED: RGB = (0.35, 0.02, 0.03)
ORANGE: RGB = (0.85, 0.25, 0.02)
YELLOW: RGB = (0.88, 0.58, 0.04)
GREEN: RGB = (0.07, 0.36, 0.08)
LIGHT_GREEN: RGB = (0.28, 0.60, 0.22)
BLUE: RGB = (0.05, 0.16, 0.55)
LIGHT_BLUE: RGB = (0.20, 0.48, 0.78)
TEAL: RGB = (0.03, 0.33, 0.34)
PURPLE: RGB = (0.26, 0.08, 0.38)
PINK: RGB = (0.80, 0.30, 0.38)
BROWN: RGB = (0.24, 0.11, 0.04)
LIGHT_BROWN: RGB = (0.48, 0.27, 0.12)
BUN: RGB = (0.62, 0.29, 0.07)
PATTY: RGB = (0.13, 0.05, 0.02)


def matt(rgb: RGB) -> Paint:
    """Cloth, paper, bread, raw wood."""
    return Paint(rgb, roughness=0.85)


def satin(rgb: RGB) -> Paint:
    """Painted or plastic."""
    return Paint(rgb, roughness=0.45)


def glossy(rgb: RGB) -> Paint:
    """Glazed or lacquered."""
    return Paint(rgb, roughness=0.2)


STEEL = Paint((0.50, 0.51, 0.53), roughness=0.35, metallic=0.6)
"""Brushed steel; less than fully metallic because nothing but lamps is there to be mirrored."""
