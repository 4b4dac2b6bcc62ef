"""Golden observations, which travel with evalkit, and golden actions, which are kept with a policy.

The observations are moments of an expert's demonstrations in the stand-in world: real states, poses and pictures, and
what the expert did next. Golden actions are what a policy answered to them where it was known to be right; a policy
that answers otherwise somewhere else isn't the same one there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from evalkit.core.errors import UserError
from evalkit.core.files import atomic_path
from evalkit.core.hashing import digest, file_digest
from evalkit.core.locations import bundled
from evalkit.policy.contract import ActionChunk, Observation, PolicySpec

INDEX = "observations.json"
ROWS, DECIMALS = 64, 8
"""Actions of a chunk that are kept, and their decimals."""
TOLERANCES: dict[str, float] = {"cpu float32": 1e-5, "cuda float32": 1e-3, "bfloat16": 2e-2, "float16": 2e-2}
"""Where and in what numbers a policy computes -> how far its actions may be off (rad, m, share of a gripper's way).

The same code on the same machine gives the same bits; another CPU or another version of a tensor library adds float32
sums in another order; a GPU does so from kernel to kernel; half-precision numbers have three decimal digits.
"""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One observation, and what the expert did next."""

    name: str
    """Task and frame, for messages."""
    observation: Observation
    then_state: NDArray[np.float64]
    """(steps, 14) the expert's next actions."""
    then_endpose: NDArray[np.float64]
    """(steps, 16) the same as poses."""

    def then(self, action_type: str) -> NDArray[np.float64]:
        """The expert's next actions of that kind."""
        return self.then_state if action_type == "qpos" else self.then_endpose


def golden_moments(spec: PolicySpec, root: Path | None = None) -> list[Moment]:
    """The golden observations, with the cameras a policy declares.

    Args:
        spec: the policy's declaration.
        root: where they lie; those that travel with evalkit by default.

    Returns:
        Empty if the policy wants a camera or a resolution that they don't have.
    """
    found: list[Moment] = []
    for index in sorted((root or bundled("policies") / "golden").glob(f"*/{INDEX}")):
        values = json.loads(index.read_text())
        for row in values["moments"]:
            images: dict[str, NDArray[np.uint8]] = {}
            for camera in spec.cameras:
                name = row["pictures"].get(camera.name)
                picture = None if name is None else np.asarray(Image.open(index.parent / name).convert("RGB"))
                if picture is None or picture.shape != (camera.height_px, camera.width_px, 3):
                    return []
                images[camera.name] = picture
            found.append(
                Moment(
                    name=f"{values['task']} frame {row['frame']}",
                    observation=Observation(
                        session="golden",
                        step=row["frame"],
                        instruction=values["instruction"],
                        state=np.array(row["state"], np.float64),
                        endpose=np.array(row["endpose"], np.float64),
                        images=images,
                    ),
                    then_state=np.array(row["then_state"], np.float64),
                    then_endpose=np.array(row["then_endpose"], np.float64),
                )
            )
    return found


def golden_trajectory(action_type: str, root: Path | None = None) -> NDArray[np.float64]:
    """What the expert did at the golden moments, one after the other: (steps, 14 or 16)."""
    key = "then_state" if action_type == "qpos" else "then_endpose"
    indexes = sorted((root or bundled("policies") / "golden").glob(f"*/{INDEX}"))
    return np.concatenate([row[key] for index in indexes for row in json.loads(index.read_text())["moments"]])


def observations_digest(root: Path | None = None) -> str:
    """Names the golden observations."""
    folder = root or bundled("policies") / "golden"
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return digest({path.relative_to(folder).as_posix(): file_digest(path) for path in files})


@dataclass(frozen=True, kw_only=True)
class GoldenActions:
    """What a policy answered, and where."""

    policy: str
    """Its digest."""
    observations: str
    """``observations_digest`` of what it was shown."""
    device: str
    numbers: str
    """``float32``, ``bfloat16`` or ``float16``."""
    chunks: tuple[ActionChunk, ...]

    def tolerance(self, device: str, numbers: str) -> float:
        """How far the same policy's actions may be off, computed on another device or in other numbers."""
        places = [(self.device, self.numbers), (device, numbers)]
        return max(TOLERANCES[kind if kind in TOLERANCES else f"{place} {kind}"] for place, kind in places)


def write_actions(path: Path, actions: GoldenActions) -> None:
    """Write golden actions beside a policy."""
    values = {
        "policy": actions.policy,
        "observations": actions.observations,
        "device": actions.device,
        "numbers": actions.numbers,
        "chunks": [chunk[:ROWS].round(DECIMALS).tolist() for chunk in actions.chunks],
    }
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(values) + "\n")


def read_actions(path: Path) -> GoldenActions | None:
    """Golden actions of a policy; None if it has none.

    Raises:
        UserError: the file can't be read, or is about other observations.
    """
    if not path.is_file():
        return None
    try:
        values: dict[str, Any] = json.loads(path.read_text())
        found = GoldenActions(
            policy=values["policy"],
            observations=values["observations"],
            device=values["device"],
            numbers=values["numbers"],
            chunks=tuple(np.array(chunk, np.float64) for chunk in values["chunks"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"golden actions {path} can't be read ({error}): write them again with --write-golden"
        ) from error
    if found.observations != observations_digest():
        raise UserError(f"golden actions {path} answer other observations than these: write them with --write-golden")
    return found


def largest_difference(first: Sequence[ActionChunk], second: Sequence[ActionChunk]) -> float:
    """Over all numbers; infinite where the chunks have other shapes."""
    rows = [(ours[:ROWS], theirs[:ROWS]) for ours, theirs in zip(first, second, strict=True)]
    if any(ours.shape != theirs.shape for ours, theirs in rows):
        return float("inf")
    return max(float(np.abs(ours - theirs).max()) for ours, theirs in rows)
