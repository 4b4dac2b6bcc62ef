"""What happened in a trial."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from evalkit.core.outcome import Outcome
from evalkit.core.trial import TrialSpec

SCHEMA = 1
GRIPPERS_HARDLY_OPEN = "grippers_hardly_open"
"""A remark: grippers were open at first, and the policy never commanded one to be more than nearly closed."""


@dataclass(frozen=True, kw_only=True)
class ErrorInfo:
    """Why a trial ended in an error outcome."""

    kind: str
    message: str
    traceback_tail: str = ""
    signal: int | None = None


@dataclass(frozen=True, kw_only=True)
class Timings:
    """Where a trial's wall time went, in seconds. Phases don't overlap."""

    setup_s: float = 0.0
    """Building and settling the scene."""
    physics_s: float = 0.0
    """Executing actions, success checks excluded."""
    check_s: float = 0.0
    """RoboTwin's success checks."""
    render_s: float = 0.0
    """Taking pictures."""
    expert_s: float = 0.0
    """Running the scripted expert (policies that need it only)."""
    inference_s: float = 0.0
    """The policy's own time per decision, as its server measured it."""
    queue_s: float = 0.0
    """Waiting for the policy server: batching, transport and other trials' turns."""
    wall_s: float = 0.0
    """The whole trial as the worker saw it."""

    @property
    def simulator_s(self) -> float:
        """Time in which the simulator worked."""
        return self.setup_s + self.physics_s + self.check_s + self.render_s + self.expert_s


@dataclass(frozen=True, kw_only=True)
class TrialRecord:
    """One finished trial. Append-only; ``key`` is unique in a run."""

    spec: TrialSpec
    outcome: Outcome
    steps: int
    """Number of ``take_action`` calls executed."""
    policy_calls: int
    success_step: int | None
    """1-based action during which success was first true, or None."""
    planner_failures: int = 0
    """Actions whose time parametrisation or plan failed (the arm then holds still for 50 physics steps)."""
    state_digest: str = ""
    """16 hex digits over final joint positions and object poses: equal digests mean equal trajectories' ends."""
    timings: Timings = field(default_factory=Timings)
    error: ErrorInfo | None = None
    attempts: int = 1
    worker: str = ""
    node: str = ""
    started_at: str = ""
    """UTC, ISO 8601."""
    media: tuple[str, ...] = ()
    """Paths relative to the run folder."""
    remarks: tuple[str, ...] = ()
    """What is worth a look and changes nothing: ``GRIPPERS_HARDLY_OPEN``."""
    schema: int = SCHEMA

    @property
    def key(self) -> str:
        """The trial's key."""
        return self.spec.key

    def to_json(self) -> dict[str, Any]:
        """Plain mapping for one JSON line; ``from_json`` reads it back."""
        values = asdict(self)
        values["key"] = self.key
        values["outcome"] = str(self.outcome)
        values["media"] = list(self.media)
        remarks = values.pop("remarks")
        return {**values, "remarks": list(remarks)} if remarks else values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> TrialRecord:
        """Inverse of ``to_json``.

        Raises:
            ValueError: the schema is newer than this code, or the stored key isn't the spec's.
        """
        values = dict(values)
        if values["schema"] > SCHEMA:
            raise ValueError(f"trial record schema {values['schema']} is newer than {SCHEMA}: update evalkit")
        stored_key = values.pop("key")
        values["spec"] = TrialSpec.from_json(values["spec"])
        values["outcome"] = Outcome(values["outcome"])
        values["timings"] = Timings(**values["timings"])
        values["error"] = ErrorInfo(**values["error"]) if values["error"] else None
        values["media"] = tuple(values["media"])
        values["remarks"] = tuple(values.get("remarks", ()))
        record = cls(**values)
        if record.key != stored_key:
            raise ValueError(f"trial record says key {stored_key}, its spec gives {record.key}")
        return record
