"""Whether a policy fits the robot and the task configuration. Checked before the first trial."""

from __future__ import annotations

from evalkit.core.errors import UserError
from evalkit.policy.contract import ACTION_DIMS, CameraSpec, PolicySpec
from evalkit.protocol.config import TaskConfig
from evalkit.protocol.schema import ARM_JOINTS, CAMERA_SIZES_PX

_FRONT_CAMERA_TYPE = "D435"
"""Fixed by the embodiment, not by the task configuration. Source: RoboTwin's aloha-agilex embodiment."""


def check(spec: PolicySpec, config: TaskConfig) -> None:
    """Pass if the policy can run under the configuration.

    Raises:
        UserError: what doesn't fit, with both values.
    """
    for camera in spec.cameras:
        _check_camera(spec, camera, config)
    _check_actions(spec, config)
    if spec.needs_instruction and config.settings["language_num"] == 0:
        raise UserError(f"policy {spec.name} needs an instruction; {config.name} has language_num: 0")


def _check_camera(spec: PolicySpec, camera: CameraSpec, config: TaskConfig) -> None:
    settings = config.settings["camera"]
    part = {"head_camera": "head", "left_camera": "wrist", "right_camera": "wrist"}.get(camera.name)
    if part is None:
        camera_type = _FRONT_CAMERA_TYPE
    else:
        if not settings[f"collect_{part}_camera"]:
            raise UserError(
                f"policy {spec.name} needs {camera.name}; {config.name} has camera.collect_{part}_camera: false"
            )
        camera_type = settings[f"{part}_camera_type"]
    if not config.settings["data_type"]["rgb"]:
        raise UserError(f"policy {spec.name} needs {camera.name}; {config.name} has data_type.rgb: false")
    height_px, width_px = CAMERA_SIZES_PX[camera_type]
    if (camera.height_px, camera.width_px) != (height_px, width_px):
        raise UserError(
            f"policy {spec.name} needs {camera.name} of {camera.height_px} x {camera.width_px} px; {config.name} has "
            f"{camera_type}, which gives {height_px} x {width_px} px (height x width)"
        )


def _check_actions(spec: PolicySpec, config: TaskConfig) -> None:
    if spec.action_type not in ACTION_DIMS:
        raise UserError(
            f"policy {spec.name} gives {spec.action_type} actions; RoboTwin's robot takes {' or '.join(ACTION_DIMS)}"
        )
    if not 1 <= spec.execute_steps <= spec.chunk_steps:
        raise UserError(
            f"policy {spec.name} executes {spec.execute_steps} actions of chunks of {spec.chunk_steps}: "
            "the first must be from 1 to the second"
        )
    embodiment = config.settings["embodiment"]
    left, right = embodiment[0], embodiment[1] if len(embodiment) == 3 else embodiment[0]
    joints = (ARM_JOINTS[left], ARM_JOINTS[right])
    robot_dimension = sum(joints) + 2  # one gripper each
    if robot_dimension != ACTION_DIMS["qpos"]:
        raise UserError(
            f"policy {spec.name} sees and commands {ACTION_DIMS['qpos']} joint values; "
            f"embodiment [{left}, {right}] of {config.name} has {joints[0]} + {joints[1]} joints and 2 grippers, "
            f"which makes {robot_dimension}"
        )
    needed = "endpose" if spec.action_type == "ee" else "qpos"
    if not config.settings["data_type"][needed]:
        raise UserError(
            f"policy {spec.name} gives {spec.action_type} actions; {config.name} has data_type.{needed}: false"
        )
