"""Simulators: the contract and its implementations."""
