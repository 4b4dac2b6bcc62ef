"""The manifest of a run: what it is (identity) and where it happened (circumstances)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from evalkit.core.hashing import digest
from evalkit.core.trial import ActionType, Split

SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class PolicyInfo:
    """The policy of a run."""

    adapter: str
    """Name of the adapter in ``policies/``, e.g. ``"noop"``."""
    digest: str
    """Policy digest as in every ``TrialSpec.policy``: adapter, weights, device kind, options, spec."""
    checkpoint: str | None
    """Path of the checkpoint folder, or None for a policy without weights."""
    checkpoint_digest: str | None
    """SHA-256 over the files that decide the policy, or None."""
    step: int | None
    """Training step of the checkpoint, or None."""
    execute_steps: int
    action_type: ActionType
    device: str
    """``"cpu"`` or ``"cuda"``."""
    privileged: bool
    """True for policies that are told what no robot could know: never a leaderboard entry."""


@dataclass(frozen=True, kw_only=True)
class ConfigInfo:
    """One task configuration of a run, with the label its scores carry."""

    digest: str
    split: Split
    label: str
    """Computed from the training card, e.g. ``"c2c"``, ``"?2r"``."""
    label_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Stopping:
    """That a run ends when a comparison with another run has decided, not when its plan is done.

    Its number of trials then depends on their outcomes, so its rates are no scores.
    """

    rule: str
    """The option that asked for it: ``"until-decided"``."""
    decision: str
    """Name of the decision that both runs serve."""
    side: str
    """``"first"`` or ``"second"``."""
    alpha: float
    """Highest probability of naming a better side when there is none."""


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """What ``run.json`` holds. Two runs with the same ``identity()`` are the same run."""

    run_id: str
    created_at: str
    """UTC, ISO 8601."""
    evalkit_version: str
    policy: PolicyInfo
    card: Mapping[str, Any] | None
    """Training card as JSON, or None if the checkpoint has none."""
    configs: Mapping[str, ConfigInfo]
    """Configuration name -> its digest, split and label, in the order they run."""
    tasks: tuple[str, ...]
    trials_per_task: int
    """Accepted seeds per task and configuration."""
    backend: Mapping[str, Any]
    """``BackendFingerprint`` as a mapping."""
    seed_lists: Mapping[str, str]
    """``"task/config"`` -> SHA-256 of the accepted seeds and their instructions."""
    seed_base: int = 0
    """Candidates run upward from ``100000 * (1 + seed_base)``."""
    repeats: int = 1
    """Trials of each scene that differ only in the policy's own randomness."""
    protocol: str = "leaderboard"
    rules: Mapping[str, str] = field(default_factory=dict)
    """Under another protocol than the leaderboard's: its fields that evalkit carries out -> what was done."""
    bug_compatible: bool = False
    """Whether one process went through all candidates of a task in order, and what each scene left stayed."""
    stopping: Stopping | None = None
    """Set if the run may end before its plan does."""
    environment: Mapping[str, Any] = field(default_factory=dict)
    """Python, packages, host: circumstances, not identity."""
    command: tuple[str, ...] = ()
    """Command line that created the run."""
    schema: int = SCHEMA

    @property
    def under(self) -> str:
        """What else than the leaderboard's protocol its scores are measured under, for their labels; else empty."""
        words = [] if self.protocol == "leaderboard" else [self.protocol]
        return ", ".join([*words, "bug-compatible"] if self.bug_compatible else words)

    def identity(self) -> dict[str, Any]:
        """Everything that makes this run another run when it changes, as flat names -> plain values.

        Paths, dates, versions of tools, the command line and labels (they follow from the checkpoint) are left out.
        """
        policy = asdict(self.policy)
        del policy["checkpoint"]
        values: dict[str, Any] = {f"policy.{name}": value for name, value in policy.items()}
        values |= {f"backend.{name}": value for name, value in self.backend.items()}
        for name, config in self.configs.items():
            values |= {f"configs.{name}.digest": config.digest, f"configs.{name}.split": config.split}
        values |= {f"seed_lists.{name}": value for name, value in self.seed_lists.items()}
        if self.stopping is not None:  # only then: the identity of all other runs stays what it was
            values |= {f"stopping.{name}": value for name, value in asdict(self.stopping).items()}
        values |= {f"rules.{name}": value for name, value in self.rules.items()}
        if self.bug_compatible:
            values["bug_compatible"] = True
        return values | {
            "tasks": list(self.tasks),
            "trials_per_task": self.trials_per_task,
            "seed_base": self.seed_base,
            "repeats": self.repeats,
            "protocol": self.protocol,
        }

    def identity_digest(self) -> str:
        """64 hex digits over ``identity()``."""
        return digest(self.identity())

    def to_json(self) -> dict[str, Any]:
        """Plain mapping; ``from_json`` reads it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RunInfo:
        """Inverse of ``to_json``.

        Raises:
            ValueError: the schema is newer than this code.
            KeyError, TypeError: a field is missing or unknown.
        """
        values = dict(values)
        if values["schema"] > SCHEMA:
            raise ValueError(f"run schema {values['schema']} is newer than {SCHEMA}: update evalkit")
        values["policy"] = PolicyInfo(**values["policy"])
        values["configs"] = {
            name: ConfigInfo(**{**config, "label_reasons": tuple(config["label_reasons"])})
            for name, config in values["configs"].items()
        }
        values["tasks"] = tuple(values["tasks"])
        values["command"] = tuple(values["command"])
        values["stopping"] = Stopping(**values["stopping"]) if values.get("stopping") else None
        return cls(**values)
