"""The only source of randomness in evalkit: streams named by purpose."""

from __future__ import annotations

import hashlib

import numpy as np


def stream_seed(seed: int, *names: str | int) -> int:
    """A 63-bit seed for one purpose, e.g. ``stream_seed(100000, "policy")``.

    Streams with different names are independent; the same names give the same stream on every machine.
    """
    text = "\x1f".join([str(int(seed)), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """A generator for one purpose, e.g. ``stream(100000, "instruction", "unseen")``."""
    return np.random.Generator(np.random.PCG64(stream_seed(seed, *names)))
