"""Where everything in a scene is: as a digest, and as numbers."""

from __future__ import annotations

import hashlib
from typing import Any, Dict, List

import numpy as np


def state_digest(scene: Any, robot: Any) -> str:
    """16 hex digits over float32 joint positions and poses of all things in the scene, in creation order.

    The robot stands where it stands: of its articulations only the joints count.
    """
    digest = hashlib.sha256()
    for articulation in scene.get_all_articulations():
        digest.update(np.ascontiguousarray(articulation.get_qpos(), dtype=np.float32).tobytes())
        if articulation not in (robot.left_entity, robot.right_entity):
            root = articulation.get_root_pose()
            digest.update(np.concatenate([root.p, root.q]).astype(np.float32).tobytes())
    for actor in scene.get_all_actors():
        pose = actor.get_pose()
        digest.update(np.concatenate([pose.p, pose.q]).astype(np.float32).tobytes())
    return digest.hexdigest()[:16]


def poses(scene: Any) -> Dict[str, List[List[float]]]:
    """Joint positions of the articulations, xyz and wxyz of the other things, in creation order."""
    actors = [actor.get_pose() for actor in scene.get_all_actors()]
    return {
        "joints": [np.asarray(one.get_qpos(), float).tolist() for one in scene.get_all_articulations()],
        "objects": [[*map(float, pose.p), *map(float, pose.q)] for pose in actors],
    }
