"""Accepted seeds: the first N candidates, in increasing order, whose scene is stable and whose expert succeeds.

A list belongs to one (physics digest, task, configuration) and is reused by every policy, so that two policies meet
the same scenes. Candidates run upward from ``100000 * (1 + seed_base)``. Source: RoboTwin's evaluation script.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from evalkit.core.errors import UserError
from evalkit.core.hashing import digest
from evalkit.core.trial import Split

SEEDS_PER_BASE = 100_000
IDENTICAL_ERRORS = 5
"""So many candidates in a row that fail with the same exception are a broken installation, not bad luck."""
REJECTED_IN_A_ROW = 200
"""More rejected candidates in a row than this end the search, unless told otherwise."""
UNLISTED = "unlisted"
"""Reason of a candidate that an imported list passes over."""
FALL_BACKS = ("line_became_joint_move",)
"""What a planner counts that is no failure."""


@dataclass(frozen=True, kw_only=True)
class SeedEntry:
    """One candidate and what became of it."""

    seed: int
    accepted: bool
    reason: str
    """``"ok"``, ``"unstable: ..."``, ``"plan_failed"``, ``"check_failed"``, ``"error: ..."`` or ``UNLISTED``."""
    config_digest: str
    """Configuration the candidate was tried under."""
    info: Mapping[str, str] = field(default_factory=dict)
    """Values of the instruction's placeholders, as the expert gave them."""
    instruction: str = ""
    """The sentence a policy is given with this scene."""
    instruction_split: Split = "unseen"
    scene_digest: str = ""
    """Digest of the settled scene, to notice a machine on which it settles otherwise."""
    setup_s: float = 0.0
    """Wall time of building and settling the scene; also that of one that didn't settle."""
    expert_s: float = 0.0
    plan_failures: Mapping[str, int] = field(default_factory=dict)
    """Of a rejected candidate: what the planner couldn't plan, by kind, if it says so. ``candidate_...`` are poses that
    the task's code only tried out."""

    @property
    def kind(self) -> str:
        """The reason without its details, e.g. ``"unstable"``."""
        return self.reason.partition(":")[0]

    @property
    def detailed_kind(self) -> str:
        """The kind with what the planner couldn't do, e.g. ``"plan_failed (unreachable)"``."""
        if self.kind != "plan_failed":
            return self.kind
        kinds = [kind for kind in self.plan_failures if not kind.startswith("candidate_") and kind not in FALL_BACKS]
        return f"{self.kind} ({', '.join(sorted(kinds))})" if kinds else self.kind

    def to_json(self) -> dict[str, Any]:
        """Plain mapping for one JSON line."""
        values = asdict(self)
        if not self.plan_failures:
            del values["plan_failures"]
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> SeedEntry:
        """Inverse of ``to_json``.

        Raises:
            TypeError: a field is missing or unknown.
        """
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class SeedList:
    """Accepted seeds of one task and configuration, with what was rejected on the way."""

    task: str
    config: str
    entries: tuple[SeedEntry, ...]
    """Every candidate from the first to the last accepted one, in increasing order; or to the last one tried, if a
    number of candidates was asked for."""

    @property
    def accepted(self) -> tuple[SeedEntry, ...]:
        """The accepted candidates in increasing order."""
        return tuple(entry for entry in self.entries if entry.accepted)

    @property
    def rejections(self) -> dict[str, int]:
        """Kind of reason -> number of rejected candidates."""
        return dict(Counter(entry.kind for entry in self.entries if not entry.accepted).most_common())

    @property
    def detailed_rejections(self) -> dict[str, int]:
        """As ``rejections``, with what the planner couldn't do."""
        return dict(Counter(entry.detailed_kind for entry in self.entries if not entry.accepted).most_common())

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted over tried, or None if none was tried."""
        return len(self.accepted) / len(self.entries) if self.entries else None

    @property
    def digest(self) -> str:
        """SHA-256 over the accepted seeds and their instructions."""
        return digest([[entry.seed, entry.instruction] for entry in self.accepted])


def median_s(times_s: Iterable[float]) -> float | None:
    """Median of the times that were taken, s; those that weren't are 0. None if none was."""
    taken = [time_s for time_s in times_s if time_s > 0]
    return round(statistics.median(taken), 4) if taken else None


def first_candidate(seed_base: int) -> int:
    """First candidate seed.

    Raises:
        UserError: a negative base: its seeds are those of the training demonstrations.
    """
    if seed_base < 0:
        raise UserError(f"--seed-base is {seed_base}; it must be 0 or more: seeds below 100000 are training seeds")
    return SEEDS_PER_BASE * (1 + seed_base)


class SeedSearch:
    """The search for one list, as a state machine: hand out candidates, take results in any order.

    Never hands out more candidates than could still be needed, so that the candidates tried are the same whatever the
    number of workers.

    Args:
        task: RoboTwin's task.
        config: name of the configuration.
        config_digest: entries of other digests are ignored.
        seed_base: see ``first_candidate``.
        count: accepted seeds wanted.
        known: entries from files, in any order.
        candidates: try exactly so many candidates instead, whatever comes out: to measure how many are accepted.
        give_up_after: so many rejected candidates in a row, and one more, end the search for ``count``.
        first: first candidate, where it isn't the seed base's.
    """

    def __init__(
        self,
        task: str,
        config: str,
        config_digest: str,
        seed_base: int,
        count: int,
        known: Iterable[SeedEntry],
        *,
        candidates: int | None = None,
        give_up_after: int = REJECTED_IN_A_ROW,
        first: int | None = None,
    ) -> None:
        self.task, self.config, self.count = task, config, count
        self._candidates, self._give_up_after = candidates, give_up_after
        self._first = first_candidate(seed_base) if first is None else first
        self._known = {entry.seed: entry for entry in known if entry.config_digest == config_digest}
        self._entries: list[SeedEntry] = []
        self._accepted = 0
        self._out: set[int] = set()
        self._next = self._first
        self._advance()
        # Errors at the end of what is known may have been those of an installation that is mended by now.
        while not self.is_done and self._entries and self._entries[-1].kind == "error":
            del self._known[self._entries.pop().seed]

    @property
    def is_done(self) -> bool:
        """Whether the list is complete."""
        return self.progress[0] >= self.progress[1]

    @property
    def progress(self) -> tuple[int, int]:
        """How many of how many wanted there are: accepted seeds, or candidates if their number is given."""
        if self._candidates is not None:
            return len(self._entries), self._candidates
        return self._accepted, self.count

    @property
    def accepted_count(self) -> int:
        """Accepted seeds so far, gaps excluded."""
        return self._accepted

    @property
    def entries(self) -> Sequence[SeedEntry]:
        """Candidates judged so far without a gap, in increasing order."""
        return self._entries

    def next_candidate(self) -> int | None:
        """A candidate to try, or None if none is needed at present.

        Raises:
            UserError: the search is hopeless (see ``IDENTICAL_ERRORS`` and ``REJECTED_IN_A_ROW``).
        """
        if self._candidates is None:
            # Entries further on belong to another seed base: nothing is known of what lies between.
            ahead = sum(entry.accepted for seed, entry in self._known.items() if self._tail() <= seed < self._next)
            if self._accepted + ahead + len(self._out) >= self.count:
                return None
            self._stop_if_hopeless()
        seed = self._next
        while seed in self._known or seed in self._out:
            seed += 1
        if self._candidates is not None and seed >= self._first + self._candidates:
            return None
        self._next = seed + 1
        self._out.add(seed)
        return seed

    def put_back(self, seed: int) -> None:
        """Forget that a candidate was handed out: nobody tries it any more."""
        self._out.discard(seed)
        self._next = min(self._next, seed)

    def put(self, entry: SeedEntry) -> list[SeedEntry]:
        """Take a result; returns the entries that now follow without a gap, to be written in this order."""
        self._out.discard(entry.seed)
        self._known[entry.seed] = entry
        return self._advance()

    def result(self) -> SeedList:
        """The complete list: nothing behind the last seed wanted."""
        if not self.is_done:
            done, wanted = self.progress
            raise ValueError(f"{self.task} {self.config}: {done} of {wanted} seeds so far")
        return SeedList(task=self.task, config=self.config, entries=tuple(self._entries))

    def _tail(self) -> int:
        return self._first + len(self._entries)

    def _advance(self) -> list[SeedEntry]:
        new = []
        while not self.is_done and (entry := self._known.get(self._tail())):
            self._entries.append(entry)
            self._accepted += entry.accepted
            new.append(entry)
        return new

    def _stop_if_hopeless(self) -> None:
        tail: list[SeedEntry] = []
        for entry in reversed(self._entries):
            if entry.accepted:
                break
            tail.append(entry)
        same = tail[:IDENTICAL_ERRORS]
        where = f"{self.task} {self.config}"
        if len(same) == IDENTICAL_ERRORS and tail[0].kind == "error" and len({_shape(e.reason) for e in same}) == 1:
            raise UserError(
                f"{where}: {IDENTICAL_ERRORS} candidates in a row, to seed {tail[0].seed}, failed alike: "
                f"{tail[0].reason}: is the installation complete? Run `evalkit doctor`"
            )
        if len(tail) > self._give_up_after:
            counted = Counter(entry.detailed_kind for entry in tail).most_common()
            reasons = ", ".join(f"{kind} {number}" for kind, number in counted)
            raise UserError(
                f"{where}: {len(tail)} candidates in a row, seeds {tail[-1].seed} to {tail[0].seed}, were rejected "
                f"({reasons}); {self._accepted} of {self.count} accepted: the task doesn't work on this backend"
            )


def _shape(reason: str) -> str:
    """A reason with its numbers struck out: the same exception may name another seed or address."""
    return re.sub(r"0x[0-9a-fA-F]+|\d+", "#", reason)
