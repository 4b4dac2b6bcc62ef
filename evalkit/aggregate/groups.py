"""Many checkpoints: which of them can't be told apart, instead of ranks that chance has drawn.

Every pair is tested; Holm's correction over all pairs keeps the probability of any false "these differ" below alpha.
From this follow, all at once at that level:

- the ranks a checkpoint may have: at best one more than the number found better than it, at worst all but those found
  worse (Mogstad, Romano, Shaikh and Wilhelm, 2024);
- groups: the largest sets within which no two were told apart. A checkpoint may be in several: "A and B can't be told
  apart, nor can B and C" doesn't mean that A and C can't.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from string import ascii_lowercase

from evalkit.aggregate.pairs import Significance, holm


@dataclass(frozen=True, kw_only=True)
class Member:
    """One checkpoint among others."""

    name: str
    score: float
    best_rank: int
    worst_rank: int
    groups: tuple[str, ...]
    """Letters of its groups; two checkpoints without a common letter were told apart."""


def tell_apart(
    scores: Mapping[str, float], tests: Mapping[tuple[str, str], Significance], *, alpha: float = 0.05
) -> tuple[Member, ...]:
    """Groups and possible ranks, highest score first.

    Args:
        scores: name -> score.
        tests: a test for each pair of names, in either order. A pair without one counts as not told apart.
        alpha: highest probability of telling any two apart that are equal.
    """
    names = sorted(scores, key=lambda name: (-scores[name], name))
    adjusted = dict(zip(tests, holm([test.p for test in tests.values()]), strict=True))
    apart = {frozenset(pair) for pair, p in adjusted.items() if p <= alpha}
    letters = _letters(names, apart)
    members = []
    for name in names:
        told = [other for other in names if frozenset((name, other)) in apart]
        better = sum(scores[other] > scores[name] for other in told)
        worse = sum(scores[other] < scores[name] for other in told)
        members.append(
            Member(
                name=name,
                score=scores[name],
                best_rank=1 + better,
                worst_rank=len(names) - worse,
                groups=letters[name],
            )
        )
    return tuple(members)


def _letters(names: Sequence[str], apart: set[frozenset[str]]) -> dict[str, tuple[str, ...]]:
    """Insert and absorb (Piepho 2004): split every set that holds a pair told apart, drop sets within others."""
    sets: list[frozenset[str]] = [frozenset(names)] if names else []
    for pair in combinations(names, 2):
        if frozenset(pair) not in apart:
            continue
        split = [kept for found in sets for kept in (_without(found, pair) if set(pair) <= found else [found])]
        unique = list(dict.fromkeys(split))
        sets = [found for found in unique if not any(found < other for other in unique)]
    order = {name: index for index, name in enumerate(names)}
    sets.sort(key=lambda found: sorted(order[name] for name in found))
    marks: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
    for index, found in enumerate(sets):
        for name in found:
            marks[name] += (_letter(index),)
    return marks


def _without(found: frozenset[str], pair: tuple[str, str]) -> list[frozenset[str]]:
    return [found - {name} for name in pair]


def _letter(index: int) -> str:
    """``a`` to ``z``, then ``a1`` to ``z1``, and so on."""
    round_, place = divmod(index, len(ascii_lowercase))
    return ascii_lowercase[place] + (str(round_) if round_ else "")
