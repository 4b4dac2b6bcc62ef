"""Renders one small picture and says what it looks like. Runs in RoboTwin's interpreter; needs SAPIEN and numpy only.

The last line of its output is JSON: ``{"device", "shape", "mean", "std", "seconds"}``.
"""

from __future__ import annotations

import json
import time
from typing import Any


def render() -> dict[str, Any]:
    """A red box under one lamp, 64x48, with the cheapest shader."""
    import numpy
    import sapien

    started = time.monotonic()
    sapien.render.set_camera_shader_dir("minimal")
    scene = sapien.Scene()
    scene.set_ambient_light([0.4, 0.4, 0.4])
    scene.add_directional_light([0, 1, -1], [1, 1, 1])
    builder = scene.create_actor_builder()
    builder.add_box_visual(half_size=[0.1, 0.1, 0.1], material=[0.8, 0.2, 0.1])
    builder.build_static()
    camera = scene.add_camera("probe", 64, 48, 1.0, 0.01, 10)
    camera.entity.set_pose(sapien.Pose([-0.6, 0, 0.3], [0.97, 0, 0.23, 0]))
    scene.update_render()
    camera.take_picture()
    picture = numpy.asarray(camera.get_picture("Color"))[..., :3]
    return {
        "device": scene.render_system.device.name,
        "shape": list(picture.shape),
        "mean": float(picture.mean()),
        "std": float(picture.std()),
        "seconds": time.monotonic() - started,
    }


if __name__ == "__main__":
    print(json.dumps(render()))
