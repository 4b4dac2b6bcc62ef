"""Bookkeeping of a collection: which seeds are done, which were accepted, which comes next.

Episodes are the first N successful seeds in increasing order from 0, whatever the number of workers. An accepted seed
gets its episode number when all smaller seeds are decided; until then its files wait under the seed's name. What is on
disk is always enough to go on: a kill loses the seeds in flight and nothing else.
"""

from __future__ import annotations

import itertools
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from evalkit.core.errors import HarnessError, UserError
from evalkit.core.files import JsonLinesWriter, read_json_lines, write_atomic, write_json
from evalkit.core.hashing import file_digest
from evalkit.core.lock import FileLock
from evalkit.data.collect_identity import check_identity
from evalkit.data.episode_file import Episode, write_episode
from evalkit.data.layout import DatasetFolder, seed_text

SAME_ERROR_LIMIT = 5
"""So many seeds in a row failing with the same error are a broken installation, not bad luck with scenes."""


@dataclass(frozen=True, kw_only=True)
class SeedRecord:
    """What became of one seed."""

    seed: int
    accepted: bool
    reason: str
    """``"ok"``, or why the seed was rejected."""
    frames: int = 0
    sha256: str = ""
    """Of the episode file."""
    scene_info: Mapping[str, Any] = field(default_factory=dict)
    """The episode's entry in ``scene_info.json``."""


class Collection:
    """The demonstrations of one task under one configuration, growing to a target number.

    Not thread-safe, except for ``save``.

    Args:
        dataset: the folder.
        target: number of episodes wanted.
        identity: what the seeds are tried with; see ``collect_identity``.
        max_rejects: give up after so many rejected seeds.

    Raises:
        UserError: another process collects there, or what lies there was collected otherwise.
    """

    def __init__(
        self, dataset: DatasetFolder, target: int, identity: Mapping[str, Any], max_rejects: int = 200
    ) -> None:
        self.dataset, self.target, self.max_rejects = dataset, target, max_rejects
        self.stopped = ""
        """Why the collection was given up, or empty."""
        self._lock = FileLock(dataset.lock_file)
        check_identity(dataset, identity)
        if not self._lock.acquire():
            raise UserError(f"another process is collecting in {dataset.path}: wait for it or end it")
        if not dataset.collection_file.exists():
            write_json(dataset.collection_file, dict(identity))
        logged = _read_log(dataset.seeds_log)
        self._decided = {record.seed: record for record in logged if _is_whole(dataset, record, logged)}
        self._once_accepted = {record.seed for record in logged if record.accepted}
        self._in_flight: set[int] = set()
        self._unwritten: list[SeedRecord] = []
        self._same_error = ""
        self._log = JsonLinesWriter(dataset.seeds_log)
        self._number_episodes()
        self._stop_at_max_rejects()

    @property
    def accepted(self) -> int:
        """Seeds accepted so far."""
        return sum(record.accepted for record in self._decided.values())

    @property
    def tried(self) -> int:
        """Seeds decided so far."""
        return len(self._decided)

    @property
    def is_complete(self) -> bool:
        """Whether all episodes wanted are there."""
        return self.accepted >= self.target and not self._in_flight

    def rejections(self) -> Counter[str]:
        """Number of rejected seeds by kind of reason."""
        return Counter(_kind(record.reason) for record in self._decided.values() if not record.accepted)

    def next_seed(self) -> int | None:
        """The smallest seed to try, or None while the seeds in flight may be enough.

        The caller owes a ``record``, ``record_error`` or ``abandon`` for it.
        """
        if self.stopped or self.accepted + len(self._in_flight) >= self.target:
            return None
        seed = next(seed for seed in itertools.count() if seed not in self._decided and seed not in self._in_flight)
        self._in_flight.add(seed)
        return seed

    def save(
        self, seed: int, episode: Episode, sentences: Mapping[str, Sequence[str]], scene_info: Mapping[str, Any]
    ) -> SeedRecord:
        """Write the files of an accepted seed under its own name. May be called from any thread."""
        write_json(self.dataset.pending_instructions(seed), {split: list(texts) for split, texts in sentences.items()})
        path = self.dataset.pending_episode(seed)
        write_episode(path, episode)
        return SeedRecord(
            seed=seed,
            accepted=True,
            reason="ok",
            frames=episode.frames,
            sha256=file_digest(path),
            scene_info=scene_info,
        )

    def record(self, record: SeedRecord) -> None:
        """Settle a seed in flight.

        Raises:
            HarnessError: the seed was accepted before its files were lost, and is rejected now.
        """
        self._in_flight.discard(record.seed)
        if record.seed in self._once_accepted and not record.accepted:
            raise HarnessError(
                f"{self.dataset.path}: seed {record.seed} was accepted before and is rejected now ({record.reason}): "
                "the simulator isn't deterministic; collect into another folder"
            )
        self._write_kept_back()
        self._log.append(asdict(record))
        self._decided[record.seed] = record
        self._number_episodes()
        self._stop_at_max_rejects()

    def record_error(self, record: SeedRecord, error: str) -> None:
        """Settle a seed on which the simulator raised, unless the same error keeps coming.

        Such seeds are kept back until something else happens. If nothing else does, they are forgotten, for it isn't
        the seeds that are wrong, and the collection stops.

        Args:
            record: the rejection.
            error: text by which errors are told apart.
        """
        if error != self._same_error:
            self._write_kept_back()
        self._in_flight.discard(record.seed)
        self._same_error = error
        self._unwritten.append(record)
        self._decided[record.seed] = record
        if len(self._unwritten) >= SAME_ERROR_LIMIT:
            for kept_back in self._unwritten:
                del self._decided[kept_back.seed]
            self._unwritten = []
            self.stopped = f"the same error {SAME_ERROR_LIMIT} times in a row: {record.reason}"
            return
        self._stop_at_max_rejects()

    def abandon(self, seed: int) -> None:
        """Give back a seed in flight undecided."""
        self._in_flight.discard(seed)

    def close(self) -> None:
        """Tidy up if complete, and let others in."""
        if self.is_complete:
            self._write_kept_back()
            self._number_episodes()
        self._log.close()
        if self.is_complete:
            self._tidy()
        self._lock.release()

    def _write_kept_back(self) -> None:
        for record in self._unwritten:
            self._log.append(asdict(record))
        self._unwritten, self._same_error = [], ""

    def _stop_at_max_rejects(self) -> None:
        rejected = self.tried - self.accepted
        if rejected >= self.max_rejects and self.accepted < self.target:
            reasons = ", ".join(f"{count} {kind}" for kind, count in self.rejections().most_common())
            self.stopped = f"{rejected} seeds rejected ({reasons}): raise --max-rejects to go on"

    def _number_episodes(self) -> None:
        """Give numbers to accepted seeds with no undecided seed before them, and list them. Repeatable."""
        numbered = _numbered(self._decided)
        for number, record in enumerate(numbered):
            _move(self.dataset.pending_instructions(record.seed), self.dataset.instructions(number))
            _move(self.dataset.pending_episode(record.seed), self.dataset.episode(number))
        if not numbered:
            return
        text = seed_text(record.seed for record in numbered)
        if not self.dataset.seed_file.exists() or self.dataset.seed_file.read_text() != text:
            info = {f"episode_{number}": record.scene_info for number, record in enumerate(numbered)}
            write_json(self.dataset.scene_info_file, info)
            write_atomic(self.dataset.seed_file, text)

    def _tidy(self) -> None:
        """Bring the folder to the form it has whatever the order of events was."""
        last = max(record.seed for record in self._decided.values() if record.accepted)
        kept = sorted((record for record in self._decided.values() if record.seed <= last), key=lambda r: r.seed)
        write_atomic(
            self.dataset.seeds_log, "".join(json.dumps(asdict(record), separators=(",", ":")) + "\n" for record in kept)
        )
        for path in self.dataset.leftovers():
            path.unlink()


def _read_log(path: Path) -> list[SeedRecord]:
    """Records of a log, the last one of each seed."""
    try:
        records = [SeedRecord(**line) for line in read_json_lines(path)]
    except (ValueError, TypeError) as error:
        raise UserError(f"{path} isn't a record of seeds: {error}") from error
    return list({record.seed: record for record in records}.values())


def _is_whole(dataset: DatasetFolder, record: SeedRecord, logged: Sequence[SeedRecord]) -> bool:
    """Whether a seed needn't be tried again: rejected, or its files exist."""
    if not record.accepted:
        return True
    numbered = [other.seed for other in _numbered({other.seed: other for other in logged})]
    episodes, sentences = [dataset.pending_episode(record.seed)], [dataset.pending_instructions(record.seed)]
    if record.seed in numbered:
        number = numbered.index(record.seed)
        episodes.append(dataset.episode(number))
        sentences.append(dataset.instructions(number))
    return any(path.exists() for path in episodes) and any(path.exists() for path in sentences)


def _numbered(decided: Mapping[int, SeedRecord]) -> list[SeedRecord]:
    """Accepted records below the first undecided seed: their positions are their episode numbers."""
    settled = itertools.takewhile(lambda record: record is not None, map(decided.get, itertools.count()))
    return [record for record in settled if record is not None and record.accepted]


def _move(source: Path, target: Path) -> None:
    if source.exists():
        os.replace(source, target)


def _kind(reason: str) -> str:
    return reason.split(":", 1)[0]
