"""What the trainer asks of a policy: which data it wants, its network, and its loss.

A policy that can be trained has a module ``training`` beside its adapter, with a ``RECIPE`` of this shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

if TYPE_CHECKING:
    from evalkit.train.dataset import Dataset


@dataclass(frozen=True, kw_only=True)
class DataRequest:
    """What the policy wants to be given of each demonstration."""

    cameras: tuple[str, ...]
    height_px: int
    width_px: int
    chunk_steps: int
    prepare_image: Callable[[NDArray[np.uint8]], NDArray[np.uint8]]
    """(H, W, 3) RGB as stored → (height_px, width_px, 3); thread-safe."""
    prepare_image_name: str
    """Changes whenever ``prepare_image`` does: part of the name of cached pictures."""
    encode_text: Callable[[str], NDArray[np.int64]]
    """Sentence → feature list of fixed length."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Training samples on the device; M samples."""

    images: torch.Tensor
    """(M, cameras, height, width, 3) uint8 RGB."""
    state: torch.Tensor
    """(M, 14) float32."""
    actions: torch.Tensor
    """(M, chunk_steps, 14) float32, absolute."""
    text: torch.Tensor
    """(M, features) int64."""


class Trainable(Protocol):
    """A network with its loss, ready to be trained."""

    @property
    def module(self) -> torch.nn.Module:
        """The network; all its parameters are trained and saved, and it has no buffers."""
        ...

    def loss(self, batch: Batch, generator: torch.Generator) -> torch.Tensor:
        """Scalar float32 loss; all randomness from ``generator``; no synchronisation with the device."""
        ...

    def compile(self) -> None:
        """Compile the forward pass."""
        ...

    def policy_file(self) -> dict[str, Any]:
        """What ``policy.json`` says beside schema and step: adapter, spec, and all the adapter needs."""
        ...


class Blueprint(Protocol):
    """A policy with its settings resolved, before it has seen data."""

    request: DataRequest

    def settings(self) -> dict[str, Any]:
        """All settings with their defaults, for the training card."""
        ...

    def build(self, dataset: Dataset, *, seed: int) -> Trainable:
        """Compute statistics of the data and make the network, initialised from ``seed``, on the data's device."""
        ...


class Recipe(Protocol):
    """How a policy is trained."""

    def configure(self, settings: Mapping[str, Any]) -> Blueprint:
        """Check and resolve the policy's own settings.

        Raises:
            UserError: a setting is unknown, missing or out of range.
        """
        ...
