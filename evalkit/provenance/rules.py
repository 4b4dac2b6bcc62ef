"""What a training card and its ancestors say against a score: findings with a code, a severity and one line each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evalkit.core.errors import UserError
from evalkit.core.hashing import digest
from evalkit.provenance.ancestry import Generation, lineage
from evalkit.provenance.card import CARD_FILE, DataSource, TrainingCard

Severity = Literal["error", "warning"]
Scenes = Mapping[tuple[str, str], frozenset[int]]
"""(Task, configuration) -> scene seeds."""

RESUME_KEYS = ("optimizer_path", "latest_log_dir", "latest_global_step", "latest_epoch")
"""Settings with which trainers that keep their state in the configuration file continue a run, whoever's it was."""
KNOWN_CONFIGS = ("demo_clean", "demo_randomized")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that a reader of the score must know."""

    code: str
    severity: Severity
    """``error``: a score doesn't mean what it seems to, or isn't one of the protocol. ``warning``: that may be so."""
    text: str
    """One line."""


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """Training data that a protocol asks for."""

    config: str
    episodes_per_task: int
    tasks: int
    first_seed: int
    """First candidate seed of an evaluation: demonstrations come from seeds below it."""


@dataclass(frozen=True, kw_only=True)
class _Case:
    line: tuple[Generation, ...]
    run_folder: Path | None
    evaluated: Scenes
    requirement: Requirement | None

    def cards(self) -> Iterator[tuple[str, TrainingCard]]:
        for generation in self.line:
            if generation.card is not None:
                yield generation.who, generation.card

    def sources(self) -> dict[tuple[str, str, str], DataSource]:
        """All demonstrations of the ancestry; the same ones, told by their digest, once."""
        return {(source.task, source.config, source.digest): source for _, card in self.cards() for source in card.data}


def check(
    card: TrainingCard | None,
    *,
    folder: Path | None = None,
    evaluated: Scenes | None = None,
    requirement: Requirement | None = None,
) -> tuple[Finding, ...]:
    """Apply every rule to a checkpoint's training card and its ancestors.

    Args:
        card: the checkpoint's training card, or None if it has none.
        folder: the checkpoint's folder, inside the folder of its run.
        evaluated: scenes that the checkpoint is evaluated on.
        requirement: the training data that the protocol asks for.

    Returns:
        Errors first.
    """
    if card is None:
        return (Finding(code="no_card", severity="error", text=f"no {CARD_FILE}: nothing is known of its training"),)
    case = _Case(
        line=tuple(lineage(card)),
        run_folder=folder.resolve().parent if folder else None,
        evaluated=evaluated or {},
        requirement=requirement,
    )
    found = [finding for rule in RULES for finding in rule(case)]
    return tuple(sorted(dict.fromkeys(found), key=lambda finding: finding.severity != "error"))


def require_one_checkpoint(halves: Mapping[str, str | None]) -> None:
    """Pass if all parts of an average were measured on one checkpoint.

    Args:
        halves: name of each part, e.g. ``"demo_clean of run A"`` -> SHA-256 of the checkpoint, or None if unknown.

    Raises:
        UserError: they differ, or one isn't known.
    """
    unknown = [name for name, sha256 in halves.items() if sha256 is None]
    if unknown:
        raise UserError(f"{unknown[0]} doesn't say which checkpoint it was measured on: it can't be part of an average")
    if len(set(halves.values())) > 1:
        shown = "; ".join(f"{name}: {sha256[:12]}" for name, sha256 in halves.items() if sha256)
        raise UserError(f"these were measured on different checkpoints and have no average ({shown})")


def _gaps(case: _Case) -> Iterator[Finding]:
    for generation in case.line:
        if generation.gap is None:
            continue
        code = {"no_card": "parent_without_card", "unreadable_card": "parent_card_unreadable"}.get(
            generation.gap.kind, "unknown_weights"
        )
        text = generation.gap.text
        if generation.path is not None and case.run_folder and not _inside(generation.path, case.run_folder):
            text = f"{text}; it lies outside this run's folder"
        yield Finding(code=code, severity="error", text=text)


def _unknown_data(case: _Case) -> Iterator[Finding]:
    for who, card in case.cards():
        if not card.data:
            yield Finding(code="no_data", severity="error", text=f"{who} lists no training data")
        for name in dict.fromkeys(source.config for source in card.data if source.config not in KNOWN_CONFIGS):
            text = f"{who} was trained on data of unknown configuration {name!r}"
            yield Finding(code="unknown_config", severity="error", text=text)


def _seed_overlap(case: _Case) -> Iterator[Finding]:
    shared: dict[tuple[str, str, int], str] = {}
    for who, card in case.cards():
        for source in card.data:
            scenes = case.evaluated.get((source.task, source.config), frozenset())
            shared |= {(source.task, source.config, seed): who for seed in scenes.intersection(source.seeds)}
    if shared:
        (task, config, seed), who = min(shared.items())
        verb = "scene was" if len(shared) == 1 else "scenes were"
        text = f"{len(shared)} evaluation {verb} trained on, e.g. {task} {config} seed {seed} by {who}"
        yield Finding(code="seed_overlap", severity="error", text=text)


def _seed_range(case: _Case) -> Iterator[Finding]:
    for who, card in case.cards():
        if (missing := sum(source.episodes - len(source.seeds) for source in card.data)) > 0:
            text = f"{missing} demonstrations of {who} have no seed: overlap with evaluation scenes can't be ruled out"
            yield Finding(code="seeds_unknown", severity="warning", text=text)
        if case.requirement is None:
            continue
        first = case.requirement.first_seed
        high = [(source.task, seed) for source in card.data for seed in source.seeds if seed >= first]
        if high:
            task, seed = min(high)
            text = f"{len(high)} demonstrations of {who} have seeds of the evaluation's range, e.g. {task} seed {seed}"
            yield Finding(code="seed_range", severity="warning", text=f"{text} (it starts at {first})")


def _statistics(case: _Case) -> Iterator[Finding]:
    owners = {data_digest(card): who for who, card in reversed(list(case.cards()))}
    for who, card in case.cards():
        if card.normalisation_digest == data_digest(card):
            continue
        if not card.normalisation_digest:
            text = f"{who} doesn't say which data its normalisation statistics were computed from"
            yield Finding(code="statistics_unknown", severity="warning", text=text)
        elif owner := owners.get(card.normalisation_digest):
            text = f"normalisation statistics of {who} were computed from the data of {owner}"
            yield Finding(code="statistics_inherited", severity="warning", text=text)
        else:
            text = (
                f"normalisation statistics of {who} were computed from data {card.normalisation_digest[:12]}, "
                f"but it was trained on {data_digest(card)[:12]}"
            )
            yield Finding(code="statistics_foreign", severity="error", text=text)


def _resume_pointers(case: _Case) -> Iterator[Finding]:
    for generation in case.line:
        if generation.card is None:
            continue
        own = case.run_folder if generation.path is None else Path(generation.path).parent
        present = _settings(generation.card.recipe, RESUME_KEYS)
        paths = {key: value for key, value in present.items() if isinstance(value, str)}
        foreign = {key: value for key, value in paths.items() if own is None or not _inside(value, own)}
        if foreign or (present and not paths):
            shown = ", ".join(f"{key}: {value}" for key, value in (foreign or present).items())
            text = f"{generation.who} may have gone on from somebody else's run: its settings hold {shown}"
            yield Finding(code="foreign_resume", severity="error", text=text)


def _training_set(case: _Case) -> Iterator[Finding]:
    wanted = case.requirement
    if wanted is None:
        return
    sources = case.sources().values()
    others = sorted({source.config for source in sources} - {wanted.config})
    if others:
        text = f"trained on {' and '.join(others)}; the protocol has {wanted.config} alone"
        yield Finding(code="wrong_config", severity="error", text=text)
    counts: dict[str, int] = defaultdict(int)
    for source in sources:
        if source.config == wanted.config:
            counts[source.task] += source.episodes
    if len(counts) != wanted.tasks:
        text = f"trained on {wanted.config} of {len(counts)} tasks; the protocol has {wanted.tasks}"
        yield Finding(code="wrong_tasks", severity="error", text=text)
    wrong = {task: count for task, count in sorted(counts.items()) if count != wanted.episodes_per_task}
    if wrong:
        task, count = next(iter(wrong.items()))
        text = (
            f"{len(wrong)} of {len(counts)} tasks don't have the protocol's {wanted.episodes_per_task} demonstrations, "
            f"e.g. {task} has {count}"
        )
        yield Finding(code="wrong_episodes", severity="error", text=text)


def _assets(case: _Case) -> Iterator[Finding]:
    for assets in sorted({source.assets for source in case.sources().values()} - {"official"}):
        text = f"trained on demonstrations with {assets} assets"
        yield Finding(code="assets", severity="warning", text=text)


def _code(case: _Case) -> Iterator[Finding]:
    for who, card in case.cards():
        if card.code_commit == "unknown":
            text = f"the code that trained {who} isn't known"
        elif card.code_dirty:
            text = f"{who} was trained by code {card.code_commit[:12]} with changes that weren't committed"
        else:
            continue
        yield Finding(code="code_unknown", severity="warning", text=text)


RULES: tuple[Callable[[_Case], Iterator[Finding]], ...] = (
    _gaps,
    _unknown_data,
    _seed_overlap,
    _seed_range,
    _statistics,
    _resume_pointers,
    _training_set,
    _assets,
    _code,
)


def data_digest(card: TrainingCard) -> str:
    """Digest of all demonstrations of one training run, as ``normalisation_digest`` has it for its own data."""
    return digest([source.digest for source in card.data])


def _settings(settings: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """Settings of these names at any depth that are set to something."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found |= _settings(value, keys)
        elif key in keys and value not in (None, "", False):
            found[key] = value
    return found


def _inside(path: str, folder: Path) -> bool:
    """Whether a path, links and ``..`` resolved, lies in a folder. Relative paths are taken from the working folder."""
    return Path(path).expanduser().resolve().is_relative_to(folder.resolve())
