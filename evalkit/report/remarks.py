"""What a run's records say that is worth a look and changes no number."""

from __future__ import annotations

from collections.abc import Sequence

from evalkit.core.record import GRIPPERS_HARDLY_OPEN, TrialRecord


def remarks(records: Sequence[TrialRecord]) -> list[str]:
    """One line each. What a policy does in some scenes only is its own affair; what it does in all may be a mix-up."""
    asked = [record for record in records if record.policy_calls]
    if asked and all(GRIPPERS_HARDLY_OPEN in record.remarks for record in asked):
        what = f"in none of {len(asked)} trials did the policy command a gripper to be more than nearly closed"
        return [f"{what}, though they were open at first: another unit (metres)? see evalkit policy check"]
    return []
