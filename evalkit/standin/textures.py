"""Procedural surfaces for table and wall: 48 to train on, 24 others to be tested with.

Each picture is a field of 256 levels and a colour ramp, so it is stored as a palette PNG. The PNG is written here,
uncompressed: compressors differ between releases, and the bytes are part of the generated world's identity.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evalkit.core import rng
from evalkit.standin import patterns

Split = Literal["seen", "unseen"]
COUNTS: dict[Split, int] = {"seen": 48, "unseen": 24}


def files() -> dict[str, bytes]:
    """Contents by path under the asset root."""
    contents = {}
    for split, count in COUNTS.items():
        for number in range(count):
            contents[f"assets/background_texture/{split}/{number}.png"] = texture(split, number)
    return contents


def texture(split: Split, number: int) -> bytes:
    """One PNG. The two splits share neither kinds of pattern's parameters nor random streams."""
    generator = rng.stream(0, "texture", split, number)
    kinds = _SEEN if split == "seen" else _UNSEEN
    make, ramps = kinds[number % len(kinds)]
    field = make(generator)
    low, high = float(field.min()), float(field.max())
    levels = ((field - low) / max(high - low, 1e-9) * 255).round().astype(np.uint8)
    return encode_png(levels, _palette(ramps[(number // len(kinds)) % len(ramps)], generator))


def encode_png(levels: NDArray[np.uint8], palette: NDArray[np.uint8]) -> bytes:
    """An 8-bit palette PNG of levels (H, W) and a palette (256, 3), with stored (uncompressed) data."""
    height, width = levels.shape
    rows = np.zeros((height, width + 1), np.uint8)
    rows[:, 1:] = levels
    raw = rows.tobytes()
    stream = bytearray(b"\x78\x01")
    for first in range(0, len(raw), 65535):
        block = raw[first : first + 65535]
        last = first + 65535 >= len(raw)
        stream += struct.pack("<BHH", last, len(block), len(block) ^ 0xFFFF) + block
    stream += struct.pack(">I", zlib.adler32(raw))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = chunk(b"IHDR", header) + chunk(b"PLTE", palette.tobytes()) + chunk(b"IDAT", bytes(stream))
    return b"\x89PNG\r\n\x1a\n" + chunks + chunk(b"IEND", b"")


Ramp = tuple[tuple[int, int, int], ...]
_WOODS: tuple[Ramp, ...] = (
    ((70, 42, 22), (150, 100, 58), (190, 140, 92)),
    ((52, 30, 20), (96, 60, 38), (130, 86, 56)),
    ((140, 106, 70), (206, 170, 124), (226, 196, 154)),
    ((96, 84, 74), (150, 138, 124), (186, 174, 160)),
)
_CLOTHS: tuple[Ramp, ...] = (
    ((30, 50, 92), (66, 96, 150), (120, 146, 190)),
    ((96, 28, 30), (150, 58, 54), (190, 110, 100)),
    ((60, 84, 56), (104, 130, 92), (160, 178, 140)),
    ((130, 122, 108), (186, 178, 162), (220, 214, 200)),
)
_STONES: tuple[Ramp, ...] = (
    ((120, 118, 122), (206, 204, 204), (236, 234, 232)),
    ((34, 36, 42), (70, 74, 82), (128, 130, 136)),
    ((120, 92, 72), (196, 170, 146), (226, 208, 188)),
    ((64, 84, 84), (128, 150, 146), (186, 200, 194)),
)
_PAINTS: tuple[Ramp, ...] = (
    ((150, 172, 184), (176, 198, 210), (196, 216, 226)),
    ((196, 178, 130), (222, 206, 160), (236, 224, 186)),
    ((128, 152, 120), (154, 178, 146), (178, 198, 170)),
    ((176, 132, 124), (206, 164, 154), (222, 186, 178)),
)
_FLOORS: tuple[Ramp, ...] = (
    ((92, 90, 88), (170, 176, 180), (206, 212, 214)),
    ((70, 54, 46), (172, 112, 84), (200, 144, 112)),
    ((50, 70, 96), (108, 142, 176), (160, 188, 210)),
    ((90, 84, 60), (190, 176, 120), (222, 212, 168)),
)
_OTHERS: tuple[Ramp, ...] = (
    ((44, 78, 88), (120, 168, 166), (214, 222, 206)),
    ((88, 54, 104), (150, 116, 164), (214, 190, 214)),
    ((110, 62, 40), (182, 120, 82), (222, 178, 136)),
    ((60, 62, 70), (136, 138, 142), (206, 204, 198)),
)
Make = Callable[[np.random.Generator], patterns.Field]
_SEEN: tuple[tuple[Make, tuple[Ramp, ...]], ...] = (
    (patterns.planks, _WOODS),
    (patterns.weave, _CLOTHS),
    (patterns.marble, _STONES),
    (patterns.paint, _PAINTS),
    (patterns.tiles, _FLOORS),
    (patterns.stripes, _CLOTHS),
    (patterns.granite, _STONES),
    (patterns.brushed, _PAINTS),
)
_UNSEEN: tuple[tuple[Make, tuple[Ramp, ...]], ...] = (
    (patterns.rings, _OTHERS),
    (patterns.twill, _OTHERS),
    (patterns.bricks, _OTHERS),
    (patterns.checks, _OTHERS),
    (patterns.dots, _OTHERS),
    (patterns.terrazzo, _OTHERS),
    (patterns.herringbone, _OTHERS),
    (patterns.clouds, _OTHERS),
)


def _palette(ramp: Ramp, generator: np.random.Generator) -> NDArray[np.uint8]:
    """256 colours along a ramp, its tint varied a little."""
    stops = np.array(ramp, np.float64) * generator.uniform(0.85, 1.12, 3)
    at = np.linspace(0, 1, len(stops))
    channels = [np.interp(np.linspace(0, 1, 256), at, stops[:, k]) for k in range(3)]
    return np.stack(channels, 1).clip(0, 255).round().astype(np.uint8)
