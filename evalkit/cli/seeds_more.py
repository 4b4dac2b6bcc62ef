"""``evalkit seeds verify`` and ``import``: are lists still true here, and lists that others published."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalkit.cli.robotwin_choice import RoboTwinChoice, RobotwinPython, RobotwinRoot

if TYPE_CHECKING:
    from evalkit.cli.backends import Backend
    from evalkit.plan.seeds import SeedEntry
    from evalkit.pool.seed_check import Candidate, CheckResult
    from evalkit.protocol.config import TaskConfig

EXIT_DIFFERENT = 1


def verify_command(
    tasks: Annotated[str | None, typer.Option("--tasks", help="Comma-separated; all that have a list.")] = None,
    config: Annotated[
        str, typer.Option("--config", help="Comma-separated task configurations, names or YAML files.")
    ] = "demo_clean,demo_randomized",
    sample: Annotated[int | None, typer.Option(min=1, help="So many candidates of each list; all if left out.")] = None,
    imported: Annotated[str | None, typer.Option("--list", help="Name of an imported list, instead of ours.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Simulators; one per CPU core if left out.")] = None,
    backend: Annotated[str, typer.Option("--backend", help="robotwin, or fake.")] = "robotwin",
    robotwin_root: RobotwinRoot = None,
    robotwin_python: RobotwinPython = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Try candidates of the seed lists again, accepted and rejected ones; exit code 1 if one comes out otherwise.

    Example: evalkit seeds verify --tasks click_bell,place_shoe --sample 4
    """
    from evalkit.cli.backends import load_backend
    from evalkit.cli.progress import RunProgress
    from evalkit.cli.run_placement import simulators_everywhere
    from evalkit.cli.stopping import EXIT_RESUMABLE, StopRequest
    from evalkit.pool.ray_crew import RayCrew
    from evalkit.pool.ray_session import ray_session
    from evalkit.pool.seed_check import check_seeds

    chosen = load_backend(backend, RoboTwinChoice(root=robotwin_root, python=robotwin_python))
    candidates = _candidates(chosen, tasks, config, imported, sample)
    size = min(workers or os.cpu_count() or 1, len(candidates))
    stop = StopRequest()
    with RunProgress(size) as progress, ray_session(size):
        stop.install()
        progress.seed_word = "tried again"
        crew = RayCrew(size, chosen.make_simulator, placement=simulators_everywhere(size))
        try:
            result = check_seeds(crew, candidates, progress, stop=stop)
        finally:
            crew.close()
    if result is None:
        raise typer.Exit(EXIT_RESUMABLE)
    _print(result, as_json=as_json)
    if result.differences:
        raise typer.Exit(EXIT_DIFFERENT)


def import_command(
    file: Annotated[Path, typer.Argument(help="The published file.")],
    format: Annotated[str, typer.Option("--format", help="vla-eval, rpent or rlinf.")],
    config: Annotated[
        str | None, typer.Option("--config", help="Task configuration it was made under; its name if it is one's.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Read a published seed list. It keeps a name of its own: runs don't use it, `show` and `verify --list` do.

    Example: evalkit seeds import demo_randomized.json --format vla-eval
    """
    from evalkit.core.errors import UnknownNameError, UserError
    from evalkit.plan.published_seeds import FORMATS, read_published, write_published
    from evalkit.plan.seed_files import local_folder
    from evalkit.protocol.config import known_configs, load_config

    if not file.expanduser().is_file():
        raise UserError(f"seed list {file}: no such file")
    if format not in FORMATS:
        raise UnknownNameError("seed list format", format, tuple(FORMATS))
    if config is None and file.stem not in known_configs():
        raise UserError(f"{file.name} doesn't say under which configuration it was made: give --config")
    published = read_published(file, format, load_config(config or file.stem))
    folder = write_published(published, local_folder())
    if as_json:
        print(json.dumps({"name": published.origin.name, "folder": str(folder)} | asdict(published.origin), indent=1))
        return
    origin = published.origin
    print(f"{origin.accepted} accepted seeds of {origin.tasks} tasks under {origin.config}: {folder}")
    print(f"they hold where they were found; try them here: evalkit seeds verify --list {origin.name} --sample 2")


def read_imported(name: str, tasks: str | None) -> list[tuple[str, str, tuple[SeedEntry, ...]]]:
    """Task, configuration and entries of an imported list.

    Raises:
        UnknownNameError: no such list, or it doesn't hold a task named.
    """
    from evalkit.core.tasks import TASKS, parse_tasks
    from evalkit.plan.published_seeds import read_origin
    from evalkit.plan.seed_files import local_folder, read_entries

    config = read_origin(local_folder(), name).config
    found = {task: tuple(read_entries(local_folder(), name, task, config)) for task in TASKS}
    there = [task for task in TASKS if found[task]]
    return [(task, config, found[task]) for task in parse_tasks(tasks, there)]


def _candidates(
    chosen: Backend, tasks: str | None, config: str, imported: str | None, sample: int | None
) -> list[Candidate]:
    from evalkit.cli.backends import choose_tasks
    from evalkit.core.errors import UserError
    from evalkit.plan.seed_check import choose_sample
    from evalkit.pool.seed_check import Candidate

    lists: list[tuple[str, TaskConfig, list[SeedEntry]]] = []
    if imported is not None:
        from evalkit.protocol.config import load_config

        for task, name, entries in read_imported(imported, tasks):
            lists.append((task, load_config(name), list(entries)))
        choose_tasks(",".join(task for task, *_ in lists), chosen)
    else:
        from evalkit.cli.seeds import load_configs
        from evalkit.plan.seed_files import SeedFiles, local_folder

        files = SeedFiles(local_folder(), chosen.fingerprint().physics_digest)
        for task in choose_tasks(tasks, chosen):
            for task_config in load_configs(config):
                by_seed = {entry.seed: entry for entry in files.read(task, task_config.name)}
                known = [entry for entry in by_seed.values() if entry.config_digest == task_config.digest]
                if tasks is not None and not known:
                    raise UserError(f"{task} {task_config.name} has no seed list yet: run `evalkit seeds build`")
                lists.append((task, task_config, known))
    candidates = [
        Candidate(task=task, config=task_config, listed=entry)
        for task, task_config, entries in lists
        for entry in choose_sample(entries, sample, task, task_config.name)
    ]
    if not candidates:
        raise UserError("there are no seed lists for this backend yet: run `evalkit seeds build`")
    return candidates


def _print(result: CheckResult, *, as_json: bool) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    if as_json:
        print(json.dumps(asdict(result), indent=1))
        return
    console = Console(highlight=False)
    if result.differences:
        table = Table("task", "config", "seed", "what", "in the list", "here", box=box.SIMPLE_HEAD, pad_edge=False)
        for found in result.differences:
            row: list[Any] = [found.task, found.config, found.seed, found.what, found.listed, found.found]
            table.add_row(*map(str, row))
        console.print(table)
    otherwise = len({(found.task, found.config, found.seed) for found in result.differences})
    console.print(f"{result.tried - otherwise} of {result.tried} candidates come out as listed")
    if result.scenes:
        console.print(f"{result.same_scene} of {result.scenes} scenes settle to the digest in the list")
