"""Vocabulary shared by every package: trials, records, outcomes, errors. numpy and the standard library only."""
