"""What only a whole data set can tell: holes, seeds that disagree, missing instructions, foreign leftovers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from evalkit.core.files import read_json_lines
from evalkit.data.container import EpisodeFileError
from evalkit.data.episode_file import read_instructions
from evalkit.data.layout import DatasetFolder, episode_number, numbers_in
from evalkit.data.verify_file import FileReport, Finding

FIRST_EVALUATION_SEED = 100_000


def check_dataset(dataset: DatasetFolder, reports: Sequence[FileReport], *, expected_episodes: int) -> list[Finding]:
    """Findings of one data set.

    Args:
        dataset: its folder.
        reports: reports of its episode files, in numeric order.
        expected_episodes: a data set of another size gets a warning.
    """
    numbers = dataset.episode_numbers()
    findings = [*_hole_findings(dataset, numbers)]
    seeds, seed_findings = _read_seeds(dataset)
    findings += seed_findings
    if seeds is not None:
        findings += _seed_findings(dataset, seeds, numbers, reports)
    findings += _scene_info_findings(dataset, numbers)
    findings += _instruction_findings(dataset, numbers)
    findings += _repeat_findings(reports)
    findings += _checksum_findings(dataset, seeds or (), reports)
    if len(numbers) != expected_episodes:
        message = f"{len(numbers)} episodes, {expected_episodes} expected"
        findings.append(Finding(path=dataset.path, kind="episode_count", message=message, severity="warning"))
    if leftovers := dataset.leftovers():
        message = f"{len(leftovers)} files of an unfinished collection: run evalkit collect again to finish it"
        findings.append(Finding(path=leftovers[0], kind="unfinished", message=message, severity="warning"))
    return findings


def _hole_findings(dataset: DatasetFolder, numbers: Sequence[int]) -> Iterator[Finding]:
    present = set(numbers)
    for number in range(max(present, default=-1) + 1):
        if number not in present:
            message = f"missing, though episode{max(present)} exists"
            yield Finding(path=dataset.episode(number), kind="hole", message=message)
    folder = dataset.path / "data"
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.suffix == ".hdf5" and not path.name.startswith(".") and episode_number(path) is None:
            yield Finding(path=path, kind="file_name", message="not named episode<k>.hdf5", severity="warning")


def _read_seeds(dataset: DatasetFolder) -> tuple[tuple[int, ...] | None, list[Finding]]:
    path = dataset.seed_file
    if not path.is_file():
        return None, [Finding(path=path, kind="missing_seeds", message="no such file")]
    words = path.read_text(errors="replace").split()
    if strange := [word for word in words if not (word.isascii() and word.isdigit())]:
        return None, [Finding(path=path, kind="seeds", message=f"{strange[0][:40]!r} is not a seed")]
    return tuple(map(int, words)), []


def _seed_findings(
    dataset: DatasetFolder, seeds: Sequence[int], numbers: Sequence[int], reports: Sequence[FileReport]
) -> Iterator[Finding]:
    path = dataset.seed_file
    if twice := [seed for seed, count in Counter(seeds).items() if count > 1]:
        yield Finding(path=path, kind="duplicate_seed", message=f"seed {twice[0]} occurs more than once")
    for number in range(len(seeds)):
        if number not in numbers and number > max(numbers, default=-1):
            message = f"missing, though seed.txt lists seed {seeds[number]} for it"
            yield Finding(path=dataset.episode(number), kind="missing_episode", message=message)
    for number in numbers:
        if number >= len(seeds):
            message = f"seed.txt lists {len(seeds)} seeds: none for this episode"
            yield Finding(path=dataset.episode(number), kind="extra_episode", message=message)
    if late := [seed for seed in seeds if seed >= FIRST_EVALUATION_SEED]:
        message = f"seed {late[0]} is an evaluation seed: a policy would train on its test"
        yield Finding(path=path, kind="evaluation_seed", message=message, severity="warning")
    for number, report in zip(numbers, reports, strict=True):
        if number < len(seeds) and report.seed not in (None, seeds[number]):
            message = f"the file says seed {report.seed}, seed.txt says {seeds[number]}"
            yield Finding(path=report.path, kind="seed_disagrees", message=message)


def _scene_info_findings(dataset: DatasetFolder, numbers: Sequence[int]) -> Iterator[Finding]:
    path = dataset.scene_info_file
    if not path.is_file():
        yield Finding(path=path, kind="missing_scene_info", message="no such file")
        return
    try:
        info = json.loads(path.read_bytes())
    except ValueError as error:
        yield Finding(path=path, kind="scene_info", message=f"not JSON: {error}")
        return
    described = set(info) if isinstance(info, dict) else set()
    for number in numbers:
        if f"episode_{number}" not in described:
            yield Finding(path=path, kind="scene_info", message=f"no entry episode_{number}")
    for name in sorted(described - {f"episode_{number}" for number in numbers}):
        yield Finding(path=path, kind="scene_info", message=f"entry {name} has no episode file")


def _instruction_findings(dataset: DatasetFolder, numbers: Sequence[int]) -> Iterator[Finding]:
    for number in numbers:
        try:
            sentences = read_instructions(dataset.instructions(number))
        except EpisodeFileError as fault:
            yield Finding(path=fault.path, kind=fault.kind, message=fault.detail)
            continue
        if not sentences["unseen"]:
            message = "no sentence of the split 'unseen'"
            path = dataset.instructions(number)
            yield Finding(path=path, kind="instructions", message=message, severity="warning")
    for number in numbers_in(dataset.path / "instructions", ".json"):
        if number not in numbers:
            message = "instructions without an episode file"
            path = dataset.instructions(number)
            yield Finding(path=path, kind="extra_instructions", message=message, severity="warning")


def _repeat_findings(reports: Sequence[FileReport]) -> Iterator[Finding]:
    first: dict[str, Path] = {}
    for report in reports:
        if report.trajectory is not None:
            earlier = first.setdefault(report.trajectory, report.path)
            if earlier != report.path:
                message = f"same trajectory as {earlier.name}"
                yield Finding(path=report.path, kind="duplicate_trajectory", message=message)


def _checksum_findings(
    dataset: DatasetFolder, seeds: Sequence[int], reports: Sequence[FileReport]
) -> Iterator[Finding]:
    """Compare with the checksums taken when the files were written: HDF5 itself doesn't notice changed numbers."""
    try:
        lines = read_json_lines(dataset.seeds_log)
        recorded = {line["seed"]: line["sha256"] for line in lines if line["accepted"]}
    except (ValueError, KeyError, TypeError) as error:
        yield Finding(path=dataset.seeds_log, kind="seeds_log", message=f"not a record of seeds: {error}")
        return
    for number, report in zip(dataset.episode_numbers(), reports, strict=True):
        if report.sha256 is not None and number < len(seeds):
            expected = recorded.get(seeds[number])
            if expected not in (None, report.sha256):
                message = f"changed since it was collected: SHA-256 {report.sha256[:12]}, recorded {expected[:12]}"
                yield Finding(path=report.path, kind="checksum", message=message)
