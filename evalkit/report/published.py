"""The terminal view of published scores."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evalkit.aggregate.audit import Finding
from evalkit.aggregate.published import AVERAGE, CONFIGS, PublishedTable, training_text
from evalkit.core.tasks import TASKS
from evalkit.report.pipeline import add_fact, facts_grid
from evalkit.report.text import percent


def render_list(tables: Sequence[PublishedTable]) -> Table:
    """One row per table: means with their labels, and of how many tasks rates are published."""
    view = _table()
    view.add_column("table", overflow="fold", ratio=1)
    for _ in CONFIGS:
        view.add_column("label", no_wrap=True)
        view.add_column("mean %", justify="right", no_wrap=True)
    view.add_column("tasks", justify="right", no_wrap=True)
    for table in tables:
        cells: list[Text | str] = []
        for config in CONFIGS:
            mean = table.best_mean(config)
            label = table.label(config)
            style = "" if label in ("c2c", "c2r") else "yellow"
            cells += [Text(label, style=style), percent(mean, 1)] if mean is not None else ["", ""]
        rates = max((len(found) for found in table.rates.values()), default=0)
        view.add_row(Text(table.name), *cells, str(rates) if rates else "–")
    return view


def render_tables(tables: Sequence[PublishedTable]) -> RenderableType:
    """What is known of each table, then the rates of all of them side by side."""
    parts: list[RenderableType] = []
    for table in tables:
        parts += [Text(table.name, style="bold cyan"), _facts(table), ""]
    with_rates = [table for table in tables if table.rates]
    return Group(*parts, _rates(with_rates)) if with_rates else Group(*parts[:-1])


def render_audit(findings: Sequence[Finding]) -> RenderableType:
    """Findings by table; what must be wrong in red, what raises doubts in yellow."""
    parts: list[RenderableType] = []
    table = ""
    for finding in findings:
        if finding.table != table:
            table = finding.table
            parts.append(Text(table, style="bold"))
        mark, style = ("wrong", "bold red") if finding.wrong else ("doubt", "yellow")
        grid = Table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        where = f"{finding.config}: " if finding.config else ""
        text = Text.assemble((finding.kind, "bold"), f"; {where}{finding.text}")
        grid.add_row(Text(f"  {mark}", style=style), text)
        parts.append(grid)
    return Group(*parts)


def _facts(table: PublishedTable) -> Table:
    grid = facts_grid()
    add_fact(grid, "model", table.model)
    add_fact(grid, "trained on", f"{training_text(table.training)} (as stated: {table.training_as_stated})")
    add_fact(grid, "setting", {"cotrain": "one policy for all tasks", "sft": "one checkpoint per task"}[table.setting])
    add_fact(grid, "protocol", table.protocol or "not stated")
    add_fact(grid, "trials", f"{table.trials_per_task} per task" if table.trials_per_task else "not stated")
    for config in CONFIGS:
        mean = table.mean(config)
        if mean is not None:
            n = len(table.rates[config])
            text = f"{percent(float(mean) / 100, 2)} % over {n} of {len(TASKS)} tasks"
            add_fact(grid, table.label(config), text)
    for stated in table.stated:
        label = AVERAGE if stated.config == AVERAGE else table.label(stated.config)
        add_fact(grid, f"{label}, stated", f"{stated.percent} % ({stated.what})")
    add_fact(grid, "source", table.source)
    if table.note:
        add_fact(grid, "note", table.note)
    return grid


def _rates(tables: Sequence[PublishedTable]) -> Table:
    view = _table()
    view.add_column("task", no_wrap=True)
    columns = [(table, config) for table in tables for config in CONFIGS if config in table.rates]
    for table, config in columns:
        head = Text(table.name.partition("@")[2] if len(tables) > 1 else "")
        view.add_column(head.append(f"\n{table.label(config)}"), justify="right", overflow="fold")
    for task in TASKS:
        cells = [table.rates[config].get(task) for table, config in columns]
        if any(cell is not None for cell in cells):
            view.add_row(task, *map(_shown, cells))
    return view


def _shown(rate: Decimal | None) -> str:
    return "" if rate is None else f"{rate:f}"


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
