"""``evalkit run``: one policy, some tasks, some configurations; from the command line to the table."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import typer

from evalkit.cli import run_options as given
from evalkit.cli.robotwin_choice import RoboTwinChoice, RobotwinPython, RobotwinRoot
from evalkit.cli.stopping import EXIT_RESUMABLE, STOP_GRACE_S, StopRequest


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("run")(run_command)


def run_command(
    # The order here is the order of --help. How to add one: evalkit/cli/run_options.py.
    ckpt: given.Ckpt = None,
    policy: given.Policy = None,
    mode: given.Mode = "all",
    tasks: given.Tasks = None,
    trials: given.Trials = None,
    repeats: given.Repeats = 1,
    execute_steps: given.ExecuteSteps = None,
    policy_python: given.PolicyPython = None,
    out: given.Out = None,
    video: given.Video = False,
    as_json: given.AsJson = False,
    retry_errors: given.RetryErrors = False,
    workers: given.Workers = None,
    gpus: given.Gpus = None,
    order: given.Order = "longest",
    servers_per_gpu: given.ServersPerGpu = 1,
    policy_copies: given.PolicyCopies = 1,
    max_batch: given.MaxBatch = None,
    every: given.Every = None,
    until_decided: given.UntilDecided = None,
    servers_at_once: given.ServersAtOnce = None,
    protocol: given.Protocol = "leaderboard",
    seed_base: given.SeedBase = 0,
    bug_compatible: given.BugCompatible = False,
    robotwin_root: RobotwinRoot = None,
    robotwin_python: RobotwinPython = None,
    savings: given.Savings = "all",
    backend: given.BackendName = "robotwin",
    trial_limit: given.TrialLimit = None,
    stop_grace: given.StopGrace = STOP_GRACE_S,
    worker_memory: given.WorkerMemory = None,
    policy_memory: given.PolicyMemory = None,
    ray_address: given.RayAddress = None,
    ray_nodes: given.RayNodes = None,
) -> None:
    """Evaluate a policy on RoboTwin's tasks and print the scores.

    The same command line goes on with a run that was killed, at any moment; other settings are another run.

    TERM, Ctrl-C, USR1 and HUP end it in good order: nothing new starts, trials in flight have --stop-grace seconds.
    The second signal ends it at once.

    Exit codes: 0 done, 1 incomplete or failed, 2 bad input, 75 interrupted and resumable.

    Example: evalkit run --ckpt step_30000 --mode all --tasks click_bell,grab_roller --trials 20

    Example: evalkit run --ckpt step_30000 --mode all --robotwin-root ~/RoboTwin --robotwin-python conda:RoboTwin

    Example: evalkit run --ckpt step_30000 --protocol x-vla --mode c2c --trials 10

    Example: evalkit run --ckpt 'runs/mine/step_*' --every 10000 --mode c2c --trials 20

    Example: evalkit run --until-decided step_20000 step_30000 --mode c2c --trials 100
    """
    from evalkit.cli.protocol_choice import refuse_several, trials_of
    from evalkit.cli.run_cluster import joined, leave_at_once
    from evalkit.cli.run_setup import RunRequest, prepare
    from evalkit.policy.selection import names_several

    stop = StopRequest(stop_grace)
    stop.install()
    request = RunRequest(  # what can change an outcome
        checkpoint=ckpt,
        policy=policy,
        mode=mode,
        tasks=tasks,
        trials=trials_of(protocol, trials),
        protocol=protocol,
        bug_compatible=bug_compatible,
        repeats=repeats,
        execute_steps=execute_steps,
        seed_base=seed_base,
        backend=backend,
        out=out,
        policy_python=policy_python,
        on_cpu=given.no_gpus(gpus),
        robotwin=RoboTwinChoice(root=robotwin_root, python=robotwin_python),
        savings=savings,
    )
    options = given.RunOptions(  # what can't
        workers=workers or os.cpu_count() or 1,
        workers_given=workers is not None,
        video=video,
        as_json=as_json,
        retry_errors=retry_errors,
        ray_address=ray_address,
        task_order=_task_order(order, tasks),
        gpus=gpus,
        servers_per_gpu=servers_per_gpu,
        policy_copies=policy_copies,
        max_batch=max_batch,
        worker_memory=worker_memory,
        policy_memory=policy_memory,
        servers_at_once=servers_at_once,
        trial_limit=trial_limit,
    )
    if until_decided is not None or every is not None or names_several(ckpt) or names_several(policy):
        refuse_several(request)
    work: Callable[[given.RunOptions, StopRequest], int]
    if until_decided is not None:
        from evalkit.cli.until_decided import execute_duel, prepare_duel

        work = partial(execute_duel, prepare_duel(until_decided, request, order=order))
    elif every is not None or names_several(ckpt) or names_several(policy):
        from evalkit.cli.sweep import execute_sweep, prepare_sweep

        work = partial(execute_sweep, prepare_sweep(request, every=every, order=order))
    else:
        from evalkit.cli.run_session import execute

        work = partial(execute, prepare(request))
    try:
        with joined(ray_address, ray_nodes, stop) as most_workers:
            code = work(options if workers else replace(options, workers=most_workers), stop)
    except BaseException:
        if stop.reason is None:
            raise
        code = EXIT_RESUMABLE  # whatever was raised, it came of that
    if stop.reason is not None:
        print(f"stopped: {stop.reason}", file=sys.stderr)
    if code == EXIT_RESUMABLE:
        print("interrupted; the same command goes on where this one stopped", file=sys.stderr)
    if stop.reason is not None:
        leave_at_once(code)
    raise typer.Exit(code)


def _task_order(order: str, tasks: str | None) -> tuple[str, ...]:
    from evalkit.core.errors import UnknownNameError, UserError

    if order not in ("longest", "given"):
        raise UnknownNameError("--order", order, ("longest", "given"))
    if order == "longest":
        return ()
    if tasks is None:
        raise UserError("--order given needs --tasks, which gives the order")
    return tuple(name.strip() for name in tasks.split(",") if name.strip())
