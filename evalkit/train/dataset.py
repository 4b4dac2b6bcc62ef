"""All training samples on the device: a step gathers its batch by index, and no loader stands between."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from evalkit.core.hashing import digest
from evalkit.data.episode_file import read_episode, read_instructions
from evalkit.data.index import EpisodeRef, data_source, index_dataset
from evalkit.provenance.card import DataSource
from evalkit.train.config import DataConfig
from evalkit.train.frames import Progress, load_frames, sample_frames
from evalkit.train.recipe import Batch, DataRequest

_UPLOAD_ROWS = 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """M samples of E episodes with N frames in all; every tensor on one device.

    The action k steps into a sample's chunk is the commanded state k + 1 frames later, and the episode's last state
    after its end.
    """

    images: torch.Tensor
    """(M, cameras, height, width, 3) uint8."""
    states: torch.Tensor
    """(N, 14) float32."""
    sample_frame: torch.Tensor
    """(M,) index into ``states``."""
    sample_last: torch.Tensor
    """(M,) index into ``states`` of the episode's last frame."""
    sample_episode: torch.Tensor
    """(M,)"""
    text: torch.Tensor
    """(sentences, features) distinct sentences."""
    episode_text: torch.Tensor
    """Indices into ``text``, the episodes' sentences one after another."""
    episode_text_start: torch.Tensor
    """(E,) index into ``episode_text``."""
    episode_text_count: torch.Tensor
    """(E,)"""
    chunk_steps: int
    sources: tuple[DataSource, ...]
    digest: str
    """Over the digests of all sources."""

    def __len__(self) -> int:
        return len(self.sample_frame)

    @property
    def device(self) -> torch.device:
        """Where the samples are."""
        return self.images.device

    def targets(self, place: int) -> NDArray[np.float32]:
        """(M, 14) actions at one place of every sample's chunk."""
        rows = torch.minimum(self.sample_frame + place + 1, self.sample_last)
        result: NDArray[np.float32] = self.states[rows].cpu().numpy()
        return result

    def sample(self, size: int, generator: torch.Generator) -> Batch:
        """A batch drawn uniformly with replacement, each with one of its episode's sentences."""
        device = self.device
        picked = torch.randint(len(self), (size,), generator=generator, device=device)
        frame, last = self.sample_frame[picked], self.sample_last[picked]
        ahead = torch.arange(1, self.chunk_steps + 1, device=device)
        rows = torch.minimum(frame[:, None] + ahead, last[:, None])
        episode = self.sample_episode[picked]
        uniform = torch.rand(size, generator=generator, device=device)
        sentence = self.episode_text_start[episode] + (uniform * self.episode_text_count[episode]).long()
        return Batch(
            images=self.images[picked],
            state=self.states[frame],
            actions=self.states[rows],
            text=self.text[self.episode_text[sentence]],
        )


def load_dataset(
    config: DataConfig, request: DataRequest, *, device: torch.device, cache_folder: Path, progress: Progress
) -> Dataset:
    """Read demonstrations and put their samples on a device.

    Args:
        config: which demonstrations.
        request: what the policy wants of them.
        device: where the samples go, pictures included.
        cache_folder: where decoded pictures are kept if the configuration says so.
        progress: told after each decoded episode.

    Raises:
        UserError: demonstrations are missing, fewer than asked for, or broken.
    """
    root = Path(config.root).expanduser()
    refs = [
        ref
        for name in config.configs
        for ref in index_dataset(root, config.tasks, name, config.episodes_per_task)
    ]  # fmt: skip
    sources = tuple(
        data_source(group, sum(len(sample_frames(ref.frames, config.frame_stride)) for ref in group))
        for group in (list(refs) for _, refs in groupby(refs, key=lambda ref: (ref.task, ref.config)))
    )
    data_digest = digest([source.digest for source in sources])
    frames = load_frames(
        refs,
        request,
        config.frame_stride,
        data_digest=data_digest,
        cache_folder=cache_folder if config.cache_frames else None,
        progress=progress,
    )
    states, frame, last, episode = _index_samples(refs, config.frame_stride)
    text, flat, start, count = _index_text(refs, request)

    def put(values: NDArray[np.int64]) -> torch.Tensor:
        return torch.from_numpy(values).to(device)

    return Dataset(
        images=_upload(frames, device),
        states=torch.from_numpy(states.astype(np.float32)).to(device),
        sample_frame=put(frame),
        sample_last=put(last),
        sample_episode=put(episode),
        text=put(text),
        episode_text=put(flat),
        episode_text_start=put(start),
        episode_text_count=put(count),
        chunk_steps=request.chunk_steps,
        sources=sources,
        digest=data_digest,
    )


def _index_samples(
    refs: list[EpisodeRef], stride: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """All states, and for each sample its frame, its episode's last frame and its episode."""
    states, frame, last, episode, start = [], [], [], [], 0
    for number, ref in enumerate(refs):
        state = read_episode(ref.path, ()).state
        picked = np.array(sample_frames(len(state), stride), np.int64)
        states.append(state)
        frame.append(start + picked)
        last.append(np.full(len(picked), start + len(state) - 1, np.int64))
        episode.append(np.full(len(picked), number, np.int64))
        start += len(state)
    return np.concatenate(states), np.concatenate(frame), np.concatenate(last), np.concatenate(episode)


def _index_text(
    refs: list[EpisodeRef], request: DataRequest
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Distinct encoded sentences, and each episode's share of a flat list of indices into them.

    Only the split ``seen`` is learnt from: ``unseen`` sentences are what evaluation may use.
    """
    known: dict[str, int] = {}
    flat: list[int] = []
    start, count = [], []
    for ref in refs:
        sentences = read_instructions(ref.instruction_path)["seen"]
        start.append(len(flat))
        count.append(len(sentences))
        flat += [known.setdefault(sentence, len(known)) for sentence in sentences]
    text = np.stack([request.encode_text(sentence) for sentence in known])
    return text, np.array(flat, np.int64), np.array(start, np.int64), np.array(count, np.int64)


def _upload(frames: NDArray[np.uint8], device: torch.device) -> torch.Tensor:
    """Copy to the device piece by piece: a memory map is never read whole into memory. On a CPU it stays a map."""
    if device.type == "cpu":
        return torch.from_numpy(frames)
    images = torch.empty(frames.shape, dtype=torch.uint8, device=device)
    for row in range(0, len(frames), _UPLOAD_ROWS):
        images[row : row + _UPLOAD_ROWS] = torch.from_numpy(frames[row : row + _UPLOAD_ROWS]).to(device)
    return images
