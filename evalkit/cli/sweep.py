"""``evalkit run --ckpt a,b,c``: several policies on the same scenes, with one crew, and one table.

Each is a run of its own, the same one that its checkpoint alone would give. Trials are started scene by scene, all
policies in turn, so that whenever it ends all have met the same scenes. Where not all policies fit into memory at
once, groups of them follow each other, and this holds within a group.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from evalkit.aggregate.scenes import scenes_in_turn
from evalkit.cli.run_setup import RUNS_FOLDER, RunRequest, RunSetup, prepare
from evalkit.cli.stopping import EXIT_RESUMABLE, StopRequest
from evalkit.cli.sweep_memory import servers_at_once
from evalkit.cli.sweep_progress import SweepProgress
from evalkit.cli.sweep_show import SWEEPS_FOLDER
from evalkit.core.errors import UserError
from evalkit.core.hashing import digest
from evalkit.core.trial import BackendFingerprint, TrialSpec
from evalkit.policy.selection import names_several, select_checkpoints, select_policies
from evalkit.store.run import SWEEP_FILE, Run
from evalkit.store.sweep import SweepInfo, common_settings, names_of_runs, read_sweep, write_sweep

if TYPE_CHECKING:
    from evalkit.cli.run_options import RunOptions
    from evalkit.pool.drive import SeedLists, Session
    from evalkit.pool.ray_crew import RayCrew

EXIT_INCOMPLETE = 1


@dataclass(frozen=True)
class Sweep:
    """The policies of a sweep, ready to run."""

    sides: tuple[RunSetup, ...]
    left_out: tuple[str, ...]
    """What a pattern matched but can't be evaluated, one line each."""

    def open(self, fingerprint: BackendFingerprint, seeds: SeedLists) -> tuple[Path, tuple[Run, ...]]:
        """The sweep's folder and its runs, created or taken up again.

        Without ``--out`` the runs lie in ``results/runs``, where a run of one of the checkpoints alone lies too: what
        is there needn't be run again.

        Raises:
            UserError: a folder holds something else.
        """
        infos = [side.info(fingerprint, seeds) for side in self.sides]
        settings = digest(common_settings(infos[0]))
        first = self.sides[0]
        mark = digest([settings, *(info.policy.digest for info in infos)])[:8]
        name = f"{len(infos)}-{first.policy.adapter}-{first.request.mode}-{mark}"
        folder = first.request.out or SWEEPS_FOLDER / name
        created_at = datetime.now(UTC).isoformat(timespec="seconds")
        if (folder / SWEEP_FILE).exists():
            there = read_sweep(folder)
            created_at = there.created_at
            if there.settings != settings:
                raise UserError(
                    f"{folder} holds a sweep with other settings ({there.sweep}): give --out another folder"
                )
        elif folder.is_dir() and any(not (entry / "run.json").exists() for entry in folder.iterdir()):
            raise UserError(f"{folder} holds files but no {SWEEP_FILE}: give --out an empty or new folder")
        home = first.request.out or RUNS_FOLDER
        runs = tuple(
            Run.create(home / info.run_id, info, side.plan(fingerprint, seeds))
            for side, info in zip(self.sides, infos, strict=True)
        )
        folder.mkdir(parents=True, exist_ok=True)
        info = SweepInfo(
            sweep=name,
            created_at=created_at,
            runs=names_of_runs(folder, runs),
            settings=settings,
            left_out=self.left_out,
            failures={},
            command=tuple(sys.argv[1:]),
        )
        write_sweep(folder, info)
        return folder, runs


def prepare_sweep(request: RunRequest, *, every: int | None, order: str) -> Sweep:
    """Find and check the policies as far as it goes without a simulator.

    Raises:
        UserError: the first thing that is wrong.
    """
    if order != "longest":
        raise UserError("several checkpoints take one scene of each task in turn: leave --order out")
    if request.bug_compatible:
        raise UserError("--bug-compatible runs one policy in RoboTwin's own order: name one checkpoint")
    several_policies = names_several(request.policy)
    if several_policies and request.checkpoint is not None:
        raise UserError("--policy names several policies, so --ckpt has no meaning: leave one of them out")
    if not several_policies and request.checkpoint is None:
        raise UserError("--every chooses among checkpoints: give --ckpt a pattern or a training run's folder")
    if several_policies:
        chosen = select_policies(str(request.policy))
        requests = [replace(request, policy=name) for name in chosen.names]
    else:
        chosen = select_checkpoints(str(request.checkpoint), every=every)
        requests = [replace(request, checkpoint=name) for name in chosen.names]
    first = prepare(requests[0])
    sides = (first, *(prepare(other, backend=first.backend) for other in requests[1:]))
    names: dict[str, str] = {}
    for side, name in zip(sides, chosen.names, strict=True):
        if other := names.get(side.policy.digest):
            raise UserError(f"{other} and {name} are the same policy: leave one of them out")
        names[side.policy.digest] = name
    return Sweep(sides, chosen.left_out)


def execute_sweep(sweep: Sweep, options: RunOptions, stop: StopRequest) -> int:
    """Find seeds, run what remains of every policy, report. Returns the exit code."""
    from evalkit.plan.seed_files import SeedFiles, local_folder
    from evalkit.pool.seed_work import read_lists

    for line in sweep.left_out:
        print(f"left out: {line}", file=sys.stderr)
    first = sweep.sides[0]
    fingerprint = first.backend.fingerprint()
    needs = first.seed_needs()
    known = read_lists(needs, SeedFiles(local_folder(), fingerprint.physics_digest))
    session = _SweepSession(sweep, fingerprint, options, stop)
    if len(known) == len(needs):
        session.open(known)
    progress = SweepProgress(options.workers)
    with progress:
        finished = session.work(progress, servers_at_once(sweep.sides, options))
    if not finished:
        return EXIT_RESUMABLE
    return _report(session.folder, session.runs, session.failures, options, progress.notices)


class _SweepSession:
    """One session on a sweep: what it opened, and what went wrong."""

    def __init__(self, sweep: Sweep, fingerprint: BackendFingerprint, options: RunOptions, stop: StopRequest) -> None:
        self._sweep, self._fingerprint, self._options, self._stop = sweep, fingerprint, options, stop
        self.folder = Path()
        self.runs: tuple[Run, ...] = ()
        self.failures: dict[str, str] = {}
        """Run id -> why it ended early."""

    def open(self, seeds: SeedLists) -> None:
        self.folder, self.runs = self._sweep.open(self._fingerprint, seeds)

    def work(self, progress: SweepProgress, at_once: int) -> bool:
        """Group after group; False if told to stop before the end."""
        sides = list(self._sweep.sides)
        if self.runs:
            progress.begin(self.runs)
            left = {run.info.policy.digest for run in self.runs if self._remaining(run)}
            sides = [side for side in sides if side.policy.digest in left]
        groups = [sides[start : start + at_once] for start in range(0, len(sides), at_once)]
        for number, group in enumerate(groups, start=1):
            if len(groups) > 1:
                progress.say(f"group {number} of {len(groups)}: {len(group)} policies at once")
            session = self._work_on(group, progress)
            if session is None or session.interrupted:
                return False
        if groups:
            progress.say(progress.line())
        return True

    def _work_on(self, group: Sequence[RunSetup], progress: SweepProgress) -> Session | None:
        """Start the pool for a group; complete the seed lists if there are no runs yet; run its trials."""
        from evalkit.cli.run_crew import open_crew, record_notices
        from evalkit.cli.seeds import find_missing_seeds
        from evalkit.pool.drive import work_through
        from evalkit.pool.lockstep import LockstepWork
        from evalkit.pool.scheduler import GRACE_S

        first = group[0]
        alone = any(side.spec.one_at_a_time for side in group)
        most = self._options.policy_copies if alone else self._trials_left(group)
        options = replace(self._options, workers=min(self._options.workers, most))
        names = ", ".join(_title(side) for side in group)
        progress.say(f"starting {options.workers} workers and policies {names} on {first.maker.device}")
        failed: dict[str, str] = {}
        makers = {side.policy.digest: side.maker for side in group}
        mine: list[Run] = []
        crew: RayCrew | None = None
        try:
            with open_crew(
                first.backend, makers, options, self._stop, progress, one_at_a_time=alone, failed=failed
            ) as crew:
                if not self.runs:
                    seeds = find_missing_seeds(crew, first.seed_needs(), self._fingerprint, progress, self._stop)
                    if seeds is None:
                        return None
                    self.open(seeds)
                    progress.begin(self.runs)
                for run in self.runs:
                    if reason := failed.get(run.info.policy.digest):
                        self.failures[run.info.run_id] = reason
                        progress.say(f"{run.info.run_id}: {reason}")
                mine = [run for run in self.runs if run.info.policy.digest in makers.keys() - failed.keys()]
                for run in mine:
                    run.lock()
                work = LockstepWork(
                    mine,
                    self._order(mine),
                    first.config_map,
                    progress,
                    together=False,
                    video=options.video,
                    trial_limit_s=options.trial_limit,
                )
                session = work_through(crew, work, progress, stop=self._stop, grace_s=GRACE_S)
                for run in mine:
                    policy = run.info.policy.digest
                    if reason := work.stop_reasons.get(policy) or failed.get(policy):
                        self.failures[run.info.run_id] = reason
                return session
        finally:
            record_notices(crew, mine)
            for run in mine:
                run.close()

    def _order(self, runs: Sequence[Run]) -> list[TrialSpec]:
        """Trials to run, scene by scene."""
        wanted = {spec.key for run in runs for spec in self._remaining(run)}
        return [spec for scene in scenes_in_turn([run.plan for run in runs]) for spec in scene if spec.key in wanted]

    def _remaining(self, run: Run) -> list[TrialSpec]:
        return run.remaining(retry_errors=self._options.retry_errors)

    def _trials_left(self, group: Sequence[RunSetup]) -> int:
        if self.runs:
            policies = {side.policy.digest for side in group}
            return sum(len(self._remaining(run)) for run in self.runs if run.info.policy.digest in policies)
        request = group[0].request
        return len(group) * len(group[0].seed_needs()) * request.trials * request.repeats


def _title(side: RunSetup) -> str:
    return f"{side.policy.adapter} {side.policy.step}" if side.policy.step is not None else side.policy.adapter


def _report(
    folder: Path, runs: Sequence[Run], failures: dict[str, str], options: RunOptions, notices: Sequence[str]
) -> int:
    from rich.console import Console

    from evalkit.aggregate.summary import summarise
    from evalkit.cli.run_crew import repeat_notices
    from evalkit.report.export import write_exports
    from evalkit.report.html import write_page
    from evalkit.report.sweep import render_sweep
    from evalkit.report.sweep_files import write_sweep_files

    info = replace(read_sweep(folder), failures=failures)
    write_sweep(folder, info)
    for run in runs:
        write_exports(run, summarise(run))
        write_page(run)
        if not run.remaining() and not run.is_done:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            run.mark_done({"finished_at": now, "trials": len(run.plan)})
    scores, paths = write_sweep_files(folder, info, runs)
    errors = Console(stderr=True, highlight=False)
    if options.as_json:
        print(paths[0].read_text(), end="")
    else:
        Console(highlight=False).print(render_sweep(scores, info))
    repeat_notices(notices)
    for run_id, reason in failures.items():
        errors.print(f"{run_id} ended early: {reason}", markup=False, soft_wrap=True)
    if failures:
        errors.print("the same command tries again what is missing", markup=False)
    names = ", ".join(path.name for path in paths)
    errors.print(f"results: {folder} ({names}); the runs: {runs[0].folder.parent}", markup=False, soft_wrap=True)
    return EXIT_INCOMPLETE if scores.incomplete else 0
