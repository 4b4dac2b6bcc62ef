"""Which GPU a process is bound to: told through its environment, so that it reaches every interpreter below it."""

from __future__ import annotations

import os
from collections.abc import Mapping

VISIBLE = "CUDA_VISIBLE_DEVICES"
"""CUDA's own variable. evalkit writes one UUID into it: numbers differ between CUDA, Vulkan and ``nvidia-smi``."""
BUS_ID = "EVALKIT_GPU_BUS_ID"
"""PCI bus id of the GPU that pictures are made on, as ``short_bus_id`` spells it; absent or empty: any."""


def short_bus_id(text: str) -> str:
    """One spelling of a PCI bus id: ``00000000:3B:00.0``, ``0000:3b:00`` and ``3b:00.0`` become ``0000:3b:00``.

    Raises:
        ValueError: it is none.
    """
    parts = text.strip().lower().split(":")
    if len(parts) == 2:
        parts = ["0", *parts]
    if len(parts) != 3:
        raise ValueError(f"{text!r} is no PCI bus id")
    domain, bus, device = parts
    return f"{int(domain, 16):04x}:{int(bus, 16):02x}:{int(device.partition('.')[0], 16):02x}"


def bound_bus_id(environ: Mapping[str, str] | None = None) -> str | None:
    """The GPU that this process and those it starts are to render on; None: whichever comes first.

    Args:
        environ: the environment; this process's own by default.
    """
    return (os.environ if environ is None else environ).get(BUS_ID) or None
