"""Published scores of others, as their sources print them. Nothing is repaired: see ``evalkit.aggregate.audit``."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path

from evalkit.aggregate.suite import Stratum
from evalkit.core.errors import UnknownNameError, UserError
from evalkit.core.locations import bundled
from evalkit.core.tasks import TASKS
from evalkit.protocol.comparability import UNKNOWN
from evalkit.protocol.modes import CLEAN, RANDOMIZED
from evalkit.protocol.training_set import training_parts

AVERAGE = "average"
"""Stated for both configurations together."""
LEADERBOARD = "leaderboard"
CONFIGS = (CLEAN, RANDOMIZED)


@dataclass(frozen=True, kw_only=True)
class StatedMean:
    """A mean as its source prints it."""

    config: str
    """A configuration, or ``AVERAGE``."""
    what: str
    """``"mean"``, or e.g. ``"mean, horizon 1"`` for part of the tasks."""
    percent: Decimal
    """With the digits printed."""
    source: str


@dataclass(frozen=True, kw_only=True)
class PublishedTable:
    """The scores of one checkpoint from one source."""

    name: str
    """``<model>@<source>``, e.g. ``"x-wam@leaderboard"``."""
    model: str
    training: str
    """As ``evalkit.protocol.training_set`` writes it, or ``"unknown"``."""
    training_as_stated: str
    setting: str
    """``"cotrain"``: one policy for all tasks; ``"sft"``: one checkpoint per task."""
    protocol: str | None
    """Name of the protocol it was measured under, if there is a sheet of it."""
    trials_per_task: int | None
    source: str
    note: str
    rates: Mapping[str, Mapping[str, Decimal]]
    """Configuration -> task -> rate in percent."""
    stated: tuple[StatedMean, ...]

    @property
    def key(self) -> str:
        """The name's model part."""
        return self.name.partition("@")[0]

    def mean(self, config: str) -> Fraction | None:
        """Mean of the tasks' rates in percent, exactly; None if no rates are published."""
        rates = self.rates.get(config)
        return sum(map(Fraction, rates.values()), Fraction(0)) / len(rates) if rates else None

    def stated_mean(self, config: str) -> StatedMean | None:
        """The mean over all tasks that the source prints with most digits, if it prints one."""
        found = [mean for mean in self.stated if mean.config == config and mean.what == "mean"]
        return max(found, key=lambda mean: -int(mean.percent.as_tuple().exponent), default=None)

    def best_mean(self, config: str) -> float | None:
        """A fraction: the mean over all 50 tasks from their rates, or else the stated one."""
        if len(self.rates.get(config, ())) == len(TASKS) or self.stated_mean(config) is None:
            mean = self.mean(config)
            return float(mean) / 100 if mean is not None else None
        stated = self.stated_mean(config)
        return float(stated.percent) / 100 if stated else None

    def strata(self, config: str) -> dict[str, Stratum]:
        """Task -> successes of trials; a rate that isn't k/n counts as the nearest one that is."""
        n = self.trials_per_task
        rates = self.rates.get(config, {})
        return {task: Stratum(round(rate * n / 100), n) for task, rate in rates.items()} if n else {}

    def label(self, config: str) -> str:
        """Label of the score under a configuration, as its training data gives it."""
        return training_label(self.training, config)


@dataclass(frozen=True, kw_only=True)
class ReportedAverage:
    """An average that a public score tracker extracted from a paper by machine. Not checked."""

    key: str
    model: str
    percent: Mapping[str, Decimal]
    """Configuration or ``AVERAGE`` -> percent."""
    overall: Decimal | None
    """One number for both configurations, where the paper prints no other."""
    tasks: int | None
    protocol_tag: str
    """``"A"`` clean training data only, ``"B"`` clean and randomized, or ``"unknown"``."""
    first_party: bool
    paper: str


def load_tables(folder: Path | None = None) -> tuple[PublishedTable, ...]:
    """All tables in the order of the files.

    Args:
        folder: with ``tables.csv``, ``rates.csv`` and ``stated.csv``; those that travel with evalkit if None.

    Raises:
        UserError: a file is missing or a value makes no sense.
        UnknownNameError: a task or table that doesn't exist.
    """
    folder = bundled("published") if folder is None else folder
    facts = {row["table"]: row for row in _rows(folder / "tables.csv")}
    rates: dict[str, dict[str, dict[str, Decimal]]] = {name: defaultdict(dict) for name in facts}
    for row in _rows(folder / "rates.csv"):
        _check_name("table", row["table"], facts)
        _check_name("task", row["task"], TASKS)
        for config in CONFIGS:
            if row[config]:
                of_config = rates[row["table"]][config]
                if row["task"] in of_config:
                    raise UserError(f"{folder / 'rates.csv'}: {row['table']} has {row['task']} twice")
                of_config[row["task"]] = _percent(row[config], f"{folder / 'rates.csv'}: {row['table']}")
    stated: dict[str, list[StatedMean]] = defaultdict(list)
    for row in _rows(folder / "stated.csv"):
        _check_name("table", row["table"], facts)
        percent = _percent(row["percent"], f"{folder / 'stated.csv'}: {row['table']}")
        stated[row["table"]].append(
            StatedMean(config=row["config"], what=row["what"], percent=percent, source=row["source"])
        )
    return tuple(
        PublishedTable(
            name=name,
            model=row["model"],
            training=row["training"],
            training_as_stated=row["training_as_stated"],
            setting=row["setting"],
            protocol=row["protocol"] or None,
            trials_per_task=int(row["trials_per_task"]) if row["trials_per_task"] else None,
            source=row["source"],
            note=row["note"],
            rates={config: dict(found) for config, found in rates[name].items()},
            stated=tuple(stated[name]),
        )
        for name, row in facts.items()
    )


def find_tables(name: str, tables: Sequence[PublishedTable]) -> tuple[PublishedTable, ...]:
    """Tables of a model (``x-wam``), of a source (``leaderboard``), or the one of that name (``x-wam@paper``).

    Hyphens, spaces and capitals don't matter: sources spell FastWAM and Fast-WAM.

    Raises:
        UnknownNameError: there is none.
    """
    wanted = _plain(name)
    found = tuple(table for table in tables if wanted in map(_plain, (table.name, *table.name.split("@"), table.model)))
    if not found:
        known = {known for table in tables for known in (table.name, *table.name.split("@"))}
        raise UnknownNameError("published model", name, known)
    return found


def load_averages(folder: Path | None = None) -> tuple[ReportedAverage, ...]:
    """The averages of ``averages.csv``.

    Raises:
        UserError: the file is missing or a value makes no sense.
    """
    path = (bundled("published") if folder is None else folder) / "averages.csv"
    return tuple(
        ReportedAverage(
            key=row["key"],
            model=row["model"],
            percent={name: _percent(row[name], f"{path}: {row['key']}") for name in (*CONFIGS, AVERAGE) if row[name]},
            overall=_percent(row["overall"], f"{path}: {row['key']}") if row["overall"] else None,
            tasks=int(row["tasks"]) if row["tasks"] else None,
            protocol_tag=row["protocol_tag"],
            first_party=row["first_party"] == "yes",
            paper=row["paper"],
        )
        for row in _rows(path)
    )


def training_label(training: str, config: str) -> str:
    """Label of a score, e.g. ``"mixed2r"``, from the name of all training data and the configuration."""
    parts = training_parts(training) if training != UNKNOWN else None
    sources = {CLEAN: "c", RANDOMIZED: "r"}
    letters = sorted({sources.get(part, "?") for part in parts}) if parts else ["?"]
    source = "?" if "?" in letters else letters[0] if len(letters) == 1 else "mixed"
    return f"{source}2{sources.get(config, '?')}"


def training_text(training: str) -> str:
    """The name of training data as people say it, e.g. ``"50 clean + 500 randomized demonstrations of each task"``."""
    parts = training_parts(training) if training != UNKNOWN else None
    if not parts:
        return "data that isn't stated"
    counts = " + ".join(f"{episodes} {config.removeprefix('demo_')}" for config, (episodes, _) in parts.items())
    tasks = {tasks for _, tasks in parts.values()}
    return f"{counts} demonstrations of each of {' or '.join(map(str, sorted(tasks)))} tasks"


def ranking(tables: Sequence[PublishedTable], *, stated: bool = False) -> tuple[str, ...]:
    """Names of the tables by their average of both configurations, best first; ties go to the better clean mean.

    Args:
        tables: each with both configurations.
        stated: rank by the printed means instead of those of the tasks' rates.

    Raises:
        UserError: a table lacks a mean.
    """

    def means(table: PublishedTable) -> tuple[Fraction, Fraction]:
        values = []
        for config in CONFIGS:
            printed = table.stated_mean(config)
            value = (Fraction(printed.percent) if printed else None) if stated else table.mean(config)
            if value is None:
                raise UserError(f"{table.name} has no mean under {config}: it can't be ranked")
            values.append(value)
        return sum(values, Fraction(0)), values[0]

    return tuple(table.name for table in sorted(tables, key=means, reverse=True))


def _rows(path: Path) -> Iterator[dict[str, str]]:
    if not path.is_file():
        raise UserError(f"{path} is missing: published tables need it")
    with path.open(encoding="utf-8", newline="") as stream:
        yield from csv.DictReader(stream, strict=True)


def _percent(text: str, where: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    if not (value.is_finite() and 0 <= value <= 100):
        raise UserError(f"{where} has {text!r}; it must be a number from 0 to 100")
    return value


def _check_name(kind: str, name: str, known: Mapping[str, object] | Sequence[str]) -> None:
    if name not in known:
        raise UnknownNameError(kind, name, known)


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.lower().replace("π", "pi"))
