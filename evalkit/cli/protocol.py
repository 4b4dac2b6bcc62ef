"""``evalkit protocol``: what a RoboTwin score means in each evaluator, and where they differ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from evalkit.protocol.comparability import Differences
    from evalkit.protocol.sheets import ProtocolSheet

EXIT_DRIFTED = 1
AsJson = Annotated[bool, typer.Option("--json", help="Print as JSON.")]
Name = Annotated[str, typer.Argument(help="A protocol's name; evalkit protocol list shows them.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    protocol = typer.Typer(no_args_is_help=True, help="Protocols: what a score means in each evaluator.")
    protocol.command("list")(list_command)
    protocol.command("show")(show_command)
    protocol.command("diff")(diff_command)
    protocol.command("drift")(drift_command)
    app.add_typer(protocol, name="protocol")


def list_command(as_json: AsJson = False) -> None:
    """List the protocols that evalkit knows, each with its training data, first seed and sentences.

    Example: evalkit protocol list
    """
    from evalkit.protocol.sheets import known_sheets, load_sheet

    sheets = [load_sheet(name) for name in known_sheets()]
    if as_json:
        print(json.dumps([_to_json(sheet) for sheet in sheets], indent=1))
        return
    table = _table("protocol", "training data", "first seed", "sentences", "trials", "read on")
    for sheet in sheets:
        rows = sheet.rows()
        splits = list(dict.fromkeys(rows[f"instruction_split of {config}"] for config in sheet.configs))
        table.add_row(
            sheet.name,
            rows["training"].replace("+", "\n+ "),
            rows["first_seed"],
            f"{rows['instruction_source']}, {' / '.join(splits)}",
            rows["trials_per_task"],
            sheet.read_on,
        )
    _console().print(table)


def show_command(name: Name, as_json: AsJson = False) -> None:
    """Show every field of a protocol, what its words mean, and where it was read.

    Example: evalkit protocol show x-vla
    """
    from rich.text import Text

    from evalkit.protocol.sheets import load_sheet
    from evalkit.protocol.words import meaning

    sheet = load_sheet(name)
    if as_json:
        print(json.dumps(_to_json(sheet), indent=1))
        return
    console = _console()
    console.print(Text(f"{sheet.name}, version {sheet.version}, read on {sheet.read_on}", style="bold"))
    console.print(Text(sheet.source, style="dim"))
    table = _table("field", "value", "meaning")
    for row, text in sheet.rows().items():
        field = row.partition(" ")[0]
        words = text.split(" or ")
        meanings = "; ".join(filter(None, (meaning(field, word) for word in words)))
        note = sheet.notes.get("configs" if field == "config" else field, "")
        table.add_row(row.replace(" ", "\n", 1), text, "\n".join(filter(None, (meanings, note))))
    console.print(table)
    if sheet.scoring is None:
        console.print(Text("evalkit compares with it; it can't score under it", style="dim"))
        return
    console.print(Text(f"evalkit run --protocol {name} repeats it", style="dim"))
    for field, value in (sheet.scoring.get("instead") or {}).items():
        console.print(Text(f"in the place of {field}: {value}", style="dim"))


def diff_command(
    ours: Name,
    theirs: Name,
    everything: Annotated[bool, typer.Option("--all", help="Show fields that agree, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show where two protocols differ, and whether their scores may be compared.

    What a protocol leaves to each run, such as training data, is taken to agree.

    Example: evalkit protocol diff leaderboard x-wam
    """
    from rich.text import Text

    from evalkit.protocol.sheets import load_sheet

    first, second = load_sheet(ours), load_sheet(theirs)
    verdicts = _verdicts(first, second)
    effects = _effects(verdicts)
    before, after = first.rows(), second.rows()
    names = [name for name in dict.fromkeys([*before, *after]) if everything or before.get(name) != after.get(name)]
    rows = [
        {"field": name, "ours": before.get(name), "theirs": after.get(name), "effect": effects.get(name, "")}
        for name in names
    ]
    if as_json:
        legal = {config: {"legal": found.legal, "reason": found.reason} for config, found in verdicts.items()}
        print(json.dumps({"ours": ours, "theirs": theirs, "fields": rows, "verdicts": legal}, indent=1))
        return
    console = _console()
    if rows:
        table = _table("field", ours, theirs, "effect on a comparison")
        for row in rows:
            style = "red" if row["effect"] == "blocks" else None
            cells = [Text(row[key] or "-") for key in ("field", "ours", "theirs")]
            table.add_row(*cells, Text(row["effect"] or "", style=style or ""))
        console.print(table)
    for config, found in verdicts.items():
        console.print(Text(f"{config}: {found.reason}", style="green" if found.legal else "red"), soft_wrap=True)
    for config in dict.fromkeys([*first.configs, *second.configs]):
        if config not in verdicts:
            console.print(f"{config}: evaluated under one of the two alone")


def drift_command(
    name: Name,
    file: Annotated[
        Path,
        typer.Argument(help="A newer protocol file, or RoboTwin's _eval_step_limit.yml, demo_clean.yml or the like."),
    ],
    as_json: AsJson = False,
) -> None:
    """Compare a protocol with a newer file of its source, and list what has changed since.

    Exit code 0: nothing; 1: something has changed.

    Example: evalkit protocol drift leaderboard RoboTwin/env_cfg/task_config/demo_clean.yml
    """
    from dataclasses import asdict

    from evalkit.protocol.drift import drift
    from evalkit.protocol.sheets import load_sheet

    found = drift(load_sheet(name), file)
    if as_json:
        print(json.dumps(asdict(found), indent=1))
    else:
        console = _console()
        if found.changes:
            table = _table("field", "stored", "found")
            for change in found.changes:
                table.add_row(change.name, change.stored, change.found)
            console.print(table)
        count = f"{len(found.changes)} of {found.compared} fields have" if found.changes else "nothing has"
        console.print(f"{file} ({found.kind}): {count} changed against protocol {name}", soft_wrap=True)
    if found.changes:
        raise typer.Exit(EXIT_DRIFTED)


def _verdicts(ours: ProtocolSheet, theirs: ProtocolSheet) -> dict[str, Differences]:
    """Configuration -> comparison; what one protocol leaves to each run is taken from the other."""
    from evalkit.protocol.comparability import FIELDS, PER_RUN, Fact, compare_protocols

    verdicts = {}
    for config in ours.configs:
        if config not in theirs.configs:
            continue
        first, second = ours.terms(config), theirs.terms(config)
        given: tuple[dict[str, Fact], dict[str, Fact]] = {}, {}
        for field in FIELDS:
            values = getattr(first, field), getattr(second, field)
            for side, other in ((0, 1), (1, 0)):
                if values[side] == PER_RUN:
                    given[side][field] = "any run's" if values[other] == PER_RUN else values[other]
        verdicts[config] = compare_protocols(ours.terms(config, **given[0]), theirs.terms(config, **given[1]))
    return verdicts


def _effects(verdicts: dict[str, Differences]) -> dict[str, str]:
    """Row of ``ProtocolSheet.rows`` -> what its difference does."""
    effects: dict[str, str] = {}
    for config, found in verdicts.items():
        for difference in found.fields:
            split = difference.name == "instruction_split"
            effects[f"{difference.name} of {config}" if split else difference.name] = difference.severity
    return effects


def _to_json(sheet: ProtocolSheet) -> dict[str, Any]:
    return {
        "name": sheet.name,
        "version": sheet.version,
        "source": sheet.source,
        "read_on": sheet.read_on,
        "scored_by_evalkit": sheet.scoring is not None,
        "configs": list(sheet.configs),
        **{name: _plain(fact) for name, fact in sheet.facts.items()},
        "instruction_split": {config: _plain(fact) for config, fact in sheet.instruction_split.items()},
        "notes": dict(sheet.notes),
    }


def _plain(fact: str | tuple[str, ...]) -> str | Sequence[str]:
    return fact if isinstance(fact, str) else list(fact)


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _console() -> Any:
    from rich.console import Console

    return Console(highlight=False)
