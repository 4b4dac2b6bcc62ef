"""A policy folder of RoboTwin (``policy/<Name>/deploy_policy.py``), run unchanged in its own interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from evalkit.core.errors import UserError
from evalkit.policy.contract import ActionChunk, EpisodeInfo, Observation, PolicySpec
from evalkit.policy.converted import Episodes
from evalkit.policy.interpreter import interpreter_of
from evalkit.policy.isolated import PolicyProcess, ProcessChannel
from evalkit.policy.profile import read_robot
from evalkit.policy.settings import PolicySettings, number, path_digest, tree_digest
from evalkit.policy.wire.connection import CALL_S

NEEDS_CHECKPOINT = False
CAMERAS = ("head_camera", "left_camera", "right_camera", "front_camera")
LONGEST_CHUNK = 2000
"""More actions than any task allows: how often a policy looks is its own affair."""
ARM_JOINTS = 6
_REQUIRED = ("policy_folder", "weights")
_OPTIONAL = ("config", "overrides", "python", "cwd", "action_type", "cameras", "call_s", "environment")


class LegacyPolicy:
    """Hands RoboTwin's observations to the folder's ``eval`` and gets its actions.

    Args:
        spec: what the policy needs and gives.
        process: where it runs; closed with it.
    """

    def __init__(self, spec: PolicySpec, process: PolicyProcess) -> None:
        self.spec = spec
        self._channel = ProcessChannel(process)
        self._episodes = Episodes(spec)

    def reset(self, info: EpisodeInfo) -> None:
        """``reset_model``, once, before the episode's first observation."""
        self._episodes.start(info)
        self._channel.reset(info)

    def act(self, observation: Observation) -> ActionChunk:
        """The actions the policy takes before it looks again: (1 or more, 14 or 16)."""
        self._episodes.current(observation)
        values = {"state": observation.state, "endpose": observation.endpose, **observation.images}
        chunk: ActionChunk = np.asarray(self._channel.infer(observation.session, values)["actions"], np.float64)
        return chunk

    def end(self, session: str, success: bool | None) -> None:
        """Forget the episode; RoboTwin's loop tells a folder nothing at its end."""
        self._episodes.end(session)

    def close(self) -> None:
        """End the process."""
        self._channel.close()


def load(checkpoint: Path | None, *, device: str, settings: PolicySettings | None = None) -> LegacyPolicy:
    """The policy, loaded in its interpreter.

    Raises:
        UserError: no policy file, something wrong with it, or with the folder.
    """
    if settings is None or checkpoint is not None:
        raise UserError("policy robotwin_legacy needs a policy file that names the folder: --policy FILE.yaml")
    declared = spec(settings)
    folder = _folder(settings)
    cwd = settings.path("cwd") or _working_folder(folder)
    options = {
        "folder": str(folder),
        "cwd": str(cwd),
        "usr_args": usr_args(settings),
        "action_type": declared.action_type,
        "longest": LONGEST_CHUNK,
    }
    process = PolicyProcess(
        interpreter_of(settings.options.get("python"), folder / "deploy_policy.py", settings.folder),
        "legacy",
        options,
        name=settings.name,
        environment={str(key): str(value) for key, value in (settings.options.get("environment") or {}).items()},
        call_s=number(settings.options, "call_s", CALL_S),
    )
    process.start()
    return LegacyPolicy(declared, process)


def spec(settings: PolicySettings) -> PolicySpec:
    """The policy's declaration.

    Raises:
        UserError: something wrong with the policy file.
    """
    settings.check(_REQUIRED, _OPTIONAL)
    cameras = settings.options.get("cameras", {name: [240, 320] for name in CAMERAS[:3]})
    robot = {
        "actions": settings.options.get("action_type", "qpos"),
        "cameras": cameras,
        "chunk_steps": LONGEST_CHUNK,
        "execute_steps": LONGEST_CHUNK,
        "needs_instruction": True,
        "stateful": True,
        "one_at_a_time": True,
    }
    return read_robot(robot, settings.name, f"policy {settings.name}")


def identity(settings: PolicySettings) -> Mapping[str, Any]:
    """What decides the actions: the folder's code and settings, and the weights it names."""
    spec(settings)
    weights = settings.options["weights"]
    paths = [weights] if isinstance(weights, str) else list(weights or ())
    return {
        "folder": tree_digest(_folder(settings)),
        "usr_args": usr_args(settings),
        "weights": [path_digest((settings.folder / path).resolve()) for path in paths],
        "cameras": settings.options.get("cameras"),
    }


def usr_args(settings: PolicySettings) -> dict[str, Any]:
    """What ``get_model`` gets: the yml, then the overrides, then the arms' joints, as RoboTwin puts it together.

    Overrides are YAML values; RoboTwin runs them through ``eval``, which turns ``abs`` into a function.

    Raises:
        UserError: the yml is missing or isn't a mapping.
    """
    folder = _folder(settings)
    config = settings.path("config") or folder / "deploy_policy.yml"
    if not config.is_file():
        raise UserError(f"policy {settings.name}: {config} doesn't exist; name the yml with config:")
    values = yaml.safe_load(config.read_text())
    if not isinstance(values, dict):
        raise UserError(f"policy {settings.name}: {config} isn't a mapping")
    overrides = settings.options.get("overrides") or {}
    if not isinstance(overrides, Mapping):
        raise UserError(f"policy {settings.name}: overrides is {overrides!r}: write key: value lines")
    return {**values, **overrides, "left_arm_dim": ARM_JOINTS, "right_arm_dim": ARM_JOINTS}


def _folder(settings: PolicySettings) -> Path:
    folder = settings.path("policy_folder")
    assert folder is not None
    if not (folder / "__init__.py").is_file():
        raise UserError(f"policy {settings.name}: {folder} isn't a policy folder of RoboTwin: it has no __init__.py")
    return folder


def _working_folder(folder: Path) -> Path:
    """RoboTwin runs policies from its root, two levels above the folder."""
    return folder.parents[1] if folder.parent.name == "policy" else folder.parent
