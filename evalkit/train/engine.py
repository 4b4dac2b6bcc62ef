"""One optimisation step, repeated: forward, backward, clip, AdamW, average of the weights.

Nothing in a step waits for the device. On a GPU, forward to optimiser are captured once as a CUDA graph and replayed,
so that the many small kernels of a small network cost no launch time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from evalkit.train.config import TrainConfig
from evalkit.train.dataset import Dataset
from evalkit.train.recipe import Trainable

_WARMUP_STEPS = 3
"""Eager steps before capture, as CUDA graphs want; they are undone."""


def learning_rate_at(config: TrainConfig, step: int) -> float:
    """Learning rate of the step with this 0-based number: linear warm-up, then half a cosine."""
    if step < config.warmup_steps:
        return config.learning_rate * (step + 1) / config.warmup_steps
    progress = (step - config.warmup_steps) / max(1, config.steps - config.warmup_steps)
    floor = config.final_learning_rate_fraction
    return config.learning_rate * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * progress)))


class Engine:
    """Owns optimiser, averaged weights and, on a GPU, the captured step.

    Args:
        config: the training configuration.
        trainable: network and loss, on the data's device.
        dataset: the samples.
        seed: seeds the batches, noise and augmentation.
    """

    def __init__(self, config: TrainConfig, trainable: Trainable, dataset: Dataset, seed: int) -> None:
        self._config, self._trainable, self._dataset = config, trainable, dataset
        self._device = dataset.device
        cuda = self._device.type == "cuda"
        self._generator = torch.Generator(self._device).manual_seed(seed)
        named = [(name, parameter) for name, parameter in trainable.module.named_parameters()]
        self._names = [name for name, _ in named]
        self._parameters = [parameter for _, parameter in named]
        self._learning_rate = torch.zeros((), device=self._device)
        self._optimizer = torch.optim.AdamW(
            _decay_groups(self._parameters, config.weight_decay),
            lr=self._learning_rate if cuda else 0.0,
            betas=(config.betas[0], config.betas[1]),
            fused=True if cuda else None,
            capturable=cuda,
        )
        self._average = [parameter.detach().clone() for parameter in self._parameters]
        self._graph: torch.cuda.CUDAGraph | None = None
        self._graph_loss: Tensor | None = None
        if cuda:
            if config.compile:
                trainable.compile()
            self._capture()

    def step(self, number: int) -> Tensor:
        """Do the step with this 0-based number. Returns its loss, still on the device."""
        rate = learning_rate_at(self._config, number)
        if self._graph is not None and self._graph_loss is not None:
            self._learning_rate.fill_(rate)
            self._graph.replay()
            loss = self._graph_loss
        else:
            for group in self._optimizer.param_groups:
                group["lr"] = rate
            loss = self._once()
        decay = min(self._config.ema_decay, (1 + number) / (10 + number))
        torch._foreach_lerp_(self._average, [parameter.detach() for parameter in self._parameters], 1 - decay)
        return loss

    def averaged_weights(self) -> dict[str, Tensor]:
        """The exponential moving average of the weights, by parameter name."""
        return dict(zip(self._names, self._average, strict=True))

    def _once(self) -> Tensor:
        low = self._device.type == "cuda" and self._config.precision == "bfloat16"
        self._optimizer.zero_grad(set_to_none=True)
        batch = self._dataset.sample(self._config.batch_size, self._generator)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=low, cache_enabled=False):
            loss = self._trainable.loss(batch, self._generator)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self._parameters, self._config.gradient_clip_norm, foreach=True)
        self._optimizer.step()
        return loss.detach()

    def _capture(self) -> None:
        """Warm up, put the weights and the optimiser back to their beginning, and capture one step."""
        weights = [parameter.detach().clone() for parameter in self._parameters]
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARMUP_STEPS):
                self._once()
        torch.cuda.current_stream().wait_stream(side)
        with torch.no_grad():
            torch._foreach_copy_([parameter.data for parameter in self._parameters], weights)
            for state in self._optimizer.state.values():
                for value in state.values():
                    value.zero_()
        self._optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        with torch.cuda.graph(graph):
            self._graph_loss = self._once()
        self._graph = graph


def _decay_groups(parameters: Sequence[nn.Parameter], weight_decay: float) -> list[dict[str, object]]:
    """Matrices and filters decay; biases, gains and other vectors don't."""
    return [
        {"params": [parameter for parameter in parameters if parameter.ndim >= 2], "weight_decay": weight_decay},
        {"params": [parameter for parameter in parameters if parameter.ndim < 2], "weight_decay": 0.0},
    ]
