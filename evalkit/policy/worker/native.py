"""An adapter of evalkit in another interpreter. evalkit itself is found by its place; it needs Python 3.11."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any, Dict

from problems import PolicyProblemError

NEEDED = (3, 11)


class NativeForm:
    """A policy of evalkit's own contract.

    Args:
        options: ``evalkit`` (folder of the package), ``cwd``, ``adapter`` (name) or ``file``, ``checkpoint``,
            ``device``, ``threads``.
    """

    def __init__(self, options: Dict[str, Any]) -> None:
        if sys.version_info < NEEDED:
            raise PolicyProblemError(
                "interpreter",
                "an adapter of evalkit needs Python {}.{}; {} is {}.{}".format(
                    NEEDED[0], NEEDED[1], sys.executable, *sys.version_info[:2]
                ),
            )
        os.chdir(options["cwd"])
        _find_evalkit(Path(options["evalkit"]))
        registry = importlib.import_module("evalkit.policy.registry")
        self._contract = importlib.import_module("evalkit.policy.contract")
        self._to_json = importlib.import_module("evalkit.policy.checkpoint").spec_to_json
        if options.get("file"):
            adapter = registry.load_adapter_file(Path(options["file"]))
        else:
            adapter = registry.load_adapter(options["adapter"])
        checkpoint = options.get("checkpoint")
        self._policy = adapter.load(Path(checkpoint) if checkpoint else None, device=options["device"])
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.set_num_threads(options["threads"])

    def describe(self) -> Dict[str, Any]:
        """The policy's declaration, and whether it takes several observations at once."""
        batched = isinstance(self._policy, self._contract.BatchPolicy)
        ends = isinstance(self._policy, self._contract.EndingPolicy)
        return {"spec": self._to_json(self._policy.spec), "batched": batched, "ends": ends}

    def reset(self, episode: Dict[str, Any]) -> None:
        """Start an episode."""
        self._policy.reset(self._contract.EpisodeInfo(**episode))

    def act(self, observation: Dict[str, Any]) -> Any:
        """One decision."""
        return self._policy.act(self._observation(observation))

    def act_batch(self, observations: Any) -> Any:
        """Several decisions."""
        return list(self._policy.act_batch([self._observation(values) for values in observations]))

    def end(self, session: str, success: Any) -> None:
        """An episode is over."""
        self._policy.end(session, success)

    def _observation(self, values: Dict[str, Any]) -> Any:
        history = tuple(self._observation(row) for row in values["history"])
        return self._contract.Observation(**dict(values, history=history))


def _find_evalkit(folder: Path) -> None:
    """Make the package importable without its neighbours, which belong to another interpreter."""
    if "evalkit" in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(
        "evalkit", str(folder / "__init__.py"), submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["evalkit"] = module
    spec.loader.exec_module(module)


def load(options: Dict[str, Any], link: Any) -> NativeForm:
    """See ``NativeForm``."""
    return NativeForm(options)
