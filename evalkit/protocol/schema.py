"""RoboTwin's task configuration schema: every key, its type and range, and whether it can change a trial.

Source: ``task_config/demo_clean.yml`` (stable_2.0) and ``env_cfg/task_config/demo_clean.yml`` (main), which adds
``eval_instruction``. All keys are required, as in RoboTwin's own files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["bool", "count", "fraction", "distance_m", "text", "camera", "split", "embodiment"]

CAMERA_SIZES_PX: Mapping[str, tuple[int, int]] = {
    "L515": (180, 320),
    "Large_L515": (360, 640),
    "D435": (240, 320),
    "Large_D435": (480, 640),
}
"""Camera type -> (height, width). Source: RoboTwin ``_camera_config.yml``."""

ARM_JOINTS: Mapping[str, int] = {"aloha-agilex": 6, "ARX-X5": 6, "piper": 6, "franka-panda": 7, "ur5-wsg": 6}
"""Embodiment -> joints of one arm. Source: RoboTwin ``_embodiment_config.yml`` and its URDF files."""


@dataclass(frozen=True)
class Key:
    """One setting.

    ``in_digest`` is False for settings that can't change a trial: the viewer, how many demonstrations are collected
    and where they go, videos, memory management, and point clouds, which no observation of evalkit holds.
    """

    kind: Kind
    in_digest: bool = True


SCHEMA: Mapping[str, Key] = {
    "render_freq": Key("count", in_digest=False),
    "episode_num": Key("count", in_digest=False),
    "use_seed": Key("bool", in_digest=False),
    "save_freq": Key("count"),  # RoboTwin redraws crazy lights at this interval while an expert runs
    "embodiment": Key("embodiment"),
    "eval_instruction": Key("split"),
    "language_num": Key("count"),
    "domain_randomization.random_background": Key("bool"),
    "domain_randomization.cluttered_table": Key("bool"),
    "domain_randomization.clean_background_rate": Key("fraction"),
    "domain_randomization.random_head_camera_dis": Key("distance_m"),
    "domain_randomization.random_table_height": Key("distance_m"),
    "domain_randomization.random_light": Key("bool"),
    "domain_randomization.crazy_random_light_rate": Key("fraction"),
    "camera.head_camera_type": Key("camera"),
    "camera.wrist_camera_type": Key("camera"),
    "camera.collect_head_camera": Key("bool"),
    "camera.collect_wrist_camera": Key("bool"),
    "data_type.rgb": Key("bool"),
    "data_type.third_view": Key("bool"),
    "data_type.depth": Key("bool"),
    "data_type.pointcloud": Key("bool"),
    "data_type.observer": Key("bool"),
    "data_type.endpose": Key("bool"),
    "data_type.qpos": Key("bool"),
    "data_type.mesh_segmentation": Key("bool"),
    "data_type.actor_segmentation": Key("bool"),
    "pcd_down_sample_num": Key("count", in_digest=False),
    "pcd_crop": Key("bool", in_digest=False),
    "save_path": Key("text", in_digest=False),
    "clear_cache_freq": Key("count", in_digest=False),
    "collect_data": Key("bool", in_digest=False),
    "eval_video_log": Key("bool", in_digest=False),
}
"""Dotted key -> its kind."""

GROUPS = tuple(dict.fromkeys(key.partition(".")[0] for key in SCHEMA if "." in key))

_WANTED: Mapping[Kind, str] = {
    "bool": "true or false",
    "count": "a whole number, 0 or more",
    "fraction": "a number from 0 to 1",
    "distance_m": "a distance in metres, 0 or more",
    "text": "text",
    "camera": f"one of {', '.join(CAMERA_SIZES_PX)}",
    "split": "seen or unseen",
    "embodiment": f"[name] or [left, right, distance in metres] with names from {', '.join(ARM_JOINTS)}",
}


def problem_of(key: str, value: Any) -> str | None:
    """What the setting should have been, or None if ``value`` is fine."""
    kind = SCHEMA[key].kind
    return None if _fits(kind, value) else _WANTED[kind]


def normal(key: str, value: Any) -> Any:
    """The value in the one form that is hashed: RoboTwin's files write both 1 and 1.0."""
    kind = SCHEMA[key].kind
    if kind in ("fraction", "distance_m"):
        return float(value)
    if kind == "embodiment":
        return [name.rstrip("/") if isinstance(name, str) else float(name) for name in value]
    return value


def _fits(kind: Kind, value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value == value  # not NaN
    match kind:
        case "bool":
            return isinstance(value, bool)
        case "count":
            return isinstance(value, int) and is_number and value >= 0
        case "fraction":
            return is_number and 0 <= value <= 1
        case "distance_m":
            return is_number and 0 <= value < 10
        case "text":
            return isinstance(value, str)
        case "camera":
            return isinstance(value, str) and value in CAMERA_SIZES_PX
        case "split":
            return value in ("seen", "unseen")
        case "embodiment":
            return _is_embodiment(value)


def _is_embodiment(value: Any) -> bool:
    if not isinstance(value, list) or len(value) not in (1, 3):
        return False
    names_known = all(isinstance(name, str) and name.rstrip("/") in ARM_JOINTS for name in value[:2])
    return names_known and (len(value) == 1 or _fits("distance_m", value[2]))
