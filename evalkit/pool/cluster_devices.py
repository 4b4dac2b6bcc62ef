"""The GPUs of a cluster's nodes, each read on its node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evalkit.core.errors import EvalkitError, UserError
from evalkit.pool.devices import Device, read_devices
from evalkit.pool.ray_session import on_node, ray

LOOK_LIMIT_S = 120.0


def read_everywhere(nodes: Sequence[str]) -> dict[str, tuple[Device, ...]]:
    """Node -> the GPUs that may be used there. Needs a ``ray_session``.

    Args:
        nodes: Ray's ids.

    Raises:
        UserError: a node's GPUs can't be read.
    """
    read = ray.remote(num_cpus=0, max_retries=0)(_read)
    answers = {node: read.options(scheduling_strategy=on_node(node)).remote(node) for node in nodes}
    found: dict[str, tuple[Device, ...]] = {}
    for node, answer in answers.items():
        try:
            found[node] = ray.get(answer, timeout=LOOK_LIMIT_S)
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None)
            what = (
                str(cause) if isinstance(cause, EvalkitError) else f"{type(error).__name__} within {LOOK_LIMIT_S:g} s"
            )
            raise UserError(f"the GPUs of node {node[:8]} can't be read: {what}") from error
    return found


def _read(node: str) -> tuple[Device, ...]:
    import os

    # What Ray hides from a task without GPUs, the node still has; a restriction of its own would stand in the
    # environment that Ray was started in, and Ray then counts fewer GPUs.
    environment = {name: value for name, value in os.environ.items() if (name, value) != ("CUDA_VISIBLE_DEVICES", "")}
    return tuple(replace(device, node=node) for device in read_devices(environment))
