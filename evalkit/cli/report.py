"""``evalkit report``: a run as a page for the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evalkit.cli.status import find_run


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("report")(report_command)


def report_command(
    run: Annotated[
        str | None, typer.Argument(help="A run's folder, or its name in results/runs. Default: the newest there.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write. Default: report.html in the run's folder.")] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the page on this machine only, made anew at each request.")
    ] = False,
    with_published: Annotated[
        str, typer.Option("--with", help="Published results to draw beside official ones; empty for none.")
    ] = "x-wam@leaderboard,pi0.5@leaderboard",
    port: Annotated[int, typer.Option(help="Port for --serve; 0 takes a free one.")] = 8008,
) -> None:
    """Write a run as one HTML file: scores, training pipeline, figures, every trial. It works offline.

    Example: evalkit report results/runs/20260102-house-0123abcd --out report.html
    """
    from evalkit.cli.sweep_show import is_sweep, write_report
    from evalkit.core.errors import UserError
    from evalkit.report.html_references import published_references
    from evalkit.store.run import open_run

    folder = find_run(run)
    references = published_references(name.strip() for name in with_published.split(",") if name.strip())
    if is_sweep(folder):
        if serve:
            raise UserError("--serve is for single runs: leave it out, or name a run of the sweep")
        if out is not None and out.is_dir():
            raise UserError(f"{out} is a folder: give --out the name of a file")
        print(f"wrote {write_report(folder, out)}")
        return
    if serve:
        from evalkit.report.html_serve import ReportServer

        if out is not None:
            raise UserError("--out and --serve exclude each other: --serve writes no file")
        open_run(folder)
        with ReportServer(folder, port, references) as server:
            print(f"{server.url} (Ctrl-C ends it)", flush=True)
            server.serve_forever()
        return

    from evalkit.report.html import write_page

    if out is not None and out.is_dir():
        raise UserError(f"{out} is a folder: give --out the name of a file")
    print(f"wrote {write_page(open_run(folder), out, references)}")
