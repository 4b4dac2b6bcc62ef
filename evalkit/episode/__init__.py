"""One trial: from a TrialSpec to a TrialRecord."""
