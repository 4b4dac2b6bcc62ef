"""Which terms of two scores differ, and whether the scores may be compared. ``docs/protocols.md`` has the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Literal

Severity = Literal["blocks", "caveat"]
Fact = str | tuple[str, ...]
"""One value of a field, or several of which any may hold."""

UNKNOWN = "unknown"
"""The source doesn't say."""
PER_RUN = "per_run"
"""The protocol leaves it to each run."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What one score was measured under: one configuration, all that can move its mean.

    The values are those of the protocols' files; ``docs/protocols.md`` explains each word. A run's own terms are those
    of its protocol with what it did otherwise, by ``dataclasses.replace``.
    """

    protocol: str
    """Whose terms these are, for messages; no field of comparison."""
    training: Fact
    """Training data in the whole ancestry, as ``evalkit.protocol.training_set`` writes it."""
    config: Fact
    """Task configuration of the evaluation."""
    tasks: Fact
    """Number of tasks the mean is over."""
    embodiment: Fact
    assets: Fact
    task_code: Fact
    """Commits of RoboTwin's task code."""
    renderer: Fact
    action_type: Fact
    first_seed: Fact
    """First candidate seed, with ``s`` for the evaluation's own seed number."""
    accepted_seeds: Fact
    trials_per_task: Fact
    instruction_source: Fact
    instruction_split: Fact
    step_limits: Fact
    success: Fact
    errors: Fact
    """What a trial that ends in an exception counts as."""
    denominator: Fact
    """What successes are divided by."""
    score: Fact


FIELDS: tuple[str, ...] = tuple(field.name for field in fields(Terms) if field.name != "protocol")
"""Fields of comparison, in the order they are shown."""

SEVERITIES: Mapping[str, Severity] = MappingProxyType(
    {
        "training": "blocks",
        "config": "blocks",
        "tasks": "blocks",
        "embodiment": "blocks",
        "assets": "blocks",
        "task_code": "caveat",
        "renderer": "caveat",
        "action_type": "caveat",
        "first_seed": "caveat",
        "accepted_seeds": "caveat",
        "trials_per_task": "caveat",
        "instruction_source": "blocks",
        "instruction_split": "caveat",
        "step_limits": "blocks",
        "success": "blocks",
        "errors": "caveat",
        "denominator": "caveat",
        "score": "blocks",
    }
)
"""Field -> what a difference does to a comparison of the scores."""

BLOCKING_VALUES: Mapping[str, str] = MappingProxyType(
    {"accepted_seeds": "unfiltered", "denominator": "trials_without_error"}
)
"""Fields that block only where one side has this value and the other hasn't."""

MUST_BE_KNOWN = ("training", "config")
"""Not knowing these blocks; not knowing another field is a caveat."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One field in which two scores' terms differ, or in which it isn't known whether they do."""

    name: str
    ours: str
    theirs: str
    severity: Severity

    def __str__(self) -> str:
        return f"{self.name} is {self.ours} here, {self.theirs} there"


@dataclass(frozen=True, kw_only=True)
class Differences:
    """All differences of two scores' terms."""

    ours: str
    """Name of the first score's protocol."""
    theirs: str
    fields: tuple[Difference, ...]
    """In the order of ``FIELDS``."""

    @property
    def blocking(self) -> tuple[Difference, ...]:
        """Those for which the scores may not be compared."""
        return tuple(difference for difference in self.fields if difference.severity == "blocks")

    @property
    def caveats(self) -> tuple[Difference, ...]:
        """Those that must be stated beside a comparison."""
        return tuple(difference for difference in self.fields if difference.severity == "caveat")

    @property
    def legal(self) -> bool:
        """Whether the scores may be compared."""
        return not self.blocking

    @property
    def reason(self) -> str:
        """One line for the verdict."""
        if self.blocking:
            return f"not comparable: {_listed(self.blocking)}"
        return f"comparable, but {_listed(self.caveats)}" if self.caveats else "comparable: the same terms"


def compare_protocols(ours: Terms, theirs: Terms) -> Differences:
    """Field by field, where two scores' terms differ and what that means for a comparison.

    A field of several values agrees with any of them. A value that isn't known agrees with nothing, itself included:
    what can't be ruled out is stated.
    """
    found = (_difference(name, getattr(ours, name), getattr(theirs, name)) for name in FIELDS)
    return Differences(
        ours=ours.protocol, theirs=theirs.protocol, fields=tuple(difference for difference in found if difference)
    )


def shown(fact: Fact) -> str:
    """A field's value as text, e.g. ``"qpos or ee"``."""
    return fact if isinstance(fact, str) else " or ".join(fact)


def values_of(fact: Fact) -> frozenset[str]:
    """The values of which any may hold."""
    return frozenset((fact,) if isinstance(fact, str) else fact)


def is_known(fact: Fact) -> bool:
    """Whether the value says what was done."""
    return not values_of(fact) & {UNKNOWN, PER_RUN}


def _difference(name: str, ours: Fact, theirs: Fact) -> Difference | None:
    known = is_known(ours) and is_known(theirs)
    if known and values_of(ours) & values_of(theirs):
        return None
    return Difference(name=name, ours=shown(ours), theirs=shown(theirs), severity=_severity(name, ours, theirs, known))


def _severity(name: str, ours: Fact, theirs: Fact, known: bool) -> Severity:
    if not known:
        return "blocks" if name in MUST_BE_KNOWN else "caveat"
    special = BLOCKING_VALUES.get(name)
    if special is not None and special in values_of(ours) ^ values_of(theirs):
        return "blocks"
    return SEVERITIES[name]


def _listed(differences: tuple[Difference, ...]) -> str:
    return "; ".join(map(str, differences))
