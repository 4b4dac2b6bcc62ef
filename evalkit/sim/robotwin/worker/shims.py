"""Changes to RoboTwin's modules made from outside. No file of the package is edited.

Each function says what it changes and why it can't change an outcome, or what outcome it changes.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import types
from typing import Any, Dict


def stub_missing_modules() -> None:
    """Put empty modules in the place of packages that RoboTwin imports but doesn't need for RGB and joint control.

    ``huggingface_hub`` serves downloads only, ``open3d`` point clouds only; of ``torch`` the task code calls
    ``manual_seed`` and names ``torch.multiprocessing``. A package that is installed is used as it is.
    """
    if not _installed("huggingface_hub"):
        _module("huggingface_hub", snapshot_download=None)
    if not _installed("open3d"):
        _module("open3d")
    if not _installed("torch"):
        _module("torch.multiprocessing")
        _module("torch", manual_seed=lambda seed: None, multiprocessing=sys.modules["torch.multiprocessing"])


def set_renderer(shader: str, shadow_map_px: int, samples: int = 32) -> None:
    """Make RoboTwin's scenes render with ``shader`` instead of its ray tracer, which needs a GPU.

    RoboTwin calls four functions of ``sapien.render`` at every reset. ``shader="rt"`` leaves them alone. For the
    rasterizing shaders, only the directional light casts shadows (``shadow_map_px`` texels square; 0: none): point
    lights would need six maps each. Changes pictures, never physics; part of the backend's fingerprint.
    """
    import sapien.render
    from sapien.wrapper.scene import Scene

    if shader == "rt":
        return
    set_shader = sapien.render.set_camera_shader_dir
    sapien.render.set_camera_shader_dir = lambda _folder: set_shader(shader)
    for name in ("set_ray_tracing_samples_per_pixel", "set_ray_tracing_path_depth", "set_ray_tracing_denoiser"):
        setattr(sapien.render, name, lambda *_args, **_kwargs: None)

    add_directional, add_point = Scene.add_directional_light, Scene.add_point_light

    def directional(self: Any, direction: Any, color: Any, **_kwargs: Any) -> Any:
        shadow: Dict[str, Any] = {"shadow": False}
        if shadow_map_px:
            # The map covers a square of 2 * shadow_scale metres around `position`: the table is 1.2 m wide.
            shadow = {
                "shadow": True,
                "shadow_scale": 0.9,
                "shadow_near": -3.0,
                "shadow_far": 3.0,
                "shadow_map_size": shadow_map_px,
                "position": [0.0, 0.0, 0.74],
            }
        return add_directional(self, direction, color, **shadow)

    def point(self: Any, position: Any, color: Any, **_kwargs: Any) -> Any:
        return add_point(self, position, color, shadow=False)

    Scene.add_directional_light, Scene.add_point_light = directional, point


def install_planner(path: str, class_name: str) -> None:
    """Load a planner class from a file and put it where RoboTwin looks for cuRobo's."""
    import importlib

    spec = importlib.util.spec_from_file_location("evalkit_planner", path)
    if spec is None or spec.loader is None:
        raise ImportError("no planner at {}".format(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules["evalkit_planner"] = module
    spec.loader.exec_module(module)
    planner = getattr(module, class_name)
    for name in ("planner", "robot"):
        setattr(importlib.import_module("robotwin.envs.robot." + name), "CuroboPlanner", planner)  # noqa: B010


def silence_step_counter() -> None:
    """Keep RoboTwin's per-action counter, which overwrites itself with carriage returns, out of the log."""
    from robotwin.envs import _base_task

    def quiet(*args: Any, **kwargs: Any) -> None:
        if kwargs.get("end") != "\r":
            print(*args, **kwargs)

    _base_task.print = quiet


def reset_process_state(seed: int) -> None:
    """Undo what earlier scenes left in the process, so that a scene depends on its seed alone.

    RoboTwin seeds numpy but not ``random``, and the clutter generator shifts its own default argument in place at
    every reset of the two tasks whose table isn't centred.
    """
    import random

    import numpy as np
    from robotwin.envs._base_task import Base_Task

    random.seed(seed)
    np.random.seed(seed)
    Base_Task.get_cluttered_table.__defaults__ = (10, [-0.59, 0.59], [-0.34, 0.34], [0.741])


def _installed(name: str) -> bool:
    return name in sys.modules or importlib.util.find_spec(name) is not None


def _module(name: str, **contents: Any) -> None:
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    attributes: Dict[str, Any] = contents
    module.__dict__.update(attributes)
    sys.modules[name] = module
