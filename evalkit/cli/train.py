"""``evalkit train``: a training configuration becomes checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("train")(train)


def train(
    config: Annotated[Path, typer.Option(help="Training configuration, a YAML file.")],
    data: Annotated[Path | None, typer.Option(help="Folder with <task>/<config>/, in place of data.root.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder. Default: results/train/<name of the file>.")] = None,
    steps: Annotated[int | None, typer.Option(help="Number of steps, in place of the file's.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:<n>. Default: cuda if there is one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON line.")] = False,
) -> None:
    """Train a policy on demonstrations.

    Writes step_<N>/ with model.safetensors, policy.json and training_card.json.

    Example: evalkit train --config policies/house/standin_clean50.yaml --data data
    """
    from dataclasses import replace

    import torch
    from rich.console import Console

    from evalkit.policy.registry import load_training
    from evalkit.train.config import load_config
    from evalkit.train.display import Display
    from evalkit.train.loop import train as run_training

    settings = load_config(config)
    if data is not None:
        settings = replace(settings, data=replace(settings.data, root=str(data)))
    if steps is not None:
        settings = replace(settings, steps=steps)
    folder = out or Path("results/train") / config.stem
    chosen = device or ("cuda" if torch.cuda.is_available() else "cpu")
    with Display(Console(stderr=True)) as display:
        result = run_training(
            settings, load_training(settings.policy), out=folder, device=chosen, on_progress=display.show
        )
    if as_json:
        values = {
            "checkpoints": [str(path) for path in result.checkpoints],
            "steps": result.steps,
            "final_loss": result.final_loss,
            "wall_s": result.wall_s,
            "seconds_per_step": result.seconds_per_step,
            "samples": result.samples,
            "parameters": result.parameters,
            "device": chosen,
        }
        print(json.dumps(values))
        return
    rate = 1 / result.seconds_per_step
    print(f"{result.steps} steps on {result.samples} samples in {result.wall_s:.0f} s ({rate:.1f} steps/s), "
          f"loss {result.final_loss:.4f}")  # fmt: skip
    for path in result.checkpoints:
        print(path)
