"""House policy: a compact language-conditioned flow-matching policy over action chunks, on three cameras and state.

Row-wise reproducible: the noise of a decision depends on the episode's policy seed and step only; on a CPU rows are
computed one by one, on a GPU always in batches of ``cuda_slots`` rows, so that neighbours can't change a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file

from evalkit.core.errors import PolicyError, UserError
from evalkit.core.rng import stream
from evalkit.policy.checkpoint import MODEL_FILE, read_policy_file, spec_from_json
from evalkit.policy.contract import ActionChunk, EpisodeInfo, Observation, PolicySpec

from .loss import integrate
from .network import HouseNetwork, NetworkConfig
from .preprocessing import Normalisation, image_stack, resize_image, text_features

NEEDS_CHECKPOINT = True


@dataclass(frozen=True, kw_only=True)
class HouseOptions:
    """How the network is run; stored in the checkpoint."""

    euler_steps: int = 5
    cuda_slots: int = 8
    """Rows of every forward pass on a GPU; empty slots are filled by repeating the first row."""
    precision: str = "float32"
    """The only one: float32 without TF32, on every device."""


class HousePolicy:
    """A trained network behind the policy contract.

    Args:
        spec: what the policy needs and gives.
        network: on its device, in evaluation mode.
        normalisation: statistics of the training data.
        options: how the network is run.
    """

    def __init__(
        self, spec: PolicySpec, network: HouseNetwork, normalisation: Normalisation, options: HouseOptions
    ) -> None:
        self.spec = spec
        self._network, self._normalisation, self._options = network, normalisation, options
        self._device = next(network.parameters()).device
        self._seeds: dict[str, int] = {}
        self._text = lru_cache(maxsize=1024)(lambda text: text_features(text, network.config.text_buckets))

    def reset(self, info: EpisodeInfo) -> None:
        """Remember the episode's seed; nothing else is kept between decisions."""
        self._seeds[info.session] = info.policy_seed

    def act(self, observation: Observation) -> ActionChunk:
        """Decide for one observation. Returns (chunk_steps, 14)."""
        return self.act_batch([observation])[0]

    def act_batch(self, observations: Sequence[Observation]) -> list[ActionChunk]:
        """Decide for several sessions; row i is bitwise what ``act`` gives for observation i alone.

        Raises:
            PolicyError: an observation without a reset session, or without a camera.
        """
        slots = self._options.cuda_slots if self._device.type == "cuda" else 1
        rows = [self._row(observation) for observation in observations]
        chunks: list[ActionChunk] = []
        for start in range(0, len(rows), slots):
            group = rows[start : start + slots]
            filled = group + [group[0]] * (slots - len(group))
            normalised = self._forward(*(np.stack(column) for column in zip(*filled, strict=True)))
            chunks += [
                self._normalisation.actions(output, observation.state)
                for output, observation in zip(normalised, observations[start : start + slots], strict=False)
            ]
        return chunks

    def close(self) -> None:
        """Forget all sessions."""
        self._seeds.clear()

    def _row(self, observation: Observation) -> tuple[NDArray[Any], ...]:
        """Pictures, state, text and noise of one decision."""
        if observation.session not in self._seeds:
            raise PolicyError("session", f"policy {self.spec.name} got an observation of session "
                              f"{observation.session!r} before its reset")  # fmt: skip
        config = self._network.config
        missing = [camera.name for camera in self.spec.cameras if camera.name not in observation.images]
        if missing:
            raise PolicyError("camera", f"policy {self.spec.name} needs camera {missing[0]}, which wasn't delivered")
        pictures = [
            resize_image(observation.images[camera.name], config.image_height_px, config.image_width_px)
            for camera in self.spec.cameras
        ]
        random = stream(self._seeds[observation.session], "house", observation.step)
        noise = random.standard_normal((config.chunk_steps, config.action_dim), np.float32)
        state = self._normalisation.state(observation.state)
        return image_stack(pictures), state, self._text(observation.instruction), noise

    def _forward(self, *arrays: NDArray[Any]) -> NDArray[np.float32]:
        images, state, text, noise = (torch.from_numpy(array).to(self._device) for array in arrays)
        exact = torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False)
        with torch.inference_mode(), exact:
            memory = self._network.encode(images, state, text)
            out = integrate(lambda x, t: self._network.velocity(x, t, memory), noise, self._options.euler_steps)
        result: NDArray[np.float32] = out.float().cpu().numpy()
        return result


def load(checkpoint: Path | None, *, device: str) -> HousePolicy:
    """Load a trained checkpoint.

    Args:
        checkpoint: a step folder.
        device: ``"cpu"``, ``"cuda"`` or ``"cuda:<n>"``.

    Raises:
        UserError: no checkpoint is given, or it doesn't hold what this adapter writes.
    """
    if checkpoint is None:
        raise UserError("policy house needs a checkpoint: give --ckpt a step folder, a run folder or a name")
    values = read_policy_file(checkpoint)
    try:
        network_values = dict(values["network"])
        for name in ("trunk_channels", "trunk_blocks"):
            network_values[name] = tuple(network_values[name])
        network = HouseNetwork(NetworkConfig(**network_values))
        normalisation = Normalisation.from_json(values["normalisation"])
        options = HouseOptions(**values["options"])
        spec = spec_from_json(values["spec"])
        weights = load_file(checkpoint / MODEL_FILE)
        network.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{checkpoint} isn't a checkpoint of policy house: {type(error).__name__}: {reason}") from error
    return HousePolicy(spec, network.eval().to(device), normalisation, options)
