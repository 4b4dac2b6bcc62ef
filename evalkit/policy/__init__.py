"""Policies: the contract, checkpoints, chunk rules, adapters."""
