"""How many policy servers of a sweep fit into memory: a rule of thumb, which ``--servers-at-once`` overrides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import psutil

from evalkit.policy.checkpoint import MODEL_FILE

if TYPE_CHECKING:
    from evalkit.cli.run_options import RunOptions
    from evalkit.cli.run_setup import RunSetup

GROWTH = 1.5
"""Memory of a loaded policy over the size of its weights' file: buffers and activations of a few observations."""
FIXED_BYTES = 1 << 30
"""What a process with torch takes by itself."""
SHARE = 0.8
"""Part of the free memory that servers may take."""


def servers_at_once(sides: Sequence[RunSetup], options: RunOptions) -> int:
    """Number of policies to keep loaded at the same time.

    Args:
        sides: the policies.
        options: what the command line says.

    Returns:
        ``options.servers_at_once``; else as many of the largest as fit into free memory; 1 if the weights' size isn't
        known, as of policies that live in an environment of their own.
    """
    if options.servers_at_once is not None:
        return min(options.servers_at_once, len(sides))
    sizes = [_weights_bytes(side) for side in sides]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return 1
    free, each = psutil.virtual_memory().available, 1
    if sides[0].maker.device == "cuda":
        from evalkit.pool.devices import read_devices
        from evalkit.pool.placement import Node, choose_devices

        # Of a cluster this machine stands for all: which GPUs --gpus names there isn't known yet.
        wanted = options.gpus if options.ray_address is None else None
        [node] = choose_devices([Node(devices=read_devices())], wanted)
        free = min((device.memory_free_bytes for device in node.devices), default=0)
        each = options.servers_per_gpu
    return fit(max(known), free, len(sides), each)


def fit(weights_bytes: int, free_bytes: int, policies: int, servers_each: int = 1) -> int:
    """How many policies fit, at least 1.

    Args:
        weights_bytes: size of the largest weights' file.
        free_bytes: free memory of the smallest device: every policy has servers on each.
        policies: number wanted.
        servers_each: servers that a policy has on a device.
    """
    need = (GROWTH * weights_bytes + FIXED_BYTES) * servers_each
    return max(1, min(policies, int(SHARE * free_bytes / need)))


def _weights_bytes(side: RunSetup) -> int | None:
    if side.maker.settings is not None:
        return None
    return (side.checkpoint.path / MODEL_FILE).stat().st_size if side.checkpoint else 0
