"""The panel that says how a checkpoint came to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from evalkit.aggregate.scores import Summary
from evalkit.provenance.card import CARD_FILE, TrainingCard
from evalkit.report.text import count, demonstrations, duration, flatten, parameters, rounded

_RECIPE_FIRST = (
    "steps",
    "batch_size",
    "learning_rate",
    "schedule",
    "warmup_steps",
    "optimizer",
    "weight_decay",
    "ema_decay",
    "precision",
    "seed",
)
"""Settings shown, if the recipe has them; the exported table holds all."""
_TASKS_SHOWN = 12


def pipeline_panel(summary: Summary) -> Panel:
    """Checkpoint, demonstrations, initial weights, recipe, cost and code of the policy that was evaluated."""
    grid = facts_grid()
    policy = summary.policy
    if policy.checkpoint:
        shown = Text(policy.checkpoint)
        if policy.checkpoint_digest:
            shown.append(f"  sha256 {policy.checkpoint_digest[:12]}", style="dim")
        grid.add_row("checkpoint", shown)
    else:
        add_fact(grid, "policy", f"{policy.adapter}, no checkpoint")
    if summary.card is None:
        known = "unknown" if policy.checkpoint else "none recorded"
        add_fact(grid, "training", f"{known}: no {CARD_FILE}", style="yellow")
    else:
        for name, value in training_facts(summary.card):
            add_fact(grid, name, value)
    return Panel(grid, title="Training pipeline", title_align="left", box=box.ROUNDED, border_style="cyan")


def facts_grid() -> Table:
    """A borderless two-column table of names and values."""
    grid = Table.grid(padding=(0, 2), expand=False)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def add_fact(grid: Table, name: str, value: str, style: str = "") -> None:
    """Add a row. Values are plain text: a path may hold what rich would take for markup."""
    grid.add_row(Text(name), Text(value, style=style))


def training_facts(card: TrainingCard) -> list[tuple[str, str]]:
    """Demonstrations, initial weights, recipe, cost and code of a checkpoint, as names and values."""
    rows = [("demonstrations", "\n".join(demonstrations(card)) or "none listed"), ("tasks", _tasks(card))]
    start = card.initial_weights
    if card.parent:
        known = "" if card.parent.card else f", no {CARD_FILE}"
        start = f"{card.parent.path} (sha256 {card.parent.digest[:12]}{known})"
    rows.append(("initial weights", start))
    rows.append(("recipe", _recipe(card.recipe)))
    loss = f", final loss {rounded(card.losses[-1][1], 4)}" if card.losses else ""
    rows.append(
        (
            "training",
            f"{count(card.step)} steps on {card.world_size} x {card.device} in {duration(card.wall_s)} "
            f"({rounded(card.seconds_per_step, 3)} s/step){loss}",
        )
    )
    dirty = " with uncommitted changes" if card.code_dirty else ""
    rows.append(("parameters", parameters(card.parameters)))
    rows.append(("code", f"evalkit {card.evalkit_version}, commit {card.code_commit[:12]}{dirty}"))
    return rows


def _tasks(card: TrainingCard) -> str:
    names = sorted({source.task for source in card.data})
    return ", ".join(names) if len(names) <= _TASKS_SHOWN else f"{len(names)} tasks"


def _recipe(recipe: Mapping[str, Any]) -> str:
    flat = flatten(recipe)
    names = [name for name in _RECIPE_FIRST if name in flat] or sorted(flat)[: len(_RECIPE_FIRST)]
    return ", ".join(f"{name.replace('_', ' ')} {_value(flat[name])}" for name in names)


def _value(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return count(value) if isinstance(value, int) else f"{value:g}"
