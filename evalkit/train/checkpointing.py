"""Writing step folders: whole or not at all.

A folder is filled under a hidden temporary name, every file and the folder itself forced to disk, and then renamed. A
kill at any moment leaves no ``step_<N>`` or a complete one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from evalkit.core.errors import UserError
from evalkit.core.files import write_json
from evalkit.policy.checkpoint import MODEL_FILE, POLICY_FILE, SCHEMA
from evalkit.provenance.card import TrainingCard, write_card

LOSS_FILE = "losses.jsonl"
"""Mean losses of a run, one line a logging interval, beside its step folders."""
_TEMPORARY = ".step_"


def step_folder(run: Path, step: int) -> Path:
    """Where a step's checkpoint lies."""
    return run / f"step_{step}"


def prepare_run_folder(run: Path) -> None:
    """Make sure that a run folder is free, and clear away what a run killed before its first checkpoint left.

    Raises:
        UserError: the folder already holds checkpoints; a new run never mixes with an old one.
    """
    if not run.exists():
        return
    existing = sorted(child.name for child in run.iterdir() if child.name.startswith("step_"))
    if existing:
        raise UserError(f"{run} already holds {', '.join(existing)}: choose another --out, or move them away")
    for leftover in run.glob(f"{_TEMPORARY}*"):
        shutil.rmtree(leftover)
    (run / LOSS_FILE).unlink(missing_ok=True)


def save_checkpoint(
    run: Path, card: TrainingCard, policy_file: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]
) -> Path:
    """Write ``step_<card.step>`` into a run folder.

    Args:
        run: the run folder.
        card: the training card; names the step.
        policy_file: adapter, spec and what the adapter needs; schema and step are added.
        tensors: the weights, saved as they are.

    Returns:
        The step folder.

    Raises:
        UserError: the step folder exists.
    """
    target = step_folder(run, card.step)
    if target.exists():
        raise UserError(f"{target} exists: a checkpoint is never overwritten")
    temporary = run / f"{_TEMPORARY}{card.step}.tmp-{os.getpid()}"
    try:
        temporary.mkdir(parents=True)
        save_file({name: tensor.contiguous().cpu() for name, tensor in tensors.items()}, temporary / MODEL_FILE)
        write_json(temporary / POLICY_FILE, {"schema": SCHEMA, "step": card.step, **policy_file})
        write_card(temporary, card)
        for path in (temporary / MODEL_FILE, temporary, run):
            _fsync(path)
        os.rename(temporary, target)
        _fsync(run)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
