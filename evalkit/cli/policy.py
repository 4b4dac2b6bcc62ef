"""``evalkit policy list``, and the place of ``evalkit policy check``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from evalkit.cli.policy_check import check_command

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def register(app: typer.Typer) -> None:
    """Add the ``policy`` commands to the application."""
    commands = typer.Typer(help="Policies: which there are, and whether one is ready to run.", no_args_is_help=True)
    commands.command("list")(list_command)
    commands.command("check")(check_command)
    app.add_typer(commands, name="policy")


def list_command(as_json: Json = False) -> None:
    """List adapters, the forms among them that take a policy file, and profiles.

    Example: evalkit policy list
    """
    from evalkit.cli.policy_check import wrapped
    from evalkit.policy.profile import profile_names
    from evalkit.policy.registry import adapter_names, load_adapter

    rows = {}
    for name in adapter_names():
        module = load_adapter(name)
        form = hasattr(module, "identity")
        takes = "a policy file" if form else "a checkpoint" if module.NEEDS_CHECKPOINT else "nothing"
        rows[name] = {"takes": takes, "is": (module.__doc__ or "").split("\n")[0].replace("``", "")}
    if as_json:
        print(json.dumps({"adapters": rows, "profiles": list(profile_names())}, indent=1))
        return
    groups = {
        "a policy file": "Forms, described in a policy file: evalkit run --policy FILE.yaml",
        "a checkpoint": "With a checkpoint: evalkit run --ckpt NAME",
        "nothing": "As they are: evalkit run --policy NAME",
    }
    for takes, title in groups.items():
        print(title)
        for name, row in rows.items():
            if row["takes"] == takes:
                print(wrapped(f"  {name:16s}  ", row["is"]))
        print()
    print(wrapped("Profiles, for profile: NAME in a policy file: ", ", ".join(profile_names())))
    print("Is one ready? evalkit policy check NAME or FILE.yaml or --ckpt NAME")
