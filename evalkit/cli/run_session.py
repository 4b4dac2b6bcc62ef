"""A session of ``evalkit run`` on one run: complete its seed lists, run what remains, report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from evalkit.aggregate.scores import Summary
    from evalkit.cli.progress import RunProgress
    from evalkit.cli.run_options import RunOptions
    from evalkit.cli.run_setup import RunSetup
    from evalkit.cli.stopping import StopRequest
    from evalkit.core.trial import BackendFingerprint
    from evalkit.pool.drive import SeedLists, Session
    from evalkit.pool.ray_crew import RayCrew
    from evalkit.store.run import Run

EXIT_INCOMPLETE = 1


def execute(setup: RunSetup, options: RunOptions, stop: StopRequest) -> int:
    """Find seeds, run what remains, report. Returns the exit code."""
    from evalkit.cli.progress import RunProgress
    from evalkit.cli.stopping import EXIT_RESUMABLE
    from evalkit.plan.seed_files import SeedFiles, local_folder
    from evalkit.pool.seed_work import read_lists

    fingerprint = setup.backend.fingerprint()
    files = SeedFiles(local_folder(), fingerprint.physics_digest)
    known = read_lists(setup.seed_needs(), files)
    complete = len(known) == len(setup.seed_needs())
    run = _open(_placed(setup, options), fingerprint, known) if complete else None
    session, notices = None, []
    left = len(run.remaining(retry_errors=options.retry_errors)) if run else _planned(setup)
    if left > 0:
        options = replace(
            options, workers=min(options.workers, left, options.policy_copies if setup.spec.one_at_a_time else left)
        )
        with RunProgress(options.workers) as progress:
            run, session = _work(setup, fingerprint, run, options, progress, stop)
        notices = progress.notices
    if run is None or (session is not None and session.interrupted):
        return EXIT_RESUMABLE
    return _report(run, session, options, notices)


def _planned(setup: RunSetup) -> int:
    return len(setup.seed_needs()) * setup.request.trials * setup.request.repeats


def _open(setup: RunSetup, fingerprint: BackendFingerprint, seeds: SeedLists) -> Run:
    from evalkit.cli.run_setup import RUNS_FOLDER
    from evalkit.store.run import Run

    info = setup.info(fingerprint, seeds)
    return Run.create(setup.request.out or RUNS_FOLDER / info.run_id, info, setup.plan(fingerprint, seeds))


def _placed(setup: RunSetup, options: RunOptions) -> RunSetup:
    """The setup, with where its servers and simulators go among the circumstances. A cluster decides that later."""
    from evalkit.cli.run_placement import make_plan

    if options.ray_address is not None:
        where = [f"Ray cluster at {options.ray_address}"]
    else:
        alone = setup.spec.one_at_a_time
        workers = min(options.workers, _planned(setup))
        where = make_plan(options, workers, 1, None, one_at_a_time=alone).describe()
    circumstances = {**setup.backend.circumstances, "placement": where}
    return replace(setup, backend=replace(setup.backend, circumstances=circumstances))


def _work(
    setup: RunSetup,
    fingerprint: BackendFingerprint,
    run: Run | None,
    options: RunOptions,
    progress: RunProgress,
    stop: StopRequest,
) -> tuple[Run | None, Session | None]:
    """Start the pool; complete the seed lists if there is no run yet; run the trials that remain."""
    from evalkit.cli.run_crew import open_crew, record_notices
    from evalkit.cli.seeds import find_missing_seeds
    from evalkit.pool.drive import run_trials

    progress.say(f"starting {options.workers} workers and policy {setup.spec.name} on {setup.maker.device}")
    if run is not None:
        run.lock()
    crew: RayCrew | None = None
    try:
        with open_crew(
            setup.backend,
            {setup.policy.digest: setup.maker},
            options,
            stop,
            progress,
            one_at_a_time=setup.spec.one_at_a_time,
        ) as crew:
            if run is None:
                seeds = find_missing_seeds(crew, setup.seed_needs(), fingerprint, progress, stop)
                if seeds is None:
                    return None, None
                run = _open(_placed(setup, options), fingerprint, seeds)
                run.lock()
            progress.begin_trials(run)
            remaining = run.remaining(retry_errors=options.retry_errors)
            session = run_trials(
                crew,
                run,
                remaining,
                setup.config_map,
                progress,
                video=options.video,
                task_order=options.task_order,
                trial_limit_s=options.trial_limit,
                stop=stop,
            )
            progress.say(progress.line())
    finally:
        if run is not None:
            record_notices(crew, [run])
            run.close()
    return run, session


def _report(run: Run, session: Session | None, options: RunOptions, notices: Sequence[str]) -> int:
    from datetime import UTC, datetime

    from rich.console import Console

    from evalkit.aggregate.summary import summarise
    from evalkit.cli.run_crew import repeat_notices
    from evalkit.report.export import write_exports
    from evalkit.report.html import write_page
    from evalkit.report.remarks import remarks
    from evalkit.report.table import render

    summary = summarise(run)
    paths = [*write_exports(run, summary), write_page(run)]
    errors = Console(stderr=True, highlight=False)
    if options.as_json:
        print(paths[0].read_text(), end="")
    else:
        Console().print(render(summary))
    _print_costs(summary, session, errors)
    repeat_notices(notices)
    for remark in remarks(list(run.records().values())):
        errors.print(f"worth a look: {remark}", markup=False, soft_wrap=True)
    if session is not None and session.stop_reason:
        errors.print(f"stopped early: {session.stop_reason}", markup=False)
    if not run.remaining():
        run.mark_done({"finished_at": datetime.now(UTC).isoformat(timespec="seconds"), "trials": len(run.plan)})
    names = ", ".join(path.name for path in paths)
    errors.print(f"results: {run.folder} ({names})", markup=False, soft_wrap=True)
    return EXIT_INCOMPLETE if summary.status == "incomplete" else 0


def _print_costs(summary: Summary, session: Session | None, console: Console) -> None:
    if summary.timing is not None:
        phases = ", ".join(f"{phase} {ms:.0f}" for phase, ms in summary.timing.median_ms.items() if ms >= 0.5)
        console.print(f"median ms per trial: {phases}", markup=False, soft_wrap=True)
    if session is not None and session.efficiency is not None:
        console.print(
            f"this session: {session.wall_s:.0f} s with {session.workers} workers, pool efficiency "
            f"{session.efficiency:.2f} (time in simulators / workers x wall)",
            markup=False,
            soft_wrap=True,
        )
