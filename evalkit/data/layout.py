"""RoboTwin's raw layout of demonstrations, as its collector of 2025 writes it and its converters read it.

    <root>/<task>/<config>/
        seed.txt                      accepted seeds in episode order, separated by spaces
        scene_info.json               {"episode_<k>": {"cluttered_table_info", "texture_info", "info"}}
        data/episode<k>.hdf5
        instructions/episode<k>.json  {"seen": [...], "unseen": [...]}
        video/episode<k>.mp4          optional

evalkit adds ``seeds.jsonl`` (what became of every seed tried) and ``collection.json`` (what they were tried with).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_EPISODE = re.compile(r"episode(\d+)\.(?:hdf5|json|mp4)")
_CONFIG_OF_RELEASE = {"clean": "demo_clean", "randomized": "demo_randomized"}
_RELEASE = re.compile(r".+_(clean|randomized)_\d+")


@dataclass(frozen=True)
class DatasetFolder:
    """Paths of one task's demonstrations under one configuration."""

    path: Path
    """``<root>/<task>/<config>``."""

    @classmethod
    def of(cls, root: Path, task: str, config: str) -> DatasetFolder:
        """The folder of a task and configuration under a data root."""
        return cls(root / task / config)

    @property
    def task(self) -> str:
        """Name of the task, as the folder says."""
        return self.path.parent.name

    @property
    def config(self) -> str:
        """Configuration the folder's name stands for.

        Released archives are named after embodiment and size, e.g. ``aloha-agilex_clean_50``; they were collected under
        ``demo_clean`` and ``demo_randomized``.
        """
        release = _RELEASE.fullmatch(self.path.name)
        return _CONFIG_OF_RELEASE[release[1]] if release else self.path.name

    @property
    def seed_file(self) -> Path:
        """Accepted seeds in episode order."""
        return self.path / "seed.txt"

    @property
    def scene_info_file(self) -> Path:
        """Clutter, textures and instruction placeholders of each episode."""
        return self.path / "scene_info.json"

    @property
    def seeds_log(self) -> Path:
        """What became of every seed evalkit tried."""
        return self.path / "seeds.jsonl"

    @property
    def collection_file(self) -> Path:
        """Simulator and settings the seeds were tried with."""
        return self.path / "collection.json"

    @property
    def digest_cache(self) -> Path:
        """Cached SHA-256 digests of the episode files."""
        return self.path / ".digests.json"

    @property
    def lock_file(self) -> Path:
        """Held by the one collector at work in the folder."""
        return self.path / ".collector.lock"

    def episode(self, number: int) -> Path:
        """Trajectory and images of an episode."""
        return self.path / "data" / f"episode{number}.hdf5"

    def instructions(self, number: int) -> Path:
        """Instruction sentences of an episode."""
        return self.path / "instructions" / f"episode{number}.json"

    def pending_episode(self, seed: int) -> Path:
        """Finished episode of a seed whose number isn't known yet."""
        return self.path / "data" / f".seed{seed}.hdf5"

    def pending_instructions(self, seed: int) -> Path:
        """Instruction sentences that go with ``pending_episode``."""
        return self.path / "instructions" / f".seed{seed}.json"

    def episode_numbers(self) -> tuple[int, ...]:
        """Numbers of the episode files that exist, in numeric order."""
        return numbers_in(self.path / "data", ".hdf5")

    def leftovers(self) -> tuple[Path, ...]:
        """Files of an unfinished collection: pending episodes and half-written files."""
        folders = (self.path / "data", self.path / "instructions")
        found = (path for folder in folders if folder.is_dir() for path in folder.iterdir())
        return tuple(sorted(path for path in found if path.name.startswith(".")))


def numbers_in(folder: Path, suffix: str) -> tuple[int, ...]:
    """Numbers of the files ``episode<k><suffix>`` in a folder, in numeric order; empty if there is no folder."""
    if not folder.is_dir():
        return ()
    numbers = (episode_number(path) for path in folder.iterdir() if path.suffix == suffix)
    return tuple(sorted(number for number in numbers if number is not None))


def episode_number(path: Path) -> int | None:
    """Number in the name ``episode<k>.<suffix>``, or None for any other name."""
    match = _EPISODE.fullmatch(path.name)
    return int(match[1]) if match else None


def dataset_folders(path: Path) -> tuple[DatasetFolder, ...]:
    """Dataset folders at ``path`` or at most two levels below it, in name order."""
    candidates = [path, *_subfolders([path]), *_subfolders(_subfolders([path]))]
    return tuple(DatasetFolder(folder) for folder in candidates if _is_dataset(folder))


def seed_text(seeds: Iterable[int]) -> str:
    """Text of ``seed.txt``: RoboTwin's collector ends it with a space."""
    return "".join(f"{seed} " for seed in seeds)


def _subfolders(folders: Iterable[Path]) -> list[Path]:
    return sorted(child for folder in folders for child in folder.iterdir() if child.is_dir())


def _is_dataset(folder: Path) -> bool:
    if (folder / "seed.txt").is_file() or (folder / "seeds.jsonl").is_file():
        return True
    return bool(numbers_in(folder / "data", ".hdf5"))
