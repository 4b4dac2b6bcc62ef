"""A LeRobot checkpoint with its saved processors, in an interpreter that has LeRobot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalkit.core.errors import UserError
from evalkit.policy.contract import PolicySpec
from evalkit.policy.converted import ConvertedPolicy
from evalkit.policy.interpreter import interpreter_of
from evalkit.policy.isolated import PolicyProcess, ProcessChannel
from evalkit.policy.profile import Profile, load_profile, refuse_mixed_episodes
from evalkit.policy.settings import PolicySettings, number, tree_digest
from evalkit.policy.weight_files import WeightFiles, find_weights
from evalkit.policy.wire.connection import CALL_S

NEEDS_CHECKPOINT = False
_REQUIRED = ("checkpoint", "profile")
_OPTIONAL = ("answers", "python", "actions", "call_s", "threads")
_ACTIONS = ("chunk", "one")


def load(checkpoint: Path | None, *, device: str, settings: PolicySettings | None = None) -> ConvertedPolicy:
    """The policy, loaded in its interpreter.

    Raises:
        UserError: no policy file, something wrong with it, or no LeRobot in the interpreter.
    """
    if checkpoint is not None:
        raise UserError("policy lerobot takes its checkpoint from the policy file: leave --ckpt out")
    profile = _profile(settings)
    assert settings is not None
    options = {
        "checkpoint": str(_found(settings).folder),
        "one_action": settings.options.get("actions", "chunk") == "one",
        "device": device,
        "threads": int(number(settings.options, "threads", 1)),
    }
    process = PolicyProcess(
        interpreter_of(settings.options.get("python"), None, settings.folder),
        "lerobot",
        options,
        name=settings.name,
        call_s=number(settings.options, "call_s", CALL_S),
    )
    process.start()
    inputs = process.declared["inputs"]
    missing = [name for name in inputs if name not in profile.request]
    if missing:
        process.close()
        sent = ", ".join(profile.request)
        raise UserError(f"policy {settings.name} was trained on {missing[0]}, which its profile doesn't send ({sent})")
    return ConvertedPolicy(profile, ProcessChannel(process))


def spec(settings: PolicySettings) -> PolicySpec:
    """The policy's declaration: its profile's."""
    return _profile(settings).spec


def identity(settings: PolicySettings) -> Mapping[str, Any]:
    """What decides the actions: weights, configuration, processors, profile."""
    profile, found = _profile(settings), _found(settings)
    return {
        "profile": profile.content,
        "weights": found.digest(),
        "settings": tree_digest(found.folder, (".json", ".safetensors")),
        "actions": settings.options.get("actions", "chunk"),
    }


def _profile(settings: PolicySettings | None) -> Profile:
    if settings is None:
        raise UserError("policy lerobot needs a policy file that names the checkpoint: --policy FILE.yaml")
    settings.check(_REQUIRED, _OPTIONAL)
    options = settings.options
    if options.get("actions", "chunk") not in _ACTIONS:
        raise UserError(f"policy {settings.name}: actions is {options['actions']!r}: use {' or '.join(_ACTIONS)}")
    profile = load_profile(
        options["profile"], name=settings.name, folder=settings.folder, answers=options.get("answers")
    )
    refuse_mixed_episodes(profile)
    return profile


def _found(settings: PolicySettings) -> WeightFiles:
    path = settings.path("checkpoint")
    assert path is not None
    found = find_weights(path)
    if not (found.folder / "config.json").is_file():
        raise UserError(f"policy {settings.name}: {found.folder} has no config.json: it isn't a LeRobot checkpoint")
    return found
