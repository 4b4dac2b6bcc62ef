"""``evalkit seeds``: find accepted seeds ahead of a run, and show how they came about."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalkit.cli.robotwin_choice import RoboTwinChoice, RobotwinPython, RobotwinRoot
from evalkit.cli.seeds_more import import_command, verify_command

if TYPE_CHECKING:
    from evalkit.cli.progress import RunProgress
    from evalkit.core.trial import BackendFingerprint
    from evalkit.plan.seeds import SeedEntry
    from evalkit.pool.drive import SeedLists
    from evalkit.pool.scheduler import Crew
    from evalkit.pool.seed_work import SeedNeed
    from evalkit.protocol.config import TaskConfig

Tasks = Annotated[str | None, typer.Option("--tasks", help="Comma-separated; all the installed assets can build.")]
Configs = Annotated[str, typer.Option("--config", help="Comma-separated task configurations, names or YAML files.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print as JSON.")]
BackendName = Annotated[str, typer.Option("--backend", help="robotwin; or fake, for testing the harness itself.")]
SeedBase = Annotated[int, typer.Option(help="Candidate seeds run upward from 100000 * (1 + this).")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    seeds = typer.Typer(no_args_is_help=True, help="Accepted seeds: the scenes every policy is evaluated on.")
    seeds.command("build")(build_command)
    seeds.command("show")(show_command)
    seeds.command("verify")(verify_command)
    seeds.command("import")(import_command)
    app.add_typer(seeds, name="seeds")


def build_command(
    tasks: Tasks = None,
    config: Configs = "demo_clean,demo_randomized",
    count: Annotated[int | None, typer.Option(min=1, help="Accepted seeds per task and configuration; 100.")] = None,
    candidates: Annotated[
        int | None, typer.Option(min=1, help="Try exactly the first so many instead: measures acceptance.")
    ] = None,
    give_up_after: Annotated[
        int | None, typer.Option(min=1, help="More rejected in a row end a task's search; 200.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Simulators; one per CPU core if left out.")] = None,
    seed_base: SeedBase = 0,
    backend: BackendName = "robotwin",
    robotwin_root: RobotwinRoot = None,
    robotwin_python: RobotwinPython = None,
    as_json: AsJson = False,
) -> None:
    """Find the first accepted seeds of each task and configuration; goes on from what is there.

    A task whose expert never succeeds is set aside, the others go on; it is named at the end (exit code 1).

    Example: evalkit seeds build --tasks click_bell --config demo_clean --count 100 --workers 4
    """
    from evalkit.cli.backends import choose_tasks, load_backend
    from evalkit.cli.progress import RunProgress
    from evalkit.cli.run_placement import simulators_everywhere
    from evalkit.cli.stopping import EXIT_RESUMABLE, StopRequest
    from evalkit.core.errors import UserError
    from evalkit.plan.seed_files import SeedFiles, local_folder
    from evalkit.plan.seeds import REJECTED_IN_A_ROW
    from evalkit.pool.ray_crew import RayCrew
    from evalkit.pool.ray_session import ray_session
    from evalkit.pool.seed_work import SeedNeed, read_lists

    if candidates is not None and (count or give_up_after) is not None:
        raise UserError("--candidates tries exactly so many: leave out --count and --give-up-after")
    configs = load_configs(config)
    chosen = load_backend(backend, RoboTwinChoice(root=robotwin_root, python=robotwin_python))
    needs = [
        SeedNeed(
            task=task,
            config=task_config,
            count=count or 100,
            seed_base=seed_base,
            candidates=candidates,
            give_up_after=give_up_after or REJECTED_IN_A_ROW,
        )
        for task in choose_tasks(tasks, chosen)
        for task_config in configs
    ]
    fingerprint = chosen.fingerprint()
    seeds: SeedLists | None = read_lists(needs, SeedFiles(local_folder(), fingerprint.physics_digest))
    hopeless: dict[tuple[str, str], str] = {}
    if seeds is None or len(seeds) < len(needs):
        size = workers or os.cpu_count() or 1
        stop = StopRequest()
        with RunProgress(size) as progress, ray_session(size):
            stop.install()
            progress.seed_word = "accepted" if candidates is None else "tried"
            crew = RayCrew(size, chosen.make_simulator, placement=simulators_everywhere(size))
            try:
                seeds = find_missing_seeds(crew, needs, fingerprint, progress, stop, hopeless)
            finally:
                crew.close()
    if seeds is None:
        raise typer.Exit(EXIT_RESUMABLE)
    print_lists([row_of(task, name, found.entries) for (task, name), found in seeds.items()], as_json=as_json)
    for why in hopeless.values():
        print(f"evalkit: {why}", file=sys.stderr)
    if hopeless:
        raise typer.Exit(1)


def show_command(
    tasks: Tasks = None,
    config: Configs = "demo_clean,demo_randomized",
    first: Annotated[int | None, typer.Option(min=1, help="Count only so many candidates of each list.")] = None,
    seed_base: SeedBase = 0,
    imported: Annotated[str | None, typer.Option("--list", help="Name of an imported list, instead of ours.")] = None,
    backend: BackendName = "robotwin",
    robotwin_root: RobotwinRoot = None,
    robotwin_python: RobotwinPython = None,
    as_json: AsJson = False,
) -> None:
    """Acceptance rate and rejections by reason, for every list there is.

    Example: evalkit seeds show --tasks click_bell --first 30
    """
    from evalkit.cli.backends import choose_tasks, load_backend
    from evalkit.cli.seeds_more import read_imported
    from evalkit.plan.seed_files import SeedFiles, local_folder
    from evalkit.plan.seeds import SeedSearch

    if imported is not None:
        rows = [row_of(task, name, entries[:first]) for task, name, entries in read_imported(imported, tasks)]
        if not any(row["rejected"] for row in rows):  # the list says nothing of rejected candidates
            rows = [row | {"acceptance": None} for row in rows]
        print_lists(rows, as_json=as_json)
        return

    configs = load_configs(config)
    chosen = load_backend(backend, RoboTwinChoice(root=robotwin_root, python=robotwin_python))
    files = SeedFiles(local_folder(), chosen.fingerprint().physics_digest)
    rows = []
    for task in choose_tasks(tasks, chosen):
        for task_config in configs:
            known = files.read(task, task_config.name)
            count = len(known) + 1
            search = SeedSearch(task, task_config.name, task_config.digest, seed_base, count, known)
            rows.append(row_of(task, task_config.name, search.entries[:first]))
    print_lists(rows, as_json=as_json)


def load_configs(names: str) -> tuple[TaskConfig, ...]:
    """Configurations of a comma-separated list.

    Raises:
        UserError: none is named, or one doesn't exist.
    """
    from evalkit.core.errors import UserError
    from evalkit.protocol.config import load_config

    listed = [name.strip() for name in names.split(",") if name.strip()]
    if not listed:
        raise UserError("no configuration named: give --config a comma-separated list")
    return tuple(load_config(name) for name in dict.fromkeys(listed))


def find_missing_seeds(
    crew: Crew,
    needs: Sequence[SeedNeed],
    fingerprint: BackendFingerprint,
    progress: RunProgress,
    stop: Callable[[], bool],
    hopeless: dict[tuple[str, str], str] | None = None,
) -> SeedLists | None:
    """Complete the lists, waiting for another process that is at it; None if told to stop.

    ``hopeless``: see ``evalkit.pool.drive.find_seeds``.
    """
    from evalkit.plan.seed_files import SeedFiles, local_folder
    from evalkit.pool.drive import find_seeds

    told = False

    def wait() -> None:
        nonlocal told
        if stop():
            raise KeyboardInterrupt
        if not told:
            progress.say("another evalkit process is finding seeds for this backend; waiting for it")
            told = True

    with SeedFiles(local_folder(), fingerprint.physics_digest, on_wait=wait) as files:
        return find_seeds(crew, needs, files, progress, stop=stop, hopeless=hopeless)


def row_of(task: str, config: str, entries: Sequence[SeedEntry]) -> dict[str, Any]:
    """A list in numbers."""
    from evalkit.plan.seeds import SeedList, median_s

    found = SeedList(task=task, config=config, entries=tuple(entries))
    accepted = found.accepted
    return {
        "task": task,
        "config": config,
        "tried": len(found.entries),
        "accepted": len(accepted),
        "acceptance": found.acceptance_rate,
        "rejected": found.rejections,
        "rejected_in_detail": found.detailed_rejections,
        "setup_s": median_s([entry.setup_s for entry in found.entries]),
        "expert_s": median_s([entry.expert_s for entry in accepted]),
        "first_seed": accepted[0].seed if accepted else None,
        "last_seed": accepted[-1].seed if accepted else None,
    }


def print_lists(rows: Sequence[dict[str, Any]], *, as_json: bool) -> None:
    """Lists in numbers, as a table or as JSON."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    if as_json:
        print(json.dumps(rows, indent=1))
        return
    configs = list(dict.fromkeys(row["config"] for row in rows))
    cells = {(row["task"], row["config"]): _cell(row) for row in rows}
    table = Table("task", *configs, box=box.SIMPLE_HEAD, pad_edge=False)
    for task in dict.fromkeys(row["task"] for row in rows):
        table.add_row(task, *(cells.get((task, config), "-") for config in configs))
    table.add_section()
    table.add_row("all", *(_cell(_total([row for row in rows if row["config"] == config])) for config in configs))
    Console().print(table)
    Console().print("accepted of tried, and why the others were rejected", style="dim")


def _total(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    rejected: Counter[str] = Counter()
    for row in rows:
        rejected.update(row["rejected"])
    tried, accepted = (sum(row[name] for row in rows) for name in ("tried", "accepted"))
    return {
        "tried": tried,
        "accepted": accepted,
        "rejected": rejected,
        "acceptance": accepted / tried if tried and any(row["acceptance"] is not None for row in rows) else None,
    }


def _cell(row: dict[str, Any]) -> str:
    if not row["tried"]:
        return "no list yet"
    if row["acceptance"] is None:
        return f"{row['accepted']} accepted"
    rejected = row.get("rejected_in_detail", row["rejected"])
    why = "\n  ".join(f"{number} {kind}" for kind, number in sorted(rejected.items()))
    return f"{row['accepted']}/{row['tried']} {row['acceptance']:.0%}" + (f"\n  {why}" if why else "")
