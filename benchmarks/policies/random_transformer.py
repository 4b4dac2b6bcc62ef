"""A transformer of a billion random weights as a policy of ``evalkit run``: for measuring, it can't do anything.

Found by evalkit in the working folder's ``policies/``: run from ``benchmarks/``, with ``--policy random_transformer``.
Its passes have a fixed number of rows, each multiplied by itself, so that a trial's bits don't depend on which others
are under way. It keeps the arms about where they are, since random motions would take RoboTwin ten times as long as a
trained policy's, and looks again after a quarter of each chunk. Without a GPU it is a small one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sides"))
from big_policy import BigPolicy, Size, make_network

from evalkit.core.errors import UserError

NEEDS_CHECKPOINT = False
SLOTS = 8
EXECUTE_STEPS = 8
SMALL = Size(width=64, layers=2, heads=4)


def load(checkpoint: Path | None, *, device: str, execute_steps: int = EXECUTE_STEPS) -> BigPolicy:
    """The policy, with the same weights wherever it is loaded.

    Raises:
        UserError: a checkpoint was given.
    """
    if checkpoint is not None:
        raise UserError(f"policy random_transformer takes no checkpoint, got {checkpoint}: leave --ckpt out")
    if device == "cpu":
        network, slots = make_network(SMALL, device, torch.float32), 2
    else:
        network, slots = make_network(Size(), device, torch.bfloat16), SLOTS
    return BigPolicy(network, slots, row_by_row=True, near=True, execute_steps=execute_steps)
