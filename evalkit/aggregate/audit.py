"""What doesn't add up in published tables. Findings are reported; the numbers stay as their sources print them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from evalkit.aggregate.published import AVERAGE, CONFIGS, PublishedTable, ReportedAverage, StatedMean
from evalkit.core.tasks import TASKS
from evalkit.protocol.modes import CLEAN, RANDOMIZED

Kind = Literal[
    "impossible rate", "stated mean", "granularity", "missing tasks", "randomized above clean", "training data"
]

_FEWEST_FOR_GRANULARITY = 20
"""Rates other than 0 and 100 % that must all be coarse before it is more than chance (probability below 1e-6)."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that doesn't add up."""

    table: str
    config: str
    kind: Kind
    text: str
    wrong: bool
    """True if the source must be in error; False if it is a reason for doubt."""


def audit(tables: Sequence[PublishedTable]) -> tuple[Finding, ...]:
    """All findings, in the order of the tables."""
    return tuple(finding for table in tables for finding in _of_table(table))


def audit_averages(averages: Sequence[ReportedAverage]) -> tuple[Finding, ...]:
    """Findings about averages extracted by machine."""
    return tuple(finding for average in averages for finding in _of_average(average))


def _of_table(table: PublishedTable) -> Iterator[Finding]:
    for config in CONFIGS:
        yield from _impossible_rates(table, config)
        yield from _granularity(table, config)
        yield from _missing_tasks(table, config)
    for stated in table.stated:
        yield from _stated_mean(table, stated)
    yield from _randomized_above_clean(table)
    if table.training == "unknown":
        yield Finding(
            table=table.name,
            config="",
            kind="training data",
            text=f"stated as {table.training_as_stated!r}: the score has no label but ?2c or ?2r",
            wrong=False,
        )


def _impossible_rates(table: PublishedTable, config: str) -> Iterator[Finding]:
    n = table.trials_per_task
    for task, rate in table.rates.get(config, {}).items():
        if n is None or (rate * n) % 100 == 0:
            continue
        below = int(rate * n // 100)
        near = [f"{Decimal(100 * k) / n:f}" for k in (below, below + 1)]
        yield Finding(
            table=table.name,
            config=config,
            kind="impossible rate",
            text=f"{task} {rate} % is no k/{n}: next to it are {' and '.join(near)} %",
            wrong=True,
        )


def _granularity(table: PublishedTable, config: str) -> Iterator[Finding]:
    n = table.trials_per_task
    if n is None:
        return
    telling = [rate for rate in table.rates.get(config, {}).values() if 0 < rate < 100]
    for coarse in (n // 10, n // 5, n // 4, n // 2):
        if coarse and len(telling) >= _FEWEST_FOR_GRANULARITY and all((rate * coarse) % 100 == 0 for rate in telling):
            yield Finding(
                table=table.name,
                config=config,
                kind="granularity",
                text=f"all {len(telling)} rates are multiples of {100 // coarse} %: as of {coarse} trials, not {n}",
                wrong=False,
            )
            return


def _missing_tasks(table: PublishedTable, config: str) -> Iterator[Finding]:
    rates = table.rates.get(config, {})
    if rates and len(rates) < len(TASKS):
        missing = [task for task in TASKS if task not in rates]
        names = ", ".join(missing) if len(missing) <= 4 else f"the other {len(missing)}"
        yield Finding(
            table=table.name,
            config=config,
            kind="missing tasks",
            text=f"{len(rates)} of {len(TASKS)} tasks; without {names}",
            wrong=False,
        )


def _stated_mean(table: PublishedTable, stated: StatedMean) -> Iterator[Finding]:
    if stated.what != "mean":
        return
    if stated.config == AVERAGE:
        means = [table.mean(config) for config in CONFIGS]
        complete = all(len(table.rates.get(config, ())) == len(TASKS) for config in CONFIGS)
    else:
        means = [table.mean(stated.config)]
        # The mean of a part of the tasks says nothing about a printed mean, unless nearly all are there.
        complete = len(table.rates.get(stated.config, ())) >= len(TASKS) - 4
    found = [mean for mean in means if mean is not None]
    if not complete or len(found) < len(means):
        return
    mean = sum(found, Fraction(0)) / len(found)
    half_a_digit = Fraction(1, 2) * Fraction(10) ** int(stated.percent.as_tuple().exponent)
    if abs(mean - Fraction(stated.percent)) > half_a_digit:
        yield Finding(
            table=table.name,
            config=stated.config,
            kind="stated mean",
            text=f"{stated.percent} % is printed; the tasks give {float(mean):.2f} %{_from_rounded(table, stated)}",
            wrong=True,
        )


def _from_rounded(table: PublishedTable, stated: StatedMean) -> str:
    """Says if an average was made of means that were already rounded."""
    printed = [table.stated_mean(config) for config in CONFIGS]
    values = [Fraction(mean.percent) for mean in printed if mean]
    if stated.config != AVERAGE or len(values) < len(CONFIGS):
        return ""
    half = sum(values, Fraction(0)) / 2
    step = Fraction(10) ** int(stated.percent.as_tuple().exponent)
    if abs(half - Fraction(stated.percent)) <= step / 2:
        return f"; the rounded {printed[0].percent} and {printed[1].percent} give {float(half):g}"  # type: ignore[union-attr]
    return ""


def _randomized_above_clean(table: PublishedTable) -> Iterator[Finding]:
    clean, randomized = table.best_mean(CLEAN), table.best_mean(RANDOMIZED)
    if clean is None or randomized is None or randomized <= clean:
        return
    why = (
        "unusual for clean training data alone: what was it trained on?"
        if table.label(CLEAN) == "c2c"
        else f"a sign of randomized training data ({table.training_as_stated})"
    )
    yield Finding(
        table=table.name,
        config=RANDOMIZED,
        kind="randomized above clean",
        text=f"{100 * randomized:.2f} % against {100 * clean:.2f} %: {why}",
        wrong=False,
    )


def _of_average(average: ReportedAverage) -> Iterator[Finding]:
    clean, randomized = average.percent.get(CLEAN), average.percent.get(RANDOMIZED)
    stated = average.percent.get(AVERAGE)
    if clean is not None and randomized is not None:
        if stated is not None and abs((clean + randomized) / 2 - stated) > Decimal("0.005"):
            text = f"{stated} % for {clean} and {randomized}"
            yield Finding(table=average.key, config=AVERAGE, kind="stated mean", text=text, wrong=True)
        if randomized > clean and average.protocol_tag == "A":
            text = f"{randomized} % against {clean} %, tagged as clean training data alone"
            kind: Kind = "randomized above clean"
            yield Finding(table=average.key, config=RANDOMIZED, kind=kind, text=text, wrong=False)
    if average.tasks is not None and average.tasks < len(TASKS):
        text = f"{average.tasks} of {len(TASKS)} tasks"
        yield Finding(table=average.key, config="", kind="missing tasks", text=text, wrong=False)
    if average.protocol_tag not in ("A", "B"):
        text = "the training data isn't known"
        yield Finding(table=average.key, config="", kind="training data", text=text, wrong=False)
