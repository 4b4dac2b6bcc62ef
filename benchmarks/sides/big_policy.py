"""A transformer with random weights, as large as one likes: what a large policy costs, without one.

Shaped as today's large policies are: one pass over the tokens of three pictures and the state, whose keys and values
are kept, then some passes over the tokens of the actions (flow matching). Pure torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from evalkit.core.rng import stream
from evalkit.policy.contract import ActionChunk, CameraSpec, EpisodeInfo, Observation, PolicySpec

CAMERAS = ("head_camera", "left_camera", "right_camera")
HEIGHT_PX, WIDTH_PX, PATCH_PX, ACTION_DIM = 240, 320, 20, 14
GRIPPERS = [6, 13]
STEP_RAD = 0.01
PICTURE_TOKENS = (HEIGHT_PX // PATCH_PX) * (WIDTH_PX // PATCH_PX)


@dataclass(frozen=True, kw_only=True)
class Size:
    """Of the network: 12 x layers x width^2 parameters, and a little."""

    width: int = 2048
    layers: int = 20
    heads: int = 16
    chunk_steps: int = 32
    euler_steps: int = 5


class Linear(nn.Linear):
    """A linear layer that multiplies either all rows' tokens as one matrix, or each row's as one of its own.

    In one large matrix a row's last bits may depend on where in it the row lies and on how large it is: the kernel
    divides it into tiles. Row by row, every row meets the same tiles.
    """

    row_by_row = False

    def forward(self, x: Tensor) -> Tensor:
        """(rows, tokens, in) -> (rows, tokens, out)."""
        if not self.row_by_row:
            return super().forward(x)
        y = torch.bmm(x, self.weight.t().expand(x.shape[0], -1, -1))
        return y if self.bias is None else y + self.bias


class Block(nn.Module):
    """Attention and a perceptron, each after a norm."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        width = size.width
        self.heads = size.heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = Linear(width, 3 * width, bias=False), Linear(width, width, bias=False)
        self.up, self.down = Linear(width, 4 * width, bias=False), Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor, past: tuple[Tensor, Tensor] | None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """(rows, tokens, width) -> the same, and this block's keys and values."""
        rows, tokens, width = x.shape
        parts = self.qkv(self.norm_1(x)).view(rows, tokens, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        if past is not None:
            key, value = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
        seen = functional.scaled_dot_product_attention(query, key, value)
        x = x + self.out(seen.transpose(1, 2).reshape(rows, tokens, width))
        return x + self.down(functional.gelu(self.up(self.norm_2(x)))), (key, value)


class Network(nn.Module):
    """Pictures, state and noise -> actions."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size = size
        self.patches = Linear(3 * PATCH_PX * PATCH_PX, size.width)
        self.place = nn.Parameter(torch.zeros(len(CAMERAS) * PICTURE_TOKENS, size.width))
        self.state, self.action = Linear(ACTION_DIM, size.width), Linear(ACTION_DIM, size.width)
        self.time = Linear(1, size.width)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.head = Linear(size.width, ACTION_DIM)

    def forward(self, pictures: Tensor, state: Tensor, noise: Tensor) -> Tensor:
        """(rows, 3, H, W, 3) uint8, (rows, 14), (rows, chunk, 14) -> (rows, chunk, 14)."""
        kind, rows = self.place.dtype, pictures.shape[0]
        x = pictures.to(kind) / 127.5 - 1.0
        x = x.reshape(rows, 3, HEIGHT_PX // PATCH_PX, PATCH_PX, WIDTH_PX // PATCH_PX, PATCH_PX, 3)
        x = x.permute(0, 1, 2, 4, 3, 5, 6).reshape(rows, len(CAMERAS) * PICTURE_TOKENS, -1)
        x = torch.cat([self.patches(x) + self.place, self.state(state.to(kind)[:, None])], dim=1)
        kept = []
        for block in self.blocks:
            x, past = block(x, None)
            kept.append(past)
        actions = noise.to(kind)
        for number in range(self.size.euler_steps):
            moment = torch.full((rows, 1, 1), number / self.size.euler_steps, dtype=kind, device=actions.device)
            y = self.action(actions) + self.time(moment)
            for block, past in zip(self.blocks, kept, strict=True):
                y, _ = block(y, past)
            actions = actions + self.head(y) / self.size.euler_steps
        return actions


def _in_range(actions: NDArray[np.float64]) -> ActionChunk:
    """Joints within one rad, grippers between closed and open."""
    chunk = np.tanh(actions)
    chunk[:, GRIPPERS] = np.abs(chunk[:, GRIPPERS])
    return chunk


def _near(state: NDArray[np.float32], actions: NDArray[np.float64]) -> ActionChunk:
    """Joints within ``STEP_RAD`` of the observed ones: random targets take RoboTwin's arms ten times as long."""
    chunk = state.astype(np.float64) + STEP_RAD * np.tanh(actions)
    chunk[:, GRIPPERS] = np.clip(chunk[:, GRIPPERS], 0.0, 1.0)
    return chunk


def make_network(size: Size, device: str, kind: torch.dtype, seed: int = 0) -> Network:
    """A network with random weights, made where it will be."""
    torch.manual_seed(seed)
    with torch.device(device):
        torch.set_default_dtype(kind)
        try:
            network = Network(size)
        finally:
            torch.set_default_dtype(torch.float32)
    nn.init.normal_(network.place, std=0.02)
    return network.eval().requires_grad_(False)


class BigPolicy:
    """The network behind evalkit's policy contract.

    Args:
        network: on its device.
        slots: rows of every pass, empty ones filled: the same kernels run however many observations wait. None: as many
            rows as there are observations.
        row_by_row: see ``Linear``.
        graph: on CUDA, record the pass of ``slots`` rows once and replay it.
        near: answer with joints near the observed ones; otherwise with any within one rad.
        execute_steps: of a chunk's actions; None: all.
    """

    def __init__(
        self,
        network: Network,
        slots: int | None,
        *,
        row_by_row: bool = False,
        graph: bool = False,
        near: bool = False,
        execute_steps: int | None = None,
    ) -> None:
        self._network, self._slots, self._near = network, slots, near
        for layer in network.modules():
            if isinstance(layer, Linear):
                layer.row_by_row = row_by_row
        self._device = network.place.device
        self._seeds: dict[str, int] = {}
        self.spec = PolicySpec(
            name="transformer",
            cameras=tuple(CameraSpec(name=name) for name in CAMERAS),  # type: ignore[arg-type]
            action_type="qpos",
            chunk_steps=network.size.chunk_steps,
            execute_steps=execute_steps or network.size.chunk_steps,
            needs_instruction=False,
            stateful=False,
        )
        self._graph: Any = None
        if graph and slots is not None:
            self._record(slots)

    def reset(self, info: EpisodeInfo) -> None:
        """Remember the episode's seed."""
        self._seeds[info.session] = info.policy_seed

    def act(self, observation: Observation) -> ActionChunk:
        """Decide for one."""
        return self.act_batch([observation])[0]

    def act_batch(self, observations: Sequence[Observation]) -> list[ActionChunk]:
        """Decide for several."""
        slots = self._slots or len(observations)
        chunks: list[ActionChunk] = []
        for start in range(0, len(observations), slots):
            group = list(observations[start : start + slots])
            rows = [self._row(observation) for observation in group]
            rows += [rows[0]] * (slots - len(rows))
            columns = [torch.from_numpy(np.stack(column)) for column in zip(*rows, strict=True)]
            actions = self._pass(columns).float().cpu().numpy().astype(np.float64)
            for observation, row in zip(group, actions, strict=False):
                chunks.append(_near(observation.state, row) if self._near else _in_range(row))
        return chunks

    def close(self) -> None:
        """Release the recorded pass."""
        self._graph = None

    def _row(self, observation: Observation) -> tuple[NDArray[Any], ...]:
        pictures = np.stack([observation.images[name] for name in CAMERAS])
        random = stream(self._seeds[observation.session], "transformer", observation.step)
        noise = random.standard_normal((self._network.size.chunk_steps, ACTION_DIM), np.float32)
        return pictures, observation.state.astype(np.float32), noise

    def _pass(self, columns: list[Tensor]) -> Tensor:
        with torch.inference_mode():
            if self._graph is None:
                result: Tensor = self._network(*(column.to(self._device) for column in columns))
                return result
            graph, inputs, output = self._graph
            for there, column in zip(inputs, columns, strict=True):
                there.copy_(column)
            graph.replay()
            return output  # type: ignore[no-any-return]

    def _record(self, slots: int) -> None:
        size = self._network.size
        inputs = [
            torch.zeros(slots, 3, HEIGHT_PX, WIDTH_PX, 3, dtype=torch.uint8, device=self._device),
            torch.zeros(slots, ACTION_DIM, device=self._device),
            torch.zeros(slots, size.chunk_steps, ACTION_DIM, device=self._device),
        ]
        with torch.inference_mode():
            side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(2):
                    self._network(*inputs)
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                output = self._network(*inputs)
        self._graph = graph, inputs, output
