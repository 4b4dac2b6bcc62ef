"""The house policy's network: three pictures, the arm state and a sentence condition a flow over action chunks.

Shape letters: B batch, C cameras, H/W picture height/width, F trunk features, N condition tokens, L text features,
K chunk steps, A action dimensions, P patches of a chunk (``K / patch_steps``), D token width.

A picture passes a small convolutional trunk (shared by the cameras, modulated by the sentence and the camera) and
leaves a grid of tokens and a few spatial-softmax keypoints. A transformer encoder mixes them with state and text;
a decoder turns noisy actions into velocities. The observation is encoded once; each integration step runs only the
decoder, with the condition's keys and values cached.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from evalkit.core.errors import UserError


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """Sizes of the network; stored in the checkpoint."""

    cameras: int = 3
    image_height_px: int = 96
    image_width_px: int = 128
    chunk_steps: int = 32
    state_dim: int = 14
    action_dim: int = 14
    patch_steps: int = 2
    """Actions per decoder token."""
    width: int = 256
    heads: int = 8
    encoder_layers: int = 2
    decoder_layers: int = 3
    mlp_ratio: int = 2
    stem_channels: int = 32
    trunk_channels: tuple[int, ...] = (64, 128, 192)
    """Channels of the stages at 1/4, 1/8, 1/16 of the picture."""
    trunk_blocks: tuple[int, ...] = (2, 2, 1)
    keypoints: int = 32
    """Spatial-softmax points per camera, taken at 1/8."""
    text_buckets: int = 2048
    text_dim: int = 96

    def __post_init__(self) -> None:
        if self.chunk_steps % self.patch_steps:
            raise UserError(f"chunk_steps {self.chunk_steps} isn't a multiple of patch_steps {self.patch_steps}")
        if self.width % self.heads:
            raise UserError(f"width {self.width} isn't a multiple of heads {self.heads}")
        if len(self.trunk_channels) != len(self.trunk_blocks) or len(self.trunk_channels) < 2:
            raise UserError("trunk_channels and trunk_blocks must have the same length, at least 2")

    @property
    def grid_tokens(self) -> int:
        """Tokens a picture leaves: each of the stem and the stages halves it, rounding up."""
        stride_px = 2 << len(self.trunk_channels)
        return -(-self.image_height_px // stride_px) * -(-self.image_width_px // stride_px)


class _Block(nn.Module):
    """Residual block of two convolutions; the second is modulated (scale, shift) by the conditioning vector."""

    def __init__(self, channels: int, condition_dim: int) -> None:
        super().__init__()
        groups = channels // 16
        self.norm1, self.norm2 = nn.GroupNorm(groups, channels), nn.GroupNorm(groups, channels)
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.film = nn.Linear(condition_dim, 2 * channels)
        nn.init.zeros_(self.film.weight)
        nn.init.zeros_(self.film.bias)
        nn.init.zeros_(self.conv2.weight)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        scale, shift = self.film(condition)[:, :, None, None].chunk(2, dim=1)
        hidden = self.conv1(functional.silu(self.norm1(x)))
        hidden = torch.addcmul(shift, self.norm2(hidden), 1 + scale)
        out: Tensor = x + self.conv2(functional.silu(hidden))
        return out


class _Trunk(nn.Module):
    """Picture → feature maps at 1/8 (keypoints) and at the last stage (tokens)."""

    def __init__(self, config: NetworkConfig, condition_dim: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, config.stem_channels, 5, stride=2, padding=2)
        self.downs, self.stages = nn.ModuleList(), nn.ModuleList()
        before = config.stem_channels
        for channels, blocks in zip(config.trunk_channels, config.trunk_blocks, strict=True):
            self.downs.append(nn.Conv2d(before, channels, 3, stride=2, padding=1))
            self.stages.append(nn.ModuleList(_Block(channels, condition_dim) for _ in range(blocks)))
            before = channels

    def forward(self, images: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        x, eighth = functional.silu(self.stem(images)), images
        for index, (down, stage) in enumerate(zip(self.downs, self.stages, strict=True)):
            x = down(x)
            for block in stage:  # type: ignore[attr-defined]
                x = block(x, condition)
            if index == 1:
                eighth = x
        return eighth, x


class _Attention(nn.Module):
    """Multi-head attention; keys and values may be computed beforehand."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def _split(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        return x.reshape(batch, tokens, self.heads, width // self.heads).transpose(1, 2)

    def memory(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of (B, N, D), each (B, heads, N, D / heads)."""
        key, value = self.key_value(x).chunk(2, dim=-1)
        return self._split(key), self._split(value)

    def forward(self, x: Tensor, memory: tuple[Tensor, Tensor]) -> Tensor:
        mixed = functional.scaled_dot_product_attention(self._split(self.query(x)), *memory)
        out: Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return out


def _mlp(width: int, ratio: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, ratio * width), nn.GELU(approximate="tanh"), nn.Linear(ratio * width, width))


class _EncoderLayer(nn.Module):
    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.attention = _Attention(config.width, config.heads)
        self.mlp = _mlp(config.width, config.mlp_ratio)

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm1(x)
        x = x + self.attention(normed, self.attention.memory(normed))
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


class _DecoderLayer(nn.Module):
    """Self-attention among actions, cross-attention to the condition, MLP; modulated by the flow time."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        width = config.width
        self.norm1 = nn.LayerNorm(width, elementwise_affine=False)
        self.norm2 = nn.LayerNorm(width)
        self.norm3 = nn.LayerNorm(width, elementwise_affine=False)
        self.self_attention = _Attention(width, config.heads)
        self.cross_attention = _Attention(width, config.heads)
        self.mlp = _mlp(width, config.mlp_ratio)
        self.modulation = nn.Parameter(torch.zeros(6, width))

    def forward(self, x: Tensor, modulation: Tensor, memory: tuple[Tensor, Tensor]) -> Tensor:
        shift1, scale1, gate1, shift2, scale2, gate2 = (modulation + self.modulation).unsqueeze(2).unbind(1)
        normed = self.norm1(x) * (1 + scale1) + shift1
        x = x + (1 + gate1) * self.self_attention(normed, self.self_attention.memory(normed))
        x = x + self.cross_attention(self.norm2(x), memory)
        out: Tensor = x + (1 + gate2) * self.mlp(self.norm3(x) * (1 + scale2) + shift2)
        return out


class HouseNetwork(nn.Module):
    """Velocity field over normalised action chunks, conditioned on an observation."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        self.text_table = nn.Embedding(config.text_buckets, config.text_dim, padding_idx=0)
        self.text_score = nn.Linear(config.text_dim, 1)
        self.text_in = nn.Linear(2 * config.text_dim, 2 * width)
        self.camera_table = nn.Parameter(torch.randn(config.cameras, width) * 0.02)
        self.trunk = _Trunk(config, width)
        self.grid_in = nn.Linear(config.trunk_channels[-1], width)
        self.grid_position = nn.Parameter(torch.randn(config.cameras, config.grid_tokens, width) * 0.02)
        self.heatmaps = nn.Conv2d(config.trunk_channels[1], config.keypoints, 1)
        self.keypoints_in = nn.Linear(2 * config.keypoints, width)
        self.state_in = nn.Sequential(nn.Linear(config.state_dim, width), nn.SiLU(), nn.Linear(width, width))
        self.encoder = nn.ModuleList(_EncoderLayer(config) for _ in range(config.encoder_layers))
        self.encoder_norm = nn.LayerNorm(width)
        self.time_in = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 8 * width))
        patches = config.chunk_steps // config.patch_steps
        self.action_in = nn.Linear(config.patch_steps * config.action_dim, width)
        self.action_position = nn.Parameter(torch.randn(patches, width) * 0.02)
        self.decoder = nn.ModuleList(_DecoderLayer(config) for _ in range(config.decoder_layers))
        self.out_norm = nn.LayerNorm(width, elementwise_affine=False)
        self.action_out = nn.Linear(width, config.patch_steps * config.action_dim)
        nn.init.normal_(self.text_table.weight, std=0.05)
        nn.init.zeros_(self.action_out.weight)
        nn.init.zeros_(self.action_out.bias)

    def encode(self, images: Tensor, state: Tensor, text: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Condition of a decision: the decoder's cross-attention keys and values, one pair a layer.

        Args:
            images: (B, C, 3, H, W) float, about [-1, 1].
            state: (B, 14) normalised.
            text: (B, L) int, feature buckets of the sentence, padded by 0.
        """
        batch = images.shape[0]
        sentence, modulator = self.text_in(self._pool_text(text)).chunk(2, dim=-1)
        condition = functional.silu(modulator[:, None] + self.camera_table).flatten(0, 1)
        eighth, features = self.trunk(images.flatten(0, 1), condition)
        grid = self.grid_in(features.flatten(2).transpose(1, 2)).unflatten(0, (batch, -1)) + self.grid_position
        points = self.keypoints_in(self._keypoints(eighth)).unflatten(0, (batch, -1)) + self.camera_table
        extra = torch.stack([self.state_in(state), sentence], dim=1)
        tokens = torch.cat([grid.flatten(1, 2), points, extra], dim=1)
        for layer in self.encoder:
            tokens = layer(tokens)
        tokens = self.encoder_norm(tokens)
        return [layer.cross_attention.memory(tokens) for layer in self.decoder]  # type: ignore[union-attr,operator]

    def velocity(self, actions: Tensor, time: Tensor, memory: list[tuple[Tensor, Tensor]]) -> Tensor:
        """Velocity of noisy actions.

        Args:
            actions: (B, K, A) normalised, noisy.
            time: (B,) flow time, 0 noise to 1 action.
            memory: from ``encode``.

        Returns:
            (B, K, A).
        """
        config = self.config
        modulation = self.time_in(_time_features(time, config.width)).reshape(-1, 8, config.width)
        patches = actions.reshape(len(actions), -1, config.patch_steps * config.action_dim)
        x = self.action_in(patches) + self.action_position
        for layer, layer_memory in zip(self.decoder, memory, strict=True):
            x = layer(x, modulation[:, :6], layer_memory)
        x = self.out_norm(x) * (1 + modulation[:, 6:7]) + modulation[:, 7:8]
        out: Tensor = self.action_out(x)
        return out.reshape(actions.shape)

    def forward(self, images: Tensor, state: Tensor, text: Tensor, actions: Tensor, time: Tensor) -> Tensor:
        """``velocity`` of ``encode``: the training path."""
        return self.velocity(actions, time, self.encode(images, state, text))

    def _pool_text(self, text: Tensor) -> Tensor:
        """(B, L) buckets → (B, 2 text_dim): mean and attention-pooled embedding of the features present."""
        present = (text > 0).unsqueeze(-1)
        embedded = self.text_table(text)
        mean = (embedded * present).sum(1) / present.sum(1).clamp(min=1)
        score = self.text_score(embedded).masked_fill(~present, -1e4)
        return torch.cat([mean, (score.softmax(dim=1) * embedded).sum(1)], dim=-1)

    def _keypoints(self, features: Tensor) -> Tensor:
        """(B, F, h, w) → (B, 2 keypoints): expected column and row of each heatmap, in [-1, 1]."""
        height, width = features.shape[-2:]
        weight = self.heatmaps(features).flatten(2).float().softmax(dim=-1)
        rows = torch.linspace(-1, 1, height, device=features.device)
        columns = torch.linspace(-1, 1, width, device=features.device)
        places = torch.stack([columns.repeat(height), rows.repeat_interleave(width)], dim=-1)
        points: Tensor = weight @ places
        return points.flatten(1)


def _time_features(time: Tensor, width: int) -> Tensor:
    """(B,) → (B, width) sines and cosines of geometrically spaced frequencies."""
    steps = torch.arange(width // 2, device=time.device, dtype=torch.float32)
    frequencies = torch.exp(steps * (math.log(1000.0) / (width // 2 - 1)))
    angles = time.float()[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def parameter_count(network: nn.Module) -> int:
    """Number of trained numbers."""
    return sum(parameter.numel() for parameter in network.parameters())
