"""How a trial can end."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """The end of one trial. What each one counts as is the protocol's statement, not this enum's."""

    SUCCESS = "success"
    """RoboTwin's success check was true at some instant within the step limit."""
    FAILURE = "failure"
    """The step limit was reached without success."""
    POLICY_ERROR = "policy_error"
    """The policy broke its contract: an exception, a wrong shape, a non-finite action, a time-out."""
    SIM_ERROR = "sim_error"
    """The simulator failed on every attempt: the trial is missing, not failed."""
    HARNESS_ERROR = "harness_error"
    """evalkit failed on every attempt: the trial is missing, not failed."""

    @property
    def is_scored(self) -> bool:
        """Whether the trial says something about the policy."""
        return self in (Outcome.SUCCESS, Outcome.FAILURE, Outcome.POLICY_ERROR)
