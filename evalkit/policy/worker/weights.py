"""Loading weights into a module: everything that is loaded, missing or left over is counted and said.

Runs in the policy's interpreter. Which files hold the weights was found out by ``evalkit.policy.weight_files``.
"""

from __future__ import annotations

import fnmatch
import os
import tempfile
from typing import Any, Dict, List, Optional, Sequence, Tuple

from problems import PolicyProblemError

PREFIXES = ("module.", "_orig_mod.", "model.")
"""What wrappers put before names: data parallelism, torch.compile, trainers that hold the network as ``model``."""
CONTAINERS = ("state_dict", "model_state_dict", "model", "module")
"""Where trainers put the weights in a pickled file."""
SHOWN = 5
"""Names shown of a long list."""


def read_state(found: Dict[str, Any], part: Optional[str]) -> Tuple[Dict[str, Any], str]:
    """The tensors of a checkpoint by name.

    Args:
        found: ``kind`` and ``files`` of ``WeightFiles``.
        part: which of a file's sets of weights, e.g. ``"ema"``; None if there is one.

    Returns:
        The tensors, and the name of the part they came from.

    Raises:
        PolicyProblemError: unreadable, unsafe, or the part isn't there.
    """
    read = {"safetensors": _safetensors, "pickle": _pickled, "dcp": _distributed}[found["kind"]]
    return _part(read(found["files"]), part, found["files"][0])


def load_into(
    module: Any,
    state: Dict[str, Any],
    allow_missing: Sequence[str] = (),
    allow_unexpected: Sequence[str] = (),
    dtype: Optional[str] = None,
) -> Dict[str, Any]:
    """Load tensors into a module, all of them into all of it.

    Args:
        module: a ``torch.nn.Module``.
        state: tensors by name.
        allow_missing: patterns of names that the module may keep from its construction.
        allow_unexpected: patterns of names that may be left out.
        dtype: ``"float32"``, ``"bfloat16"``, ``"float16"``; None keeps the module's.

    Returns:
        What happened: ``loaded``, ``missing``, ``unexpected`` (allowed ones, by name), ``renamed``.

    Raises:
        PolicyProblemError: a name or a shape doesn't fit, an empty tensor, or a number that isn't finite.
    """
    import torch

    wanted = module.state_dict()
    names = match_names(list(state), list(wanted))
    tensors = {names[name]: tensor for name, tensor in state.items()}
    missing = sorted(set(wanted) - set(tensors))
    unexpected = sorted(set(tensors) - set(wanted))
    _refuse("misses", missing, allow_missing, len(wanted), "allow_missing")
    _refuse("has unexpected", unexpected, allow_unexpected, len(tensors), "allow_unexpected")
    for name in sorted(set(tensors) & set(wanted)):
        tensor, place = tensors[name], wanted[name]
        if tensor.numel() == 0 and place.numel() > 0:
            what = "tensor {} is empty: a shard of a split checkpoint, which must be put together first"
            raise PolicyProblemError("weights", what.format(name))
        if tuple(tensor.shape) != tuple(place.shape):
            what = "tensor {} has shape {} in the checkpoint, {} in the network"
            raise PolicyProblemError("weights", what.format(name, tuple(tensor.shape), tuple(place.shape)))
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise PolicyProblemError("weights", "tensor {} has numbers that aren't finite".format(name))
    module.load_state_dict({name: tensors[name] for name in tensors if name in wanted}, strict=False)
    if dtype is not None:
        module.to(getattr(torch, dtype))
    renamed = sorted({name[: len(name) - len(names[name])] for name in state if names[name] != name})
    return {
        "loaded": len(tensors) - len(unexpected),
        "missing": missing,
        "unexpected": unexpected,
        "renamed": renamed,
    }


def match_names(found: List[str], wanted: List[str]) -> Dict[str, str]:
    """Names in a checkpoint -> names in the network: wrappers' prefixes go only where that makes names fit.

    Raises:
        PolicyProblemError: two names become one.
    """
    targets = set(wanted)
    if targets <= set(found):
        return {name: name for name in found}
    renamed = {name: _fitting(name, targets) for name in found}
    if len(set(renamed.values())) < len(renamed):
        seen: Dict[str, str] = {}
        for name, short in renamed.items():
            if short in seen:
                what = "tensors {} and {} both become {} without their prefixes"
                raise PolicyProblemError("weights", what.format(seen[short], name, short))
            seen[short] = name
    return renamed


def _fitting(name: str, targets: Any) -> str:
    """The name without as many prefixes, and without inner ``_orig_mod.``, as it takes to fit; else as it is."""
    for candidate in (name, name.replace("_orig_mod.", "")):
        while True:
            if candidate in targets:
                return candidate
            prefix = next((prefix for prefix in PREFIXES if candidate.startswith(prefix)), None)
            if prefix is None:
                break
            candidate = candidate[len(prefix) :]
    return name


def _refuse(verb: str, names: List[str], patterns: Sequence[str], total: int, setting: str) -> None:
    bad = [name for name in names if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]
    if bad:
        shown = ", ".join(bad[:SHOWN]) + (", ..." if len(bad) > SHOWN else "")
        what = "the checkpoint {} {} of {} tensors ({}); if that is meant, name them under weights.{}"
        raise PolicyProblemError("weights", what.format(verb, len(bad), total, shown, setting))


def _safetensors(files: Sequence[str]) -> Dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    tensors: Dict[str, Any] = {}
    for path in files:
        try:
            tensors.update(load_file(path))
        except SafetensorError as error:
            raise PolicyProblemError("weights", "{} can't be read: {}".format(path, error)) from error
    return tensors


def _pickled(files: Sequence[str]) -> Dict[str, Any]:
    import pickle

    import torch

    values: Dict[str, Any] = {}
    for path in files:
        try:
            loaded = torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            lines = [line.strip() for line in str(error).splitlines() if "GLOBAL" in line or "Unsupported" in line]
            what = "{} holds more than tensors and was not opened further ({}): save its state_dict alone"
            reason = lines[0] if lines else str(error).splitlines()[0]
            raise PolicyProblemError("weights", what.format(path, reason)) from error
        except (RuntimeError, EOFError, OSError) as error:
            first = (str(error).splitlines() or [type(error).__name__])[0]
            raise PolicyProblemError("weights", "{} can't be read (cut short?): {}".format(path, first)) from error
        if not isinstance(loaded, dict):
            what = "{} holds {}, not tensors by name"
            raise PolicyProblemError("weights", what.format(path, type(loaded).__name__))
        values.update(loaded)
    return values


def _distributed(files: Sequence[str]) -> Dict[str, Any]:
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

    source = os.path.dirname(files[0])
    with tempfile.TemporaryDirectory(prefix="evalkit-dcp-") as folder:
        whole = os.path.join(folder, "whole.pt")
        try:
            dcp_to_torch_save(source, whole)
        except CheckpointException as error:  # no Exception: it would end the process
            causes = [str(cause).splitlines()[0] for cause, _ in error.failures.values() if str(cause)]
            what = "{} can't be put together (a shard missing or cut short?): {}"
            raise PolicyProblemError("weights", what.format(source, (causes or ["no reason given"])[0])) from error
        return _pickled([whole])


def _part(values: Dict[str, Any], part: Optional[str], where: str) -> Tuple[Dict[str, Any], str]:
    import torch

    sets = {name: value for name, value in values.items() if isinstance(value, dict) and _tensors(value)}
    if part is not None:
        if part not in sets:
            there = ", ".join(sorted(sets)) or "one unnamed set"
            raise PolicyProblemError("weights", "{} has no part {!r}; it has {}".format(where, part, there))
        return _tensors(sets[part]), part
    own = {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
    if own and not sets:
        return own, ""
    if len(sets) == 1 and not own:
        name = next(iter(sets))
        if name in CONTAINERS:
            return _tensors(sets[name]), name
    names = ", ".join(sorted(sets)) or "none"
    raise PolicyProblemError("weights", "{} has parts {}: say which with weights.part".format(where, names))


def _tensors(values: Dict[str, Any]) -> Dict[str, Any]:
    import torch

    return {str(name): value for name, value in values.items() if isinstance(value, torch.Tensor)}
