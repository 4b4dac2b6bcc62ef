"""The report page: one run as one self-contained HTML file that makes no request to any other machine.

Every text of a run (instructions, paths, error messages) goes through the template's escaping. A content security
policy in the page allows its own style and script, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from evalkit.aggregate.scores import Summary
from evalkit.aggregate.summary import summarise
from evalkit.aggregate.timing import PHASES
from evalkit.core.files import write_atomic
from evalkit.core.record import TrialRecord
from evalkit.report import figures, html_facts, html_model
from evalkit.report.html_model import Reference
from evalkit.report.text import count, duration, percent, rounded
from evalkit.store.run import Run

REPORT_FILE = "report.html"
TEMPLATES = Path(__file__).parent / "templates"
"""Folder of templates, style and script."""


def write_page(run: Run, out: Path | None = None, references: Sequence[Reference] = ()) -> Path:
    """Write the page of a run.

    Args:
        run: the run, finished or not.
        out: file to write; ``report.html`` in the run's folder if None. Links to videos follow it.
        references: published results to draw beside the run's.

    Returns:
        Path of the page.
    """
    path = run.folder / REPORT_FILE if out is None else out
    write_atomic(path, render_page(run, path.parent, references))
    return path


def render_page(run: Run, folder: Path | None = None, references: Sequence[Reference] = ()) -> str:
    """The page as text.

    Args:
        run: the run, finished or not.
        folder: where the page will lie; links to videos start there. The run's folder if None.
        references: published results to draw beside the run's. They are left out where they can't be compared:
            on assets that aren't official, and under another label.

    Raises:
        UserError: the run can't be summarised.
    """
    summary = summarise(run)
    records = run.records()
    folder = run.folder if folder is None else folder
    official = summary.backend.get("assets") == "official"
    rows = html_model.task_rows(summary, references if official else ())
    style, script = ((TEMPLATES / name).read_text() for name in ("report.css", "report.js"))
    configs = [score.config for score in summary.configs]
    kinds = html_facts.failures(run, records, configs)
    template = page_environment().get_template("report.html.j2")
    return template.render(
        summary=summary,
        style=style,
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        finished=run.is_done,
        tiles=html_model.tiles(summary),
        rows=rows,
        gaps=html_model.by_gap(rows),
        references=references,
        comparable=official,
        ids={row.task: f"task-{number}" for number, row in enumerate(rows, start=1)},
        phases=(*(phase for phase in PHASES if phase != "wall"), figures.OTHER),
        trials=html_model.trial_rows(run, summary, records, folder),
        pipeline=html_facts.pipeline_facts(summary),
        loss=figures.loss_curve(summary.card.losses) if summary.card else None,
        labels=html_facts.label_facts(summary),
        failures=kinds,
        most_failures=figures.largest(kinds),
        curves=[(score, figures.success_curve(_of(records.values(), score.config))) for score in summary.configs],
        times=[(score, figures.time_segments(_of(records.values(), score.config))) for score in summary.configs],
        seeds=html_facts.seed_rows(run),
        evaluation=html_facts.evaluation_facts(run, summary),
        environment=html_facts.environment_facts(run),
        incidents=len(run.incidents()),
        prefix=_prefix(summary),
    )


def _of(records: Iterable[TrialRecord], config: str) -> list[TrialRecord]:
    return [record for record in records if record.spec.config == config]


def _prefix(summary: Summary) -> str:
    assets = str(summary.backend.get("assets"))
    return {"official": "", "none": "No assets: "}.get(assets, f"{assets.capitalize()} assets: ")


def _breakable(name: str) -> Markup:
    """A name that a narrow column may break after an underscore."""
    return Markup("_<wbr>").join(name.split("_"))


def page_environment() -> Environment:
    """Templates and their filters, for every page."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "at": lambda value: f"{value:.2f}".rstrip("0").rstrip("."),
        "breakable": _breakable,
        "count": count,
        "duration": duration,
        "percent": percent,
        "rounded": rounded,
    }
    return environment
