"""Flow matching on action chunks: the training loss and the integration at inference.

The path from noise to action is a straight line, ``x_t = (1 - t) noise + t action``; its velocity is
``action - noise`` (rectified flow / conditional flow matching with linear paths).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

TIME_EXPONENT = 1.5
"""Training noise levels ``1 - t`` follow Beta(1.5, 1): noisy times, where the chunk is decided, come more often."""

Velocity = Callable[[Tensor, Tensor], Tensor]
"""(actions (B, K, A), time (B,)) → velocity (B, K, A)."""


def draw_times(uniform: Tensor) -> Tensor:
    """Flow times for uniform numbers in [0, 1)."""
    return 1 - uniform ** (1 / TIME_EXPONENT)


def flow_matching_loss(velocity: Velocity, actions: Tensor, noise: Tensor, uniform: Tensor) -> Tensor:
    """Mean squared error of the velocity.

    Args:
        velocity: the network, conditioned.
        actions: (B, K, A) normalised targets.
        noise: (B, K, A) standard normal.
        uniform: (B,) in [0, 1).

    Returns:
        Scalar, float32.
    """
    time = draw_times(uniform)
    mixed = torch.lerp(noise, actions, time[:, None, None])
    error = velocity(mixed, time).float() - (actions - noise)
    return error.square().mean()


def integrate(velocity: Velocity, noise: Tensor, steps: int) -> Tensor:
    """Carry noise to actions by ``steps`` Euler steps.

    Args:
        velocity: the network, conditioned.
        noise: (B, K, A) standard normal.
        steps: number of equal steps from time 0 to 1.

    Returns:
        (B, K, A) normalised actions.
    """
    x = noise
    for index in range(steps):
        time = torch.full((noise.shape[0],), index / steps, device=noise.device, dtype=torch.float32)
        x = x + velocity(x, time) / steps
    return x
