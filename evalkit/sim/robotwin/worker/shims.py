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

    RoboTwin calls four functions of ``sapien.render`` at every reset. ``shader="rt"`` leaves them alone.

    - ``"soft"``, evalkit's own (``shaders/soft``): RoboTwin's three lights and ambient light, each of the three with a
      shadow map of ``shadow_map_px`` texels square. A point light becomes a spot light aimed at the table, because a
      point light would need six maps; the shader lets it shine everywhere all the same. Darker where surfaces meet,
      as the ray tracer has it; edges smoothed; exposure 0.9, so that the white table isn't quite white.
    - SAPIEN's ``"minimal"`` and ``"default"``: only the directional light casts shadows.

    ``shadow_map_px`` 0: no shadows. Changes pictures, never physics; part of the backend's fingerprint.
    """
    import os

    import numpy as np
    import sapien.render
    from sapien.wrapper.scene import Scene

    if shader == "rt":
        return
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shaders", shader)
    soft = os.path.isdir(own)
    set_shader = sapien.render.set_camera_shader_dir
    sapien.render.set_camera_shader_dir = lambda _folder: set_shader(own if soft else shader)
    for name in ("set_ray_tracing_samples_per_pixel", "set_ray_tracing_path_depth", "set_ray_tracing_denoiser"):
        setattr(sapien.render, name, lambda *_args, **_kwargs: None)

    add_directional, add_point = Scene.add_directional_light, Scene.add_point_light
    table = np.array([0.0, 0.0, 0.74])

    def directional(self: Any, direction: Any, color: Any, **_kwargs: Any) -> Any:
        shadow: Dict[str, Any] = {"shadow": False}
        if shadow_map_px:
            # The map covers a square of 2 * shadow_scale metres around `position`: the table is 1.2 m wide.
            shadow = {
                "shadow": True,
                "shadow_scale": 0.8,
                "shadow_near": -3.0,
                "shadow_far": 3.0,
                "shadow_map_size": shadow_map_px,
                "position": table,
            }
        return add_directional(self, direction, color, **shadow)

    def point(self: Any, position: Any, color: Any, **_kwargs: Any) -> Any:
        if not (soft and shadow_map_px):
            return add_point(self, position, color, shadow=False)
        way = table - np.asarray(position, dtype=float)
        return self.add_spot_light(
            position,
            way / np.sqrt((way * way).sum()),
            inner_fov=1.3,
            outer_fov=1.3,
            color=color,
            shadow=True,
            shadow_near=0.3,
            shadow_far=4.0,
            shadow_map_size=shadow_map_px,
        )

    Scene.add_directional_light, Scene.add_point_light = directional, point


def silence_step_counter(base_task: types.ModuleType) -> None:
    """Keep RoboTwin's per-action counter, which overwrites itself with carriage returns, out of the log."""

    def quiet(*args: Any, **kwargs: Any) -> None:
        if kwargs.get("end") != "\r":
            print(*args, **kwargs)

    base_task.print = quiet  # type: ignore[attr-defined]


def sort_file_lists() -> None:
    """Make ``glob.glob`` return sorted names: five tasks draw an object's id by its place in that list.

    The order of a folder's entries differs between file systems, and with it the object that a seed brings. Sorted is
    an order that a RoboTwin evaluation can meet, and the same one everywhere.
    """
    import glob

    unsorted = glob.glob

    def ordered(*args: Any, **kwargs: Any) -> Any:
        found = unsorted(*args, **kwargs)
        return sorted(found) if _order["sorted"] else found

    glob.glob = ordered


def leave_file_lists(as_they_come: bool) -> None:
    """Let ``glob.glob`` answer in the file system's order, as RoboTwin's own process has it; or sorted again."""
    _order["sorted"] = not as_they_come


_order: Dict[str, bool] = {"sorted": True}


def mend_place_fan() -> None:
    """Let ``place_fan`` be set up: package 0.1.3 calls ``Reward(...)`` there, a class that takes no arguments.

    Its neighbours call ``Reward.build_top`` with the same parts; so does the name put in its place. The object made is
    read by the package's reinforcement-learning rewards alone: no placement, expert, action or success check looks at
    it, so no outcome can change. A release whose class takes the arguments is left alone.
    """
    from robotwin.envs import place_fan

    factory = place_fan.Reward
    if factory.__init__ is object.__init__:
        place_fan.Reward = lambda **parts: factory.build_top({"type": "Serial", **parts})


NOTED_BY_THE_EXPERT = ("open_laptop", "place_object_scale", "put_object_cabinet")
"""Tasks whose success check reads what their expert writes down before it moves: which arm acts, where things were."""


def note_what_the_expert_notes(env: Any, task: str) -> None:
    """Let a scene be judged that no expert has run in, as RoboTwin's evaluation has it done beforehand.

    Runs the expert of three tasks with planning marked as failed, so that it writes its notes and every motion in it
    is left out. Without them the first success check raises; nothing else reads them, so no other outcome can change.
    """
    if task in NOTED_BY_THE_EXPERT:
        env.plan_success = False
        try:
            env.play_once()
        finally:
            env.plan_success = True


def free_closed_scenes() -> None:
    """Give back what closed scenes leave: Python objects in cycles, and the renderer's copies of meshes and textures.

    RoboTwin's ``close_env`` does neither; under demo_randomized a process would grow by 3 MB a scene until it holds
    every texture there is. Files are read again when next needed, so that no picture and no outcome changes.
    """
    import gc

    import sapien.render

    gc.collect()
    sapien.render.clear_cache()


def _installed(name: str) -> bool:
    return name in sys.modules or importlib.util.find_spec(name) is not None


def _module(name: str, **contents: Any) -> None:
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    attributes: Dict[str, Any] = contents
    module.__dict__.update(attributes)
    sys.modules[name] = module
