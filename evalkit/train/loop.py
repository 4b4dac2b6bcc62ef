"""A training run from configuration to checkpoints."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from evalkit.core.errors import EvalkitError, UserError
from evalkit.core.files import JsonLinesWriter
from evalkit.core.rng import stream_seed
from evalkit.train.card import make_card
from evalkit.train.checkpointing import LOSS_FILE, prepare_run_folder, save_checkpoint
from evalkit.train.config import TrainConfig
from evalkit.train.dataset import Dataset, load_dataset
from evalkit.train.engine import Engine
from evalkit.train.recipe import Blueprint, Recipe, Trainable

WEIGHTS_DTYPE = torch.float16
"""Saved weights are rounded to half precision: half the size, far below the noise of training."""


class TrainingDivergedError(EvalkitError):
    """The loss was no longer a number; names the step. Checkpoints saved before it stay."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Told to the caller now and then."""

    phase: str
    """``"frames"`` (episodes decoded) or ``"train"`` (steps done)."""
    done: int
    total: int
    loss: float | None = None
    seconds_per_step: float | None = None


@dataclass(frozen=True, kw_only=True)
class TrainResult:
    """What a finished run leaves."""

    checkpoints: tuple[Path, ...]
    final_loss: float
    """Mean over the last logging interval."""
    steps: int
    wall_s: float
    seconds_per_step: float
    samples: int
    parameters: int


def train(
    config: TrainConfig,
    recipe: Recipe,
    *,
    out: Path,
    device: str,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> TrainResult:
    """Train a policy and save its checkpoints.

    Args:
        config: the run.
        recipe: how the policy is trained.
        out: the run folder; gets ``step_<N>/`` and ``losses.jsonl``. Decoded pictures are kept beside it.
        device: ``"cpu"``, ``"cuda"`` or ``"cuda:<n>"``.
        on_progress: told about decoding and training.

    Raises:
        UserError: settings or demonstrations are wrong, or ``out`` already holds checkpoints.
        TrainingDivergedError: the loss became infinite or not a number.
    """
    target = _device(device)
    blueprint = recipe.configure(config.settings)
    prepare_run_folder(out)
    dataset = load_dataset(
        config.data,
        blueprint.request,
        device=target,
        cache_folder=out.parent / ".frames",
        progress=lambda done, total: on_progress(Progress(phase="frames", done=done, total=total)),
    )
    trainable = blueprint.build(dataset, seed=stream_seed(config.seed, "weights"))
    return _Run(config, blueprint, trainable, dataset, out, on_progress).go()


class _Run:
    """State of the loop: losses still on the device, losses known, checkpoints saved."""

    def __init__(
        self,
        config: TrainConfig,
        blueprint: Blueprint,
        trainable: Trainable,
        dataset: Dataset,
        out: Path,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._config, self._blueprint, self._trainable, self._dataset = config, blueprint, trainable, dataset
        self._out, self._on_progress = out, on_progress
        self._pending = torch.zeros(config.log_every_steps, device=dataset.device)
        self._logged_steps = 0
        self._losses: list[tuple[int, float]] = []
        self._saved: list[Path] = []

    def go(self) -> TrainResult:
        config = self._config
        engine = Engine(config, self._trainable, self._dataset, stream_seed(config.seed, "training"))
        writer = JsonLinesWriter(self._out / LOSS_FILE)
        start_s = time.monotonic()
        try:
            for number in range(config.steps):
                self._pending[number - self._logged_steps].copy_(engine.step(number))
                step = number + 1
                last = step == config.steps
                save = last or (config.save_every_steps is not None and step % config.save_every_steps == 0)
                if save or step - self._logged_steps == config.log_every_steps:
                    self._log(step, time.monotonic() - start_s, writer)
                if save:
                    self._save(engine, step, time.monotonic() - start_s)
        finally:
            writer.close()
        wall_s = time.monotonic() - start_s
        return TrainResult(
            checkpoints=tuple(self._saved),
            final_loss=self._losses[-1][1],
            steps=config.steps,
            wall_s=wall_s,
            seconds_per_step=wall_s / config.steps,
            samples=len(self._dataset),
            parameters=_parameters(self._trainable),
        )

    def _log(self, step: int, wall_s: float, writer: JsonLinesWriter) -> None:
        """Fetch the losses since the last time: the only wait for the device."""
        losses = self._pending[: step - self._logged_steps].tolist()
        for offset, loss in enumerate(losses):
            if not math.isfinite(loss):
                raise TrainingDivergedError(
                    f"loss {loss} at step {self._logged_steps + offset + 1}: lower learning_rate, or check the data "
                    "with evalkit data verify"
                )
        mean = sum(losses) / len(losses)
        self._losses.append((step, mean))
        self._logged_steps = step
        writer.append({"step": step, "loss": mean, "wall_s": round(wall_s, 3)})
        self._on_progress(
            Progress(
                phase="train", done=step, total=self._config.steps, loss=mean, seconds_per_step=wall_s / step
            )
        )  # fmt: skip

    def _save(self, engine: Engine, step: int, wall_s: float) -> None:
        card = make_card(
            self._config,
            step=step,
            settings=self._blueprint.settings(),
            dataset=self._dataset,
            parameters=_parameters(self._trainable),
            wall_s=wall_s,
            losses=tuple(self._losses),
        )
        weights = {name: tensor.to(WEIGHTS_DTYPE) for name, tensor in engine.averaged_weights().items()}
        for name, tensor in weights.items():
            if not bool(torch.isfinite(tensor).all()):
                raise TrainingDivergedError(f"weights {name} aren't finite in half precision at step {step}")
        self._saved.append(save_checkpoint(self._out, card, self._trainable.policy_file(), weights))


def _parameters(trainable: Trainable) -> int:
    return sum(parameter.numel() for parameter in trainable.module.parameters())


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UserError(f"unknown device {name!r}: give cpu, cuda or cuda:<n>") from error
    if device.type not in ("cpu", "cuda"):
        raise UserError(f"device {name!r} isn't supported: give cpu, cuda or cuda:<n>")
    if device.type == "cuda":
        count = torch.cuda.device_count()
        if (device.index or 0) >= count:
            raise UserError(f"device {name!r} isn't there: torch sees {count} CUDA devices; give --device cpu")
    return device
