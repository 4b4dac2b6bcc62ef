"""Filling in the training card."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from typing import Any

import torch

from evalkit import __version__
from evalkit.core.locations import checkout
from evalkit.provenance.card import TrainingCard
from evalkit.train.config import TrainConfig
from evalkit.train.dataset import Dataset


def make_card(
    config: TrainConfig,
    *,
    step: int,
    settings: dict[str, Any],
    dataset: Dataset,
    parameters: int,
    wall_s: float,
    losses: tuple[tuple[int, float], ...],
) -> TrainingCard:
    """The card of one checkpoint.

    Args:
        config: the run's configuration.
        step: steps done.
        settings: the policy's resolved settings.
        dataset: what was learnt from.
        parameters: size of the network.
        wall_s: time since the first step.
        losses: (step, mean loss since the previous entry).
    """
    commit, dirty = code_state()
    cuda = dataset.device.type == "cuda"
    return TrainingCard(
        policy=config.policy,
        step=step,
        data=dataset.sources,
        initial_weights="random",
        parent=None,
        recipe=config.resolved() | {"settings": settings, "optimizer": "AdamW", "schedule": "cosine with warm-up"},
        world_size=1,
        samples_seen=step * config.batch_size,
        parameters=parameters,
        device=torch.cuda.get_device_name(dataset.device) if cuda else "cpu",
        wall_s=round(wall_s, 3),
        seconds_per_step=wall_s / step,
        losses=losses,
        normalisation_digest=dataset.digest,
        code_commit=commit,
        code_dirty=dirty,
        evalkit_version=__version__,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        notes=(
            f"saved weights: exponential moving average, decay {config.ema_decay}, rounded to float16",
            f"torch {torch.__version__}, forward pass in {config.precision if cuda else 'float32'}",
        ),
    )


def code_state() -> tuple[str, bool]:
    """Commit of the checkout evalkit runs from, and whether tracked files differ from it.

    Without a checkout or git the commit is ``"unknown"`` and the state counts as changed.
    """
    root = checkout()
    if root is None:
        return "unknown", True
    answers = []
    for arguments in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"]):
        try:
            done = subprocess.run(
                ["git", "-C", root, *arguments], capture_output=True, text=True, timeout=30, check=False
            )
        except (FileNotFoundError, subprocess.TimeoutExpired):
            return "unknown", True
        if done.returncode != 0:
            return "unknown", True
        answers.append(done.stdout.strip())
    return answers[0], bool(answers[1])
