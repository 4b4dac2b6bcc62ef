"""Modes: which task configurations a run evaluates."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from evalkit.core.errors import UnknownNameError

CLEAN = "demo_clean"
RANDOMIZED = "demo_randomized"

MODES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"c2c": (CLEAN,), "c2r": (RANDOMIZED,), "all": (CLEAN, RANDOMIZED)}
)
"""Mode -> configurations in the order they run. A mode says where a policy is evaluated; the label of the score
follows from its training data (see ``evalkit.protocol.labels``)."""


def configs_of(mode: str) -> tuple[str, ...]:
    """Configurations of a mode.

    Raises:
        UnknownNameError: no such mode.
    """
    if mode not in MODES:
        raise UnknownNameError("mode", mode, MODES)
    return MODES[mode]
