"""One stand-in object and the files RoboTwin reads for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from evalkit.standin.frames import Matrix, point
from evalkit.standin.glb import Paint, Part, encode
from evalkit.standin.meshes import Mesh

_COLLISION_PAINT = Paint((0.5, 0.5, 0.5))


@dataclass(frozen=True)
class Model:
    """A task object.

    Attributes:
        name: RoboTwin's folder name, e.g. ``"020_hammer"``.
        number: RoboTwin's id of the variant.
        visual: what is seen.
        collision: convex pieces that touch; kept few and plain.
        grasps: contact frames in RoboTwin's order (tasks name them by position).
        points: functional points in RoboTwin's order.
        stable: whether the randomised setting may strew it about as clutter.
    """

    name: str
    number: int
    visual: Sequence[Part]
    collision: Sequence[Mesh]
    grasps: Sequence[Matrix]
    points: Sequence[Matrix] = field(default_factory=lambda: (point((0.0, 0.0, 0.0)),))
    stable: bool = False

    def files(self) -> Mapping[str, bytes]:
        """File contents by path under ``assets/objects``."""
        folder, n = f"{self.name}", self.number
        return {
            f"{folder}/visual/base{n}.glb": encode(self.visual),
            f"{folder}/collision/base{n}.glb": encode([Part(mesh, _COLLISION_PAINT) for mesh in self.collision]),
            f"{folder}/model_data{n}.json": (json.dumps(self.annotation(), indent=1) + "\n").encode(),
        }

    def annotation(self) -> dict[str, object]:
        """The keys of ``model_data<id>.json``."""
        low = np.min([part.mesh.bounds_m()[0] for part in self.visual], axis=0)
        high = np.max([part.mesh.bounds_m()[1] for part in self.visual], axis=0)
        identity = np.eye(4).tolist()
        return {
            "center": ((low + high) / 2).round(6).tolist(),
            "extents": (high - low).round(6).tolist(),
            "scale": [1.0, 1.0, 1.0],
            "target_pose": [point((0.0, round(float(high[1]), 6), 0.0))],
            "contact_points_pose": list(self.grasps),
            "functional_matrix": list(self.points),
            "orientation_point": [identity],
            "transform_matrix": identity,
            "contact_points_group": [list(range(len(self.grasps)))],
            "contact_points_mask": [True],
            "stable": self.stable,
        }
