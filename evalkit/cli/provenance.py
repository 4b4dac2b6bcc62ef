"""``evalkit provenance``: how a checkpoint came to be, and what that makes of its scores."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table
    from rich.tree import Tree

    from evalkit.policy.checkpoint import Checkpoint
    from evalkit.protocol.labels import Label
    from evalkit.provenance.card import TrainingCard
    from evalkit.provenance.rules import Finding, Requirement

EXIT_FOUND = 1


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("provenance")(provenance_command)


def provenance_command(
    checkpoint: Annotated[str, typer.Argument(help="Path or name of a checkpoint, e.g. step_30000.", metavar="CKPT")],
    protocol: Annotated[str, typer.Option(help="Protocol whose training data is asked for.")] = "leaderboard",
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if anything found is an error.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Show a checkpoint's training card, its ancestors, what is wrong with them, and the labels of its scores.

    Scenes of the demonstrations are compared with every list of accepted scenes there is.

    Example: evalkit provenance standin_clean50/step_30000 --strict
    """
    from evalkit.core.errors import UserError
    from evalkit.policy.checkpoint import resolve
    from evalkit.protocol.labels import label
    from evalkit.protocol.protocols import load_protocol
    from evalkit.protocol.training_set import training_of_card
    from evalkit.provenance.card import read_card
    from evalkit.provenance.rules import Requirement, check

    rules = load_protocol(protocol)
    if rules.training is None:
        raise UserError(f"protocol {protocol} asks for no training data to check; leaderboard does")
    found = resolve(checkpoint)
    card = read_card(found.path)
    requirement = Requirement(**asdict(rules.training), first_seed=rules.first_seed)
    findings = check(card, folder=found.path, evaluated=known_scenes(), requirement=requirement)
    labels = {config: label(card, config) for config in rules.configs.values()}
    if as_json:
        answer = {
            "checkpoint": str(found.path),
            "digest": found.digest,
            "adapter": found.adapter,
            "step": found.step,
            "protocol": protocol,
            "training": training_of_card(card),
            "labels": {config: asdict(value) for config, value in labels.items()},
            "findings": [asdict(finding) for finding in findings],
            "card": card.to_json() if card else None,
        }
        print(json.dumps(answer, indent=1))
    else:
        _print(found, card, labels, findings, requirement, training_of_card(card))
    if strict and any(finding.severity == "error" for finding in findings):
        raise typer.Exit(EXIT_FOUND)


def known_scenes() -> dict[tuple[str, str], frozenset[int]]:
    """Accepted scenes of all seed lists, travelling and local, whatever backend they were found on."""
    from evalkit.plan.seed_files import bundled_folder, local_folder, read_entries

    scenes: dict[tuple[str, str], frozenset[int]] = {}
    for root in (bundled_folder(), local_folder()):
        for path in sorted(root.glob("*/*.*.jsonl")):
            task, config = path.stem.split(".", 1)
            entries = read_entries(root, path.parent.name, task, config)
            accepted = frozenset(entry.seed for entry in entries if entry.accepted)
            scenes[task, config] = scenes.get((task, config), frozenset()) | accepted
    return scenes


def _print(
    checkpoint: Checkpoint,
    card: TrainingCard | None,
    labels: dict[str, Label],
    findings: tuple[Finding, ...],
    requirement: Requirement,
    training: str,
) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    console.print(Text(str(checkpoint.path), style="bold"), soft_wrap=True)
    console.print(Text(f"weights and settings {checkpoint.digest[:12]}, policy {checkpoint.adapter}", style="dim"))
    if card is not None:
        console.print()
        console.print(_card_table(card))
        console.print()
        console.print(_tree(checkpoint.path, card))
    console.print()
    wanted = f"{requirement.config}_{requirement.episodes_per_task}x{requirement.tasks}"
    console.print(Text(f"training data: {training}; the protocol's: {wanted}"), soft_wrap=True)
    for config, value in labels.items():
        console.print(Text(f"under {config}: {value.text} ({'; '.join(value.reasons)})"), soft_wrap=True)
    console.print()
    for finding in findings:
        style = "red" if finding.severity == "error" else "yellow"
        line = Text.assemble((f"{finding.severity:9}", style), (f"{finding.code}  ", "dim"), finding.text)
        console.print(line, soft_wrap=True)
    errors = sum(finding.severity == "error" for finding in findings)
    counts = f"{_counted(errors, 'error')}, {_counted(len(findings) - errors, 'warning')}"
    console.print(Text(counts, style="red" if errors else "green"))


def _counted(count: int, noun: str) -> str:
    plural = "es" if noun.endswith("s") else "s"
    return f"{count} {noun}{'' if count == 1 else plural}"


def _card_table(card: TrainingCard) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    losses = f"{card.losses[-1][1]:.4g} at step {card.losses[-1][0]}" if card.losses else "not recorded"
    batch_size = card.recipe.get("batch_size", "?")
    known = card.code_commit != "unknown"
    code = f"{card.code_commit}{' with uncommitted changes' if card.code_dirty and known else ''}"
    rows = (
        ("step", f"{card.step:,}"),
        ("samples", f"{card.samples_seen:,} ({batch_size} a step, {_counted(card.world_size, 'process')})"),
        ("parameters", f"{card.parameters:,}"),
        ("learning rate", str(card.recipe.get("learning_rate", "?"))),
        ("loss", losses),
        ("device", f"{card.device}, {card.wall_s:,.0f} s"),
        ("code", code),
        ("evalkit", f"{card.evalkit_version}, {card.created_at}"),
        *(("note", note) for note in card.notes),
    )
    for name, text in rows:
        table.add_row(name, text)
    return table


def _tree(path: Path, card: TrainingCard) -> Tree:
    """The line of ancestors: each checkpoint with its data, and below it the one its weights came from."""
    from rich.markup import escape
    from rich.tree import Tree

    from evalkit.provenance.ancestry import lineage

    root = branch = Tree(f"[bold]{escape(f'{path.parent.name}/{path.name}')}[/bold]")
    for generation in lineage(card):
        if generation.path is not None:
            branch = branch.add("weights from").add(f"[bold]{escape(generation.path)}[/bold]")
        for line in _data_lines(generation.card) if generation.card else ():
            branch.add(escape(line))
        if generation.gap is not None:
            branch.add(f"[red]{escape(generation.gap.text)}[/red]")
        elif generation.card and generation.card.parent is None:
            branch.add("random weights")
    return root


def _data_lines(card: TrainingCard) -> list[str]:
    """One line for each configuration and kind of assets."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for source in card.data:
        groups.setdefault((source.config, source.assets), []).append(source)
    return [
        f"{config}, {assets} assets: {sum(source.episodes for source in sources):,} demonstrations of "
        f"{len({source.task for source in sources})} tasks, {sum(source.clips for source in sources):,} clips"
        for (config, assets), sources in sorted(groups.items())
    ]
