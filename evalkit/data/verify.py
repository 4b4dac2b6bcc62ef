"""Finding every broken file of a data set, and saying what is wrong with each."""

from __future__ import annotations

import functools
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from evalkit.core.errors import UserError
from evalkit.data.layout import dataset_folders
from evalkit.data.verify_dataset import check_dataset
from evalkit.data.verify_file import FileReport, Finding, check_file


@dataclass(frozen=True, kw_only=True)
class VerifyReport:
    """Result of ``verify``."""

    path: Path
    datasets: int
    files: int
    frames: int
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Findings that make data unusable or untrue."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def broken_files(self) -> tuple[Path, ...]:
        """Files with an error, each once, in the order of the findings."""
        return tuple(dict.fromkeys(finding.path for finding in self.errors))


def verify(
    path: Path,
    *,
    workers: int = 1,
    full: bool = False,
    expected_episodes: int = 50,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> VerifyReport:
    """Check an episode file, a folder of them, a data set, or all data sets below a folder.

    Args:
        path: what to check.
        workers: processes that read files.
        full: decode every image and compare files with the checksums taken when they were collected, instead of
            decoding the first, middle and last frame.
        expected_episodes: a data set of another size gets a warning.
        on_progress: called with files done and files in all.

    Raises:
        UserError: there is nothing to check at ``path``.
    """
    if not path.exists():
        raise UserError(f"no such file or folder: {path}")
    datasets = dataset_folders(path) if path.is_dir() else ()
    if datasets:
        groups = [[dataset.episode(number) for number in dataset.episode_numbers()] for dataset in datasets]
    else:
        groups = [[path] if path.is_file() else sorted(path.rglob("*.hdf5"))]
        if not groups[0]:
            raise UserError(f"no episode file (*.hdf5) at {path}: give a data root, <task>/<config>, or a file")
    reports: list[FileReport] = []
    files = [file for group in groups for file in group]
    for report in _check_all(files, workers, full):
        reports.append(report)
        on_progress(len(reports), len(files))
    findings = [finding for report in reports for finding in report.findings]
    remaining = iter(reports)
    for dataset, group in zip(datasets, groups, strict=False):
        own = [next(remaining) for _ in group]
        findings += check_dataset(dataset, own, expected_episodes=expected_episodes)
    return VerifyReport(
        path=path,
        datasets=len(datasets),
        files=len(files),
        frames=sum(report.frames or 0 for report in reports),
        findings=tuple(findings),
    )


def _check_all(files: list[Path], workers: int, full: bool) -> Iterator[FileReport]:
    """Reports in the order of the files."""
    check = functools.partial(check_file, full=full)
    if workers <= 1 or len(files) <= 1:
        yield from map(check, files)
        return
    # Processes, not threads: HDF5 lets one thread of a process read at a time.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(files)), mp_context=context) as executor:
        yield from executor.map(check, files)
