"""Published results to draw beside a run's own."""

from __future__ import annotations

from collections.abc import Iterable

from evalkit.aggregate.published import find_tables, load_tables
from evalkit.report.html_model import Reference

DEFAULT = ("x-wam@leaderboard", "pi0.5@leaderboard")


def published_references(names: Iterable[str] = DEFAULT) -> tuple[Reference, ...]:
    """Published tables by the names that ``evalkit.aggregate.published.find_tables`` knows, each once.

    Raises:
        UnknownNameError: no such table.
    """
    tables = load_tables()
    found = {table.name: table for name in names for table in find_tables(name, tables)}
    return tuple(
        Reference(
            name=table.name,
            labels={config: table.label(config) for config in table.rates},
            rates={
                config: {task: float(rate) / 100 for task, rate in rates.items()}
                for config, rates in table.rates.items()
            },
            source=table.source,
        )
        for table in found.values()
    )
