"""What a trial is. Its key is a hash of everything that can change the outcome, and of nothing else."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from evalkit.core.hashing import digest

Split = Literal["seen", "unseen", "none"]
"""Sentences given to the policy; ``"none"``: the task's name with spaces instead of a sentence."""
ActionType = Literal["qpos", "ee"]
SuccessRule = Literal["any_instant", "after_each_chunk", "at_end"]
"""When RoboTwin's check counts: at any instant, as RoboTwin has it; after each chunk of actions; at the step limit."""
History = Literal["fresh", "task"]
"""What a scene follows on: nothing, as in a fresh process; or all scenes of its task before it, as in RoboTwin's."""
_LATER_FIELDS = {"success": "any_instant", "history": "fresh"}
"""Fields that came later, with the values that leave a trial's key what it was."""


@dataclass(frozen=True, kw_only=True)
class BackendFingerprint:
    """What a simulator is made of.

    ``physics_digest`` names what decides a scene and its expert (the accepted seeds); ``digest`` also holds
    what decides the pictures a policy sees.
    """

    backend: str
    """``"robotwin"`` or ``"fake"``."""
    code: str
    """Version or commit of the task code, e.g. ``"rlinf-robotwin-runtime==0.1.3"``."""
    assets: Literal["stand-in", "official", "unverified", "none"]
    assets_digest: str
    """SHA-256 of the asset files the task code reads."""
    planner: str
    physics: str
    """Physics engine and version, e.g. ``"sapien==3.0.3"``."""
    renderer: str
    """Shader, shadows and device, e.g. ``"minimal, no shadow, llvmpipe"``."""
    semantics: int
    """Version of evalkit's own worker; raised when a change of it can change an outcome."""

    @property
    def physics_digest(self) -> str:
        """16 hex digits over everything but the renderer."""
        values = asdict(self)
        del values["renderer"]
        return digest(values)[:16]

    @property
    def digest(self) -> str:
        """16 hex digits over all fields."""
        return digest(asdict(self))[:16]


@dataclass(frozen=True, kw_only=True)
class TrialSpec:
    """One trial: a scene, an instruction, a policy and the rules between them."""

    backend: str
    """``BackendFingerprint.digest``."""
    task: str
    config: str
    """Name of the task configuration, e.g. ``"demo_clean"``."""
    config_digest: str
    seed: int
    instruction: str
    instruction_split: Split
    horizon_steps: int
    """Step limit: number of ``take_action`` calls."""
    action_type: ActionType
    execute_steps: int
    """How many actions of each chunk are executed before the policy is asked again."""
    policy: str
    """Policy digest: adapter, weights, options."""
    repeat: int = 0
    success: SuccessRule = "any_instant"
    history: History = "fresh"

    @cached_property
    def key(self) -> str:
        """20 hex digits naming this trial."""
        values = asdict(self)
        for name, usual in _LATER_FIELDS.items():
            if values[name] == usual:
                del values[name]
        return digest(values)[:20]

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> TrialSpec:
        """Inverse of ``dataclasses.asdict``."""
        return cls(**values)
