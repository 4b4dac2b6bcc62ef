"""The terms a run's scores were measured under, and where they aren't those of the protocol it follows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from evalkit.aggregate.world import renderer_word
from evalkit.protocol.comparability import PER_RUN, UNKNOWN, Fact, Terms, compare_protocols, is_known, shown, values_of
from evalkit.protocol.config import known_configs, load_config
from evalkit.protocol.protocols import Protocol, load_protocol
from evalkit.protocol.sheets import load_sheet
from evalkit.protocol.training_set import training_of_card
from evalkit.protocol.variant import RULES
from evalkit.provenance.card import TrainingCard
from evalkit.store.run import Run

_OF_THE_WORLD = ("embodiment", "assets", "task_code", "renderer", "action_type", "trials_per_task", "training", "tasks")
"""Fields that are what a run happens to have, in the order in which they are listed."""


def run_terms(run: Run, config: str, card: TrainingCard | None) -> Terms:
    """What a run's scores under a configuration were measured under.

    Args:
        run: the run.
        config: task configuration.
        card: the training card of its checkpoint.
    """
    info = run.info
    protocol, sheet = load_protocol(info.protocol), load_sheet(info.protocol)
    planned = [spec for spec in run.plan if spec.config == config and spec.repeat == 0]
    rules = protocol.rules
    limits = {spec.horizon_steps == rules.horizon_steps(spec.task, spec.execute_steps) for spec in planned}
    changes: dict[str, Fact] = {
        "training": training_of_card(card),
        "tasks": str(len({spec.task for spec in planned})),
        "embodiment": _embodiment(config),
        "assets": text_of(info.backend.get("assets")),
        "task_code": text_of(info.backend.get("code")),
        "renderer": renderer_word(text_of(info.backend.get("renderer"))),
        "action_type": info.policy.action_type,
        "trials_per_task": str(info.trials_per_task),
        "instruction_split": info.configs[config].split,
        **rules.instead,
    }
    if limits != {True}:
        changes["step_limits"] = "other"
    known = config if config in sheet.configs else sheet.configs[0]
    return replace(sheet.terms(known, **changes), config=config)


def not_reproduced(run: Run, card: TrainingCard | None) -> tuple[str, ...]:
    """One line for each field of the run's protocol that isn't as the protocol has it; empty for the leaderboard's.

    The leaderboard's own are reasons against an entry (``evalkit.aggregate.eligibility``). Fields that the source
    doesn't settle are named, too: what a run has there can't be called the protocol's.
    """
    protocol = load_protocol(run.info.protocol)
    if protocol.is_leaderboard:
        return ()
    return tuple(
        dict.fromkeys(line for config in run.info.configs for line in _departures(run, protocol, config, card))
    )


def _departures(run: Run, protocol: Protocol, config: str, card: TrainingCard | None) -> Iterator[str]:
    sheet = load_sheet(protocol.name)
    ours, theirs = run_terms(run, config, card), sheet.terms(config)
    for name in (*RULES, *_OF_THE_WORLD):
        here, there = getattr(ours, name), getattr(theirs, name)
        if PER_RUN in values_of(there) or (is_known(there) and values_of(here) & values_of(there)):
            continue
        if UNKNOWN in values_of(there):
            yield f"{name} is {shown(here)}; the source of {protocol.name} doesn't say"
        else:
            yield f"{name} is {shown(here)}; {protocol.name} has {shown(there)}"


def against_the_board(run: Run, card: TrainingCard | None) -> Iterator[str]:
    """Where the terms of a run under another protocol aren't the leaderboard's: rules alone."""
    info = run.info
    for config in info.configs:
        board = load_sheet("leaderboard").terms(config)
        for difference in compare_protocols(run_terms(run, config, card), board).fields:
            if difference.name in RULES:
                yield f"{difference.name} is {difference.ours}; the leaderboard has {difference.theirs}"


def text_of(value: object) -> str:
    """A recorded fact as text."""
    return UNKNOWN if value is None else str(value)


def _embodiment(config: str) -> str:
    if config not in known_configs():
        return UNKNOWN
    names = load_config(config).settings["embodiment"]
    return " ".join(map(str, names))
