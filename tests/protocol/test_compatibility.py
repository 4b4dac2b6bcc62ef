from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evalkit.core.errors import UserError
from evalkit.policy.contract import CameraSpec, PolicySpec
from evalkit.protocol.compatibility import check
from evalkit.protocol.config import TaskConfig, load_config

CAMERAS = tuple(CameraSpec(name=name) for name in ("head_camera", "left_camera", "right_camera", "front_camera"))
SPEC = PolicySpec(
    name="mine",
    cameras=CAMERAS,
    action_type="qpos",
    chunk_steps=16,
    execute_steps=8,
    needs_instruction=True,
    stateful=False,
)


def config_with(group: str | None = None, **changes: Any) -> TaskConfig:
    config = load_config("demo_clean")
    settings = {**config.settings}
    if group:
        settings[group] = {**settings[group], **changes}
    else:
        settings.update(changes)
    return replace(config, settings=settings)


@pytest.mark.parametrize("config", ["demo_clean", "demo_randomized"])
@pytest.mark.parametrize("action_type", ["qpos", "ee"])
def test_an_ordinary_policy_fits(config: str, action_type: Any) -> None:
    check(replace(SPEC, action_type=action_type), load_config(config))


@pytest.mark.parametrize(
    ("spec", "config", "what"),
    [
        (
            replace(SPEC, cameras=(CameraSpec(name="head_camera", height_px=480, width_px=640),)),
            config_with(),
            "needs head_camera of 480 x 640 px; demo_clean has D435, which gives 240 x 320 px",
        ),
        (
            replace(SPEC, action_type="delta_ee"),  # type: ignore[arg-type]
            config_with(),
            "gives delta_ee actions; RoboTwin's robot takes qpos or ee",
        ),
        (SPEC, config_with("camera", wrist_camera_type="L515"), "needs left_camera of 240 x 320 px; .* L515"),
        (SPEC, config_with("camera", collect_wrist_camera=False), r"has camera\.collect_wrist_camera: false"),
        (SPEC, config_with("data_type", rgb=False), r"needs head_camera; demo_clean has data_type\.rgb: false"),
        (SPEC, config_with("data_type", qpos=False), r"gives qpos actions; demo_clean has data_type\.qpos: false"),
        (
            replace(SPEC, action_type="ee"),
            config_with("data_type", endpose=False),
            r"gives ee actions; demo_clean has data_type\.endpose: false",
        ),
        (SPEC, config_with(embodiment=["franka-panda", "franka-panda", 0.6]), "14 joint values; .* makes 16"),
        (SPEC, config_with(language_num=0), "needs an instruction; demo_clean has language_num: 0"),
        (replace(SPEC, execute_steps=17), config_with(), "executes 17 actions of chunks of 16"),
        (replace(SPEC, execute_steps=0), config_with(), "executes 0 actions of chunks of 16"),
    ],
)
def test_what_does_not_fit_is_named_with_both_values(spec: PolicySpec, config: TaskConfig, what: str) -> None:
    with pytest.raises(UserError, match=what):
        check(spec, config)


def test_a_policy_without_pictures_needs_none() -> None:
    check(replace(SPEC, cameras=()), config_with("data_type", rgb=False))


def test_another_embodiment_with_six_joints_fits() -> None:
    check(SPEC, config_with(embodiment=["piper", "ARX-X5", 0.6]))
