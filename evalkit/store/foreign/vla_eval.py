"""vla-eval's export: ``<benchmark>_aggregate.json`` with ``tasks``, each with its ``episodes``.

An episode has ``metrics.success``, and ``failure_reason`` if the harness failed; such episodes are in ``num_episodes``
but not in the tool's own mean. ``config.params`` are the arguments the benchmark was made with. One file is one task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalkit.core.errors import UserError
from evalkit.store.foreign.lerobot import load_json
from evalkit.store.foreign.scores import ImportedScores, ImportedTask, canonical_task, collect

KIND = "vla-eval"
PATTERN = "*_aggregate.json"


def read(path: Path) -> ImportedScores:
    """Read a file, or every ``*_aggregate.json`` below a folder.

    Raises:
        UserError: no such file, one of another form, or a mean that its episodes contradict.
        UnknownNameError: a task that isn't RoboTwin's.
    """
    files = [path] if path.is_file() else sorted(path.rglob(PATTERN))
    tasks: list[ImportedTask] = []
    notes: list[str] = []
    for file in files:
        source = str(file.relative_to(path)) if path.is_dir() else file.name
        values = load_json(file)
        if not isinstance(values, Mapping) or not isinstance(values.get("tasks"), list):
            raise UserError(f"{file} isn't an export of vla-eval: it has no list of tasks")
        tasks += _tasks(file, source, values)
        notes += _notes(source, values)
    return collect(KIND, str(path), tasks, notes=notes)


def _tasks(file: Path, source: str, values: Mapping[str, Any]) -> Iterator[ImportedTask]:
    parameters = _parameters(values)
    config, split = parameters.get("task_config"), parameters.get("instruction_type")
    for entry in values["tasks"]:
        try:
            name, episodes = str(entry["task"]), entry["episodes"]
            counted = [episode for episode in episodes if not episode.get("failure_reason")]
            ends = [bool(episode["metrics"]["success"]) for episode in counted]
        except (KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{file} isn't an export of vla-eval: {type(error).__name__} {error}") from error
        if not ends:
            raise UserError(f"{file}: none of the {len(episodes)} episodes of {name} ended without an error")
        stated = entry.get("mean_success")
        if stated is not None and not (isinstance(stated, int | float) and abs(stated - sum(ends) / len(ends)) <= 1e-4):
            raise UserError(
                f"{file}: {name} states a mean of {stated}, its episodes give {sum(ends)} of {len(ends)}: the file was "
                "edited, or counts errors in a way evalkit doesn't know"
            )
        yield ImportedTask(
            task=canonical_task(name),
            config=str(config) if config is not None else None,
            rate=sum(ends) / len(ends),
            trials=len(ends),
            successes=sum(ends),
            errors=len(episodes) - len(ends),
            instruction_split=split if split in ("seen", "unseen") else None,
            source=source,
        )


def _notes(source: str, values: Mapping[str, Any]) -> Iterator[str]:
    parameters = _parameters(values)
    if values.get("partial"):
        yield f"{source} says of itself that it is partial"
    if parameters.get("skip_expert_check"):
        yield "seeds weren't filtered by the expert (skip_expert_check)"
    for name in ("task_config", "instruction_type", "seed"):
        if name not in parameters:
            yield f"the export doesn't state {name}"


def _parameters(values: Mapping[str, Any]) -> Mapping[str, Any]:
    config = values.get("config")
    parameters = config.get("params") if isinstance(config, Mapping) else None
    return parameters if isinstance(parameters, Mapping) else {}
