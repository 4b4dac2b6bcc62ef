"""A model by its import path: a ``torch.nn.Module`` or any object, built, loaded with its weights, and called."""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any, Dict

import numpy as np
from link import Link
from problems import PolicyProblemError
from seeding import seed_everything
from weights import load_into, read_state


class ModuleForm:
    """The model.

    Args:
        options: ``code`` (folders to import from), ``factory`` (``package.module:name``), ``arguments``, ``weights``
            (files and rules, or None), ``device``, ``method``, ``pass_as``, ``tensors``, ``batch_axis``, ``threads``,
            ``compile`` (a mode of ``torch.compile``, or None).
    """

    def __init__(self, options: Dict[str, Any]) -> None:
        self._options = options
        for folder in options["code"]:
            if folder not in sys.path:
                sys.path.insert(0, folder)
        build = _factory(options["factory"])
        seed_everything(0)  # what isn't imported yet can't be seeded
        self._model = build(**options["arguments"])
        self._report: Dict[str, Any] = {}
        self._torch = sys.modules.get("torch")
        if options["weights"] is not None:
            self._load(options["weights"])
        if self._torch is not None and isinstance(self._model, self._torch.nn.Module):
            self._torch.set_num_threads(options["threads"])
            self._model.eval().to(options["device"])
        if not callable(getattr(self._model, options["method"], None)):
            what = "{} gives {}, which has no method {}"
            raise PolicyProblemError(
                "interface", what.format(options["factory"], type(self._model).__name__, options["method"])
            )

        self._call = getattr(self._model, options["method"])
        if options["compile"] is not None:
            if self._torch is None:
                raise PolicyProblemError("interface", "compile is for torch, which the model didn't import")
            self._call = self._torch.compile(self._call, dynamic=False, mode=options["compile"])

    def describe(self) -> Dict[str, Any]:
        """What was loaded, and whether the model wants to know when an episode is over."""
        return dict(self._report, ends=callable(getattr(self._model, "end", None)))

    def reset(self, episode: Dict[str, Any]) -> None:
        """Start an episode: seeds, and the model's own ``reset`` if it has one."""
        seed_everything(episode["policy_seed"])
        own = getattr(self._model, "reset", None)
        if callable(own):
            own()

    def end(self, session: str, success: Any) -> None:
        """An episode is over: True, False, or None where there is no verdict."""
        self._model.end(success)

    def act(self, session: str, request: Dict[str, Any]) -> Dict[str, Any]:
        """Call the model."""
        inputs = {key: self._input(value) for key, value in request.items()}
        with self._torch.inference_mode() if self._torch is not None else contextlib.nullcontext():
            output = self._call(**inputs) if self._options["pass_as"] == "keywords" else self._call(inputs)
        return output if isinstance(output, dict) else {"actions": output}

    def _input(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._input(inner) for key, inner in value.items()}
        if self._options["batch_axis"]:
            value = value[None] if isinstance(value, np.ndarray) else [value]
        if self._torch is not None and self._options["tensors"] and isinstance(value, np.ndarray):
            value = self._torch.from_numpy(value).to(self._options["device"])
        return value

    def _load(self, rules: Dict[str, Any]) -> None:
        state, part = read_state(rules["found"], rules["part"])
        report = load_into(self._model, state, rules["allow_missing"], rules["allow_unexpected"], rules["dtype"])
        self._report = dict(report, part=part)


def _factory(path: str) -> Any:
    module_name, _, name = path.partition(":")
    module = importlib.import_module(module_name)
    if not name or not hasattr(module, name):
        raise PolicyProblemError("interface", "{} has no {!r}: give package.module:name".format(module_name, name))
    return getattr(module, name)


def load(options: Dict[str, Any], link: Link) -> ModuleForm:
    """See ``ModuleForm``."""
    return ModuleForm(options)
