"""Sweeps in ``evalkit status``, ``export``, ``report`` and ``compare``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evalkit.core.errors import UserError
from evalkit.store.run import SWEEP_FILE
from evalkit.store.sweep import open_sweep, read_sweep, run_folder

if TYPE_CHECKING:
    from evalkit.aggregate.sweep import SweepScores

SWEEPS_FOLDER = Path("results/sweeps")
FORMATS = ("csv", "json")


def is_sweep(folder: Path) -> bool:
    """Whether a folder is a sweep's."""
    return (folder / SWEEP_FILE).exists()


def known_sweeps() -> dict[str, Path]:
    """Name -> folder of the sweeps that lie where ``evalkit run`` puts them."""
    return {path.parent.name: path.parent for path in SWEEPS_FOLDER.glob(f"*/{SWEEP_FILE}")}


def runs_of(folder: Path) -> list[Path]:
    """Folders of a sweep's runs."""
    return [run_folder(folder, name) for name in read_sweep(folder).runs]


def show_status(folder: Path, *, as_json: bool) -> None:
    """Print how far a sweep is."""
    from rich.console import Console
    from rich.text import Text

    from evalkit.aggregate.sweep import score_sweep
    from evalkit.report.sweep import render_sweep
    from evalkit.report.sweep_files import sweep_json
    from evalkit.report.text import count

    info, runs = open_sweep(folder)
    scores = score_sweep(runs)
    planned, left = sum(len(run.plan) for run in runs), sum(len(run.remaining()) for run in runs)
    if as_json:
        print(json.dumps({"planned": planned, "not_run": left} | sweep_json(scores, info), indent=1))
        return
    console = Console(highlight=False)
    console.print(Text(f"sweep {info.sweep}", style="bold"), Text(str(folder), style="dim"))
    console.print(Text(f"{count(planned - left)} of {count(planned)} trials ended, {count(left)} not run"))
    console.print()
    console.print(render_sweep(scores, info))
    if left:
        console.print(Text(f"not finished; the same command goes on with it: {shlex.join(info.command)}"))
    else:
        console.print(Text(f"finished: evalkit export {shlex.quote(str(folder))}"))


def export_sweep(folder: Path, formats: Sequence[str], out: Path | None, *, as_json: bool) -> SweepScores:
    """Write a sweep's files anew and print its table.

    Raises:
        UserError: a format that is for single runs.
    """
    from rich.console import Console
    from rich.text import Text

    from evalkit.report.sweep import render_sweep
    from evalkit.report.sweep_files import sweep_json, write_sweep_files

    if other := [form for form in formats if form not in FORMATS]:
        runs = runs_of(folder)
        raise UserError(
            f"--format {other[0]} is for single runs, a sweep is written as {','.join(FORMATS)}: "
            f"name one of its {len(runs)} runs, e.g. {runs[0]}"
        )
    info, runs_here = open_sweep(folder)
    scores, paths = write_sweep_files(folder, info, runs_here, out)
    if as_json:
        print(json.dumps(sweep_json(scores, info), indent=1))
        return scores
    console = Console(highlight=False)
    console.print(render_sweep(scores, info))
    for path in paths:
        console.print(Text(f"wrote {path}", style="dim"), soft_wrap=True)
    return scores


def write_report(folder: Path, out: Path | None) -> Path:
    """Write a sweep's page; returns its path."""
    from evalkit.aggregate.sweep import score_sweep
    from evalkit.report.html import REPORT_FILE
    from evalkit.report.sweep_page import write_sweep_page

    info, runs = open_sweep(folder)
    return write_sweep_page(score_sweep(runs), info, runs_of(folder), out or folder / REPORT_FILE)
