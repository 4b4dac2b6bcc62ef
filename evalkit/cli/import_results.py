"""``evalkit import``: results that other tools wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("import")(import_command)


def import_command(
    path: Annotated[Path, typer.Argument(help="File or folder with the results.")],
    kind: Annotated[str, typer.Option(help="Which tool wrote them: robotwin, lerobot, x-vla, vla-eval, or csv.")],
    config: Annotated[
        str | None, typer.Option(help="Configuration they were measured under, where the files don't say.")
    ] = None,
    trials: Annotated[int | None, typer.Option(help="Trials per task, where the files don't say.")] = None,
    only: Annotated[
        str | None, typer.Option(help="Take only _result.txt files with this text in their path (robotwin).")
    ] = None,
    latest: Annotated[
        bool, typer.Option("--latest", help="Of several results of one task, take the last (robotwin).")
    ] = False,
    unit: Annotated[str | None, typer.Option(help="percent or fraction, where the table doesn't say (csv).")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the scores as JSON to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON instead of the table.")] = False,
) -> None:
    """Read another tool's results and say what is known about them. What isn't stays unknown: n=?, label ?2c.

    Example: evalkit import eval_result --kind robotwin --only ACT --out act.json
    """
    from evalkit.core.errors import UnknownNameError
    from evalkit.core.files import write_json
    from evalkit.report.imported import render, summarise_imported, to_json
    from evalkit.store.foreign.reading import read_scores
    from evalkit.store.foreign.scores import with_stated
    from evalkit.store.foreign.tables import Unit

    known: dict[str | None, Unit | None] = {None: None, "percent": "percent", "fraction": "fraction"}
    if unit not in known:
        raise UnknownNameError("unit", str(unit), ("percent", "fraction"))
    scores = read_scores(path, kind, only=only, latest=latest, unit=known[unit])
    summary = summarise_imported(with_stated(scores, config=config, trials=trials))
    if as_json:
        print(json.dumps(to_json(summary), indent=1))
    else:
        from rich.console import Console

        Console(highlight=False).print(render(summary))
    if out is not None:
        write_json(out, to_json(summary))
        if not as_json:
            print(f"wrote {out}")
