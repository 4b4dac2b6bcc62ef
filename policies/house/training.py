"""How the house policy is trained: its settings, augmentation on the device, and the glue to loss and network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from evalkit.core.errors import UserError
from evalkit.policy.checkpoint import spec_to_json
from evalkit.policy.contract import CameraName, CameraSpec, PolicySpec
from evalkit.train.config import from_mapping
from evalkit.train.dataset import Dataset
from evalkit.train.recipe import Batch, Blueprint, DataRequest, Trainable

from . import HouseOptions
from .loss import flow_matching_loss
from .network import HouseNetwork, NetworkConfig
from .preprocessing import ARM_MASK, Normalisation, resize_image, text_features

CAMERAS: tuple[CameraName, ...] = ("head_camera", "left_camera", "right_camera")


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """Changes of a training sample that must not change what is done."""

    shift_fraction: float = 0.016
    """Largest shift of a picture, as a fraction of its width; each camera is shifted on its own."""
    brightness: float = 0.1
    """Largest offset, on the scale where a picture spans [-1, 1]."""
    contrast: float = 0.15
    """Largest relative change."""
    tint: float = 0.05
    """Largest relative change of a single colour channel."""
    state_noise_rad: float = 0.01
    """Standard deviation added to the joints; the targets stay, so the network learns to come back to the path."""


@dataclass(frozen=True, kw_only=True)
class HouseSettings:
    """The policy's part of a training configuration."""

    execute_steps: int = 16
    network: NetworkConfig = field(default_factory=NetworkConfig)
    augmentation: Augmentation = field(default_factory=Augmentation)
    options: HouseOptions = field(default_factory=HouseOptions)

    def __post_init__(self) -> None:
        if not 1 <= self.execute_steps <= self.network.chunk_steps:
            raise UserError(
                f"execute_steps is {self.execute_steps}: give 1 to network.chunk_steps ({self.network.chunk_steps})"
            )
        if self.network.cameras != len(CAMERAS):
            raise UserError(f"network.cameras is {self.network.cameras}: policy house sees {len(CAMERAS)} cameras")
        if self.options.precision != "float32":
            raise UserError(f"options.precision is {self.options.precision!r}: policy house runs in float32")


class HouseBlueprint:
    """Settings resolved, data not seen yet."""

    def __init__(self, settings: HouseSettings) -> None:
        self._settings = settings
        network = settings.network
        self.request = DataRequest(
            cameras=CAMERAS,
            height_px=network.image_height_px,
            width_px=network.image_width_px,
            chunk_steps=network.chunk_steps,
            prepare_image=partial(resize_image, height_px=network.image_height_px, width_px=network.image_width_px),
            prepare_image_name="house: area average",
            encode_text=partial(text_features, buckets=network.text_buckets),
        )

    def settings(self) -> dict[str, Any]:
        """All settings, defaults included."""
        return asdict(self._settings)

    def build(self, dataset: Dataset, *, seed: int) -> Trainable:
        """Statistics of the data, and a network initialised from ``seed``."""
        states = dataset.states[dataset.sample_frame].cpu().numpy()
        targets = (dataset.targets(place) for place in range(dataset.chunk_steps))
        normalisation = Normalisation.compute(states, targets, dataset.digest)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = HouseNetwork(self._settings.network)
        return HouseTrainable(self._settings, network.to(dataset.device), normalisation)


class HouseTrainable:
    """Network and loss."""

    def __init__(self, settings: HouseSettings, network: HouseNetwork, normalisation: Normalisation) -> None:
        self.module = network
        self._settings, self._normalisation = settings, normalisation
        self._forward: Callable[..., Tensor] = network
        device = next(network.parameters()).device

        def constant(values: np.ndarray[Any, Any]) -> Tensor:
            return torch.from_numpy(values.astype(np.float32)).to(device)

        self._arm_mask = constant(ARM_MASK)
        self._state_mean, self._state_std = constant(normalisation.state_mean), constant(normalisation.state_std)
        self._action_mean, self._action_std = constant(normalisation.action_mean), constant(normalisation.action_std)

    def compile(self) -> None:
        """Compile the network's training path."""
        self._forward = torch.compile(self.module, dynamic=False)

    def loss(self, batch: Batch, generator: torch.Generator) -> Tensor:
        """Flow-matching loss of a batch, augmented."""
        augmentation = self._settings.augmentation
        images = augment_images(batch.images, augmentation, generator)
        noise = _normal(batch.state.shape, batch.state, generator)
        state = batch.state + noise * self._arm_mask * augmentation.state_noise_rad
        deltas = batch.actions - (state * self._arm_mask)[:, None]
        actions = (deltas - self._action_mean) / self._action_std
        normalised_state = (state - self._state_mean) / self._state_std
        return flow_matching_loss(
            lambda noisy, time: self._forward(images, normalised_state, batch.text, noisy, time),
            actions,
            _normal(actions.shape, actions, generator),
            _uniform((len(actions),), actions, generator),
        )

    def policy_file(self) -> dict[str, Any]:
        """Everything the adapter needs beside the weights."""
        settings, network = self._settings, self._settings.network
        spec = PolicySpec(
            name="house",
            cameras=tuple(CameraSpec(name=name) for name in CAMERAS),
            action_type="qpos",
            chunk_steps=network.chunk_steps,
            execute_steps=settings.execute_steps,
            needs_instruction=True,
            stateful=False,
        )
        return {
            "adapter": "house",
            "spec": spec_to_json(spec),
            "options": asdict(settings.options),
            "network": asdict(network),
            "preprocessing": {
                "colour_order": "RGB",
                "resize": "area average (Pillow BOX)",
                "height_px": network.image_height_px,
                "width_px": network.image_width_px,
                "pixel_range": [-1, 1],
                "actions": "joints relative to the present commanded state, grippers absolute",
                "text": "crc32 buckets of words, word pairs and character triples",
            },
            "normalisation": self._normalisation.to_json(),
        }


class HouseRecipe:
    """Entry point for the trainer."""

    def configure(self, settings: Mapping[str, Any]) -> Blueprint:
        """Check the settings.

        Raises:
            UserError: a setting is unknown, of the wrong type or out of range.
        """
        return HouseBlueprint(from_mapping(HouseSettings, settings, "house setting"))


RECIPE = HouseRecipe()


def augment_images(images: Tensor, augmentation: Augmentation, generator: torch.Generator) -> Tensor:
    """Shift, tint and scale pictures.

    Args:
        images: (M, C, H, W, 3) uint8.
        augmentation: how strongly.
        generator: on the pictures' device.

    Returns:
        (M, C, 3, H, W) float32, about [-1, 1]; borders repeat where a shift uncovers them.
    """
    samples, cameras, height, width, _ = images.shape
    limit = round(augmentation.shift_fraction * width)
    device = images.device

    def shifted(length: int) -> Tensor:
        shift = torch.randint(-limit, limit + 1, (samples, cameras, 1), generator=generator, device=device)
        return (torch.arange(length, device=device) + shift).clamp(0, length - 1)

    sample = torch.arange(samples, device=device)[:, None, None, None]
    camera = torch.arange(cameras, device=device)[None, :, None, None]
    moved = images[sample, camera, shifted(height)[..., None], shifted(width)[:, :, None]]
    pixels = moved.permute(0, 1, 4, 2, 3).float() / 127.5 - 1

    def draw(channels: int, span: float) -> Tensor:
        return (_uniform((samples, cameras, channels, 1, 1), pixels, generator) * 2 - 1) * span

    gain = (1 + draw(1, augmentation.contrast)) * (1 + draw(3, augmentation.tint))
    return pixels * gain + draw(1, augmentation.brightness)


def _normal(shape: tuple[int, ...], like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, device=like.device)


def _uniform(shape: tuple[int, ...], like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.rand(shape, generator=generator, device=like.device)
