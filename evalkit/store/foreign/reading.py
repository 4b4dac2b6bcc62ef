"""Which reader reads which tool's results."""

from __future__ import annotations

from pathlib import Path

from evalkit.core.errors import UnknownNameError, UserError
from evalkit.store.foreign import lerobot, robotwin, tables, vla_eval, x_vla
from evalkit.store.foreign.scores import ImportedScores

KINDS = (robotwin.KIND, lerobot.KIND, x_vla.KIND, vla_eval.KIND, tables.KIND)


def read_scores(
    path: Path, kind: str, *, only: str | None = None, latest: bool = False, unit: tables.Unit | None = None
) -> ImportedScores:
    """Read another tool's results.

    Args:
        path: file or folder.
        kind: one of ``KINDS``.
        only: part of the path of the results to take (robotwin).
        latest: take the last of several results (robotwin).
        unit: of bare numbers (csv).

    Raises:
        UnknownNameError: no such kind, or a task that isn't RoboTwin's.
        UserError: the path doesn't exist, or doesn't hold results that can be read without guessing.
    """
    if kind not in KINDS:
        raise UnknownNameError("kind of results", kind, KINDS)
    if not path.exists():
        raise UserError(f"{path} doesn't exist")
    if kind == robotwin.KIND:
        return robotwin.read(path, only=only, latest=latest)
    if only is not None or latest:
        raise UserError(f"--only and --latest choose among RoboTwin's results; {kind} has none of them")
    if kind == tables.KIND:
        return tables.read(path, unit=unit)
    if unit is not None:
        raise UserError(f"--unit is for csv; {kind} states its own")
    return {lerobot.KIND: lerobot.read, x_vla.KIND: x_vla.read, vla_eval.KIND: vla_eval.read}[kind](path)
