"""What happens to pictures, arm states, actions and sentences on their way into and out of the network.

Used by training and inference alike, so that both see the same numbers.
"""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from evalkit.policy.chunk import GRIPPER_COLUMNS

GRIPPERS = GRIPPER_COLUMNS["qpos"]
DIMENSIONS = 14
ARM_MASK: NDArray[np.float64] = np.array([0.0 if column in GRIPPERS else 1.0 for column in range(DIMENSIONS)])
"""1 where an action is predicted relative to the present state (joints), 0 where it is absolute (grippers)."""
STATE_STD_FLOOR = 0.02
DELTA_STD_FLOOR_RAD = 0.005
"""Joints that hardly move in the data aren't blown up to unit variance."""
TEXT_FEATURES = 320
"""Length of the padded feature list; features beyond it (about sixty words) are left out."""


def resize_image(image: NDArray[np.uint8], height_px: int, width_px: int) -> NDArray[np.uint8]:
    """Area-average a (H, W, 3) uint8 RGB picture to (height_px, width_px, 3)."""
    if image.shape[:2] == (height_px, width_px):
        return image
    return np.asarray(Image.fromarray(image).resize((width_px, height_px), Image.Resampling.BOX))


def text_features(sentence: str, buckets: int) -> NDArray[np.int64]:
    """Hash a sentence into feature buckets: words, pairs of words, and the words' character triples.

    An unseen word still shares its triples with words seen in training, so its meaning fades instead of vanishing.

    Args:
        sentence: any text; case and punctuation are ignored.
        buckets: size of the embedding table; bucket 0 is padding.

    Returns:
        (TEXT_FEATURES,) distinct buckets in order of first use, padded by 0.
    """
    words = re.findall(r"[a-z0-9]+", sentence.lower())
    names = [f"w {word}" for word in words]
    names += [f"p {first} {second}" for first, second in itertools.pairwise(words)]
    for word in words:
        framed = f"^{word}$"
        names += [f"t {framed[i : i + 3]}" for i in range(len(framed) - 2)]
    ids = list(dict.fromkeys(zlib.crc32(name.encode()) % (buckets - 1) + 1 for name in names))[:TEXT_FEATURES]
    padded = np.zeros(TEXT_FEATURES, np.int64)
    padded[: len(ids)] = ids
    return padded


@dataclass(frozen=True, kw_only=True)
class Normalisation:
    """Statistics that bring states and action chunks to about zero mean and unit variance."""

    state_mean: NDArray[np.float64]
    """(14,)"""
    state_std: NDArray[np.float64]
    """(14,)"""
    action_mean: NDArray[np.float64]
    """(K, 14) of the joints' differences to the present state, by place in the chunk; 0.5 for grippers."""
    action_std: NDArray[np.float64]
    """(K, 14); 0.5 for grippers."""
    data_digest: str
    """Digest of the demonstrations the statistics were computed from."""

    @classmethod
    def compute(cls, states: NDArray[Any], targets: Iterable[NDArray[Any]], data_digest: str) -> Normalisation:
        """Statistics of training samples.

        Args:
            states: (M, 14) present states.
            targets: for each of K places in a chunk, (M, 14) absolute action targets.
            data_digest: digest of the demonstrations.
        """
        states = np.asarray(states, np.float64)
        deltas = (np.asarray(target, np.float64) - states * ARM_MASK for target in targets)
        moments = np.array([(delta.mean(0), delta.std(0)) for delta in deltas])
        arms = ARM_MASK.astype(bool)
        return cls(
            state_mean=states.mean(0),
            state_std=np.maximum(states.std(0), STATE_STD_FLOOR),
            action_mean=np.where(arms, moments[:, 0], 0.5),
            action_std=np.where(arms, np.maximum(moments[:, 1], DELTA_STD_FLOOR_RAD), 0.5),
            data_digest=data_digest,
        )

    def state(self, state: NDArray[np.float64]) -> NDArray[np.float32]:
        """(..., 14) state, normalised."""
        return ((state - self.state_mean) / self.state_std).astype(np.float32)

    def actions(self, normalised: NDArray[np.float32], state: NDArray[np.float64]) -> NDArray[np.float64]:
        """(K, 14) network output → absolute joint targets and grippers in [0, 1].

        Args:
            normalised: (K, 14).
            state: (14,) present commanded state.
        """
        actions = normalised.astype(np.float64) * self.action_std + self.action_mean + state * ARM_MASK
        columns = list(GRIPPERS)
        actions[:, columns] = np.clip(actions[:, columns], 0.0, 1.0)
        return actions

    def to_json(self) -> dict[str, Any]:
        """Plain mapping; ``from_json`` reads it back exactly."""
        arrays = ("state_mean", "state_std", "action_mean", "action_std")
        return {name: getattr(self, name).tolist() for name in arrays} | {"data_digest": self.data_digest}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Normalisation:
        """Inverse of ``to_json``.

        Raises:
            KeyError, ValueError: a field is missing or has another shape.
        """
        arrays = {name: np.array(values[name], np.float64) for name in values if name != "data_digest"}
        if arrays["state_mean"].shape != (DIMENSIONS,) or arrays["action_mean"].shape[1:] != (DIMENSIONS,):
            raise ValueError(f"normalisation has shapes { {k: v.shape for k, v in arrays.items()} }")
        return cls(**arrays, data_digest=values["data_digest"])


def image_stack(images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
    """C pictures (H, W, 3) uint8 → (C, 3, H, W) float32 in [-1, 1]."""
    return np.stack(images).transpose(0, 3, 1, 2).astype(np.float32) / np.float32(127.5) - np.float32(1)
