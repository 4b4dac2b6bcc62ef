"""A model by its import path: built, loaded with its weights, and called in its own interpreter as its profile says."""

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
from evalkit.policy.settings import PolicySettings, number, path_digest, tree_digest
from evalkit.policy.weight_files import WeightFiles, find_weights
from evalkit.policy.wire.connection import CALL_S

NEEDS_CHECKPOINT = False
_REQUIRED = ("code", "factory", "profile")
_OPTIONAL = (
    "arguments", "weights", "answers", "python", "method", "pass_as", "tensors", "batch_axis", "call_s", "threads",
    "compile",
)  # fmt: skip
_COMPILE = ("default", "reduce-overhead")
"""Modes of ``torch.compile``; the second uses CUDA graphs. Those that let kernels race may choose others next time."""
_RULES = ("path", "part", "allow_missing", "allow_unexpected", "dtype")
_DTYPES = ("float32", "bfloat16", "float16")


def load(checkpoint: Path | None, *, device: str, settings: PolicySettings | None = None) -> ConvertedPolicy:
    """The policy, loaded in its interpreter.

    Raises:
        UserError: no policy file, something wrong with it, or the model can't be built or loaded.
    """
    if checkpoint is not None:
        raise UserError("policy torch_module takes its weights from the policy file: leave --ckpt out")
    profile = _profile(settings)
    assert settings is not None
    options = settings.options
    code = _code(settings)
    process = PolicyProcess(
        interpreter_of(options.get("python"), None, settings.folder),
        "module",
        {
            "code": [str(folder) for folder in code],
            "factory": options["factory"],
            "arguments": options.get("arguments") or {},
            "weights": _weights(settings),
            "device": device,
            "method": options.get("method", "__call__"),
            "pass_as": options.get("pass_as", "keywords"),
            "tensors": bool(options.get("tensors", True)),
            "batch_axis": bool(options.get("batch_axis", True)),
            "threads": int(number(options, "threads", 1)),
            "compile": options.get("compile"),
        },
        name=settings.name,
        call_s=number(options, "call_s", CALL_S),
    )
    process.start()
    return ConvertedPolicy(profile, ProcessChannel(process))


def spec(settings: PolicySettings) -> PolicySpec:
    """The policy's declaration: its profile's."""
    return _profile(settings).spec


def identity(settings: PolicySettings) -> Mapping[str, Any]:
    """What decides the actions: code, arguments, weights with the rules of loading them, profile."""
    profile = _profile(settings)
    kept = {key: value for key, value in settings.options.items() if key not in ("python", "call_s", "code", "weights")}
    weights = _weights(settings)
    found = _found(settings)
    return {
        **kept,
        "profile": profile.content,
        "code": [tree_digest(folder) if folder.is_dir() else path_digest(folder) for folder in _code(settings)],
        "weights": None if weights is None or found is None else {**weights, "found": found.digest()},
    }


def _profile(settings: PolicySettings | None) -> Profile:
    if settings is None:
        raise UserError("policy torch_module needs a policy file that names the model: --policy FILE.yaml")
    settings.check(_REQUIRED, _OPTIONAL)
    options = settings.options
    if options.get("pass_as", "keywords") not in ("keywords", "mapping"):
        raise UserError(f"policy {settings.name}: pass_as is {options['pass_as']!r}: use keywords or mapping")
    if options.get("compile") not in (None, *_COMPILE):
        raise UserError(f"policy {settings.name}: compile is {options['compile']!r}: use {' or '.join(_COMPILE)}")
    profile = load_profile(
        options["profile"], name=settings.name, folder=settings.folder, answers=options.get("answers")
    )
    refuse_mixed_episodes(profile)
    return profile


def _code(settings: PolicySettings) -> list[Path]:
    values = settings.options["code"]
    folders = [(settings.folder / str(value)).resolve() for value in ([values] if isinstance(values, str) else values)]
    missing = [folder for folder in folders if not folder.is_dir()]
    if missing:
        raise UserError(f"policy {settings.name}: code folder {missing[0]} doesn't exist")
    return folders


def _found(settings: PolicySettings) -> WeightFiles | None:
    rules = settings.options.get("weights")
    return None if rules is None else find_weights(settings.folder / Path(str(rules["path"])).expanduser())


def _weights(settings: PolicySettings) -> dict[str, Any] | None:
    rules = settings.options.get("weights")
    if rules is None:
        return None
    if not isinstance(rules, Mapping) or "path" not in rules or set(rules) - set(_RULES):
        raise UserError(f"policy {settings.name}: weights is {rules!r}: it takes {', '.join(_RULES)}")
    if rules.get("dtype") not in (None, *_DTYPES):
        raise UserError(f"policy {settings.name}: weights.dtype is {rules['dtype']!r}: use {', '.join(_DTYPES)}")
    found = _found(settings)
    assert found is not None
    return {
        "found": {"kind": found.kind, "files": [str(path) for path in found.files]},
        "part": rules.get("part"),
        "allow_missing": list(rules.get("allow_missing") or ()),
        "allow_unexpected": list(rules.get("allow_unexpected") or ()),
        "dtype": rules.get("dtype"),
    }
