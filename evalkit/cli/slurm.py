"""``evalkit slurm``: writes a batch file that runs ``evalkit run`` on the nodes of a Slurm job, again until done."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from evalkit.core.errors import UserError

WARN_S = 120
"""Slurm sends its signal up to a minute early, and never late."""
STOP_GRACE_S = 60
"""Before the time limit there is time; a preemption ends the nodes whatever the driver would like."""
MOST_REQUEUES = 50
_TIME = re.compile(r"\d+|\d+:\d\d(:\d\d)?|\d+-\d+(:\d\d){0,2}")
_OURS = ("--ray-address", "--ray-nodes", "--stop-grace")


@dataclass(frozen=True, kw_only=True)
class SlurmJob:
    """What goes into the file."""

    arguments: Sequence[str]
    """Of ``evalkit run``."""
    nodes: int = 1
    cpus: int = 8
    gpus: int = 0
    time: str = "08:00:00"
    partition: str | None = None
    account: str | None = None
    name: str = "evalkit"
    sbatch: Sequence[str] = ()
    """More options of sbatch, such as ``--mem=64G``."""
    setup: Sequence[str] = ()
    """Shell lines run before anything else."""
    within: str = ""
    """Command that starts a program in a container."""
    warn_s: int = WARN_S
    bin_folder: Path | None = field(default_factory=lambda: Path(sys.executable).parent)
    """Where ``evalkit`` and ``ray`` are; None: wherever the setup lines put them."""


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("slurm")(slurm_command)


def slurm_command(
    arguments: Annotated[list[str], typer.Argument(metavar="-- ARGUMENTS", help="Options of evalkit run.")],
    nodes: Annotated[int, typer.Option(min=1, help="Nodes; one Ray node on each.")] = 1,
    cpus: Annotated[int, typer.Option(min=2, help="CPU cores on each node.")] = 8,
    gpus: Annotated[int, typer.Option(min=0, help="GPUs on each node.")] = 0,
    time: Annotated[str, typer.Option(help="Time limit of one go, as sbatch reads it.")] = "08:00:00",
    partition: Annotated[str | None, typer.Option(help="Partition.")] = None,
    account: Annotated[str | None, typer.Option(help="Account to charge.")] = None,
    name: Annotated[str, typer.Option(help="The job's name; its log is NAME-JOBID.log.")] = "evalkit",
    sbatch: Annotated[
        list[str] | None, typer.Option(metavar="OPTION", help="One more option of sbatch, e.g. --mem=64G. Repeatable.")
    ] = None,
    setup: Annotated[
        list[str] | None,
        typer.Option(metavar="LINE", help="Shell line to run first, e.g. 'conda activate evalkit'. Repeatable."),
    ] = None,
    within: Annotated[
        str, typer.Option(metavar="COMMAND", help="Start Ray and evalkit with it: 'apptainer exec --nv evalkit.sif'.")
    ] = "",
    warn: Annotated[int, typer.Option(min=10, help="Seconds before the time limit at which to stop.")] = WARN_S,
    out: Annotated[Path | None, typer.Option(help="File to write; standard output if left out.")] = None,
) -> None:
    """Write a batch file for Slurm: Ray on all nodes of a job, evalkit run on the first.

    The job stops in good order before its time limit and queues again, as it does after a preemption, until the run is
    done. Give the options of evalkit run after --.

    Example: evalkit slurm --nodes 4 --cpus 16 --gpus 1 --time 04:00:00 --out eval.sbatch -- --ckpt step_30000
    """
    job = SlurmJob(
        arguments=arguments,
        nodes=nodes,
        cpus=cpus,
        gpus=gpus,
        time=time,
        partition=partition,
        account=account,
        name=name,
        sbatch=sbatch or (),
        setup=setup or (),
        within=within,
        warn_s=warn,
    )
    text = batch_file(job if not (setup or within) else _without_our_programs(job))
    if out is None:
        print(text, end="")
        return
    try:
        out.write_text(text)
    except OSError as error:
        raise UserError(f"--out {out} can't be written: {error.strerror}") from error
    print(f"{out} is written; submit it with: sbatch {shlex.quote(str(out))}", file=sys.stderr)


def _without_our_programs(job: SlurmJob) -> SlurmJob:
    from dataclasses import replace

    return replace(job, bin_folder=None)


def batch_file(job: SlurmJob) -> str:
    """The file's text.

    Raises:
        UserError: an option can't be right.
    """
    _check(job)
    options = [
        f"job-name={job.name}",
        f"nodes={job.nodes}",
        "ntasks-per-node=1",
        f"cpus-per-task={job.cpus}",
        *([f"gpus-per-node={job.gpus}"] if job.gpus else []),
        *([f"partition={job.partition}"] if job.partition else []),
        *([f"account={job.account}"] if job.account else []),
        "# The time of one go: the job stops in good order before it, queues again, and writes on to the same log.",
        f"time={job.time}",
        f"signal=B:USR1@{job.warn_s}",
        "requeue",
        "open-mode=append",
        f"output={job.name}-%j.log",
        "# The loss of a node ends that node's trials, not the job.",
        "no-kill",
    ]
    header = [option if option.startswith("#") else f"#SBATCH --{option}" for option in options]
    header += [f"#SBATCH {option}" for option in job.sbatch]
    setup = list(job.setup) or ["# --setup puts lines here: module load, conda activate"]
    if job.bin_folder is not None:
        setup.append(f"export PATH={shlex.quote(str(job.bin_folder))}:$PATH")
    return _TEMPLATE.format(
        header="\n".join(header),
        setup="\n".join(setup),
        within=f"({job.within})",
        arguments=shlex.join(job.arguments),
        grace=min(STOP_GRACE_S, job.warn_s // 2),
        most=MOST_REQUEUES,
    )


def _check(job: SlurmJob) -> None:
    given = {argument.split("=")[0] for argument in job.arguments}
    if taken := [name for name in _OURS if name in given]:
        raise UserError(f"{taken[0]} is the batch file's own: leave it out of the options of evalkit run")
    if job.arguments and not job.arguments[0].startswith("-"):
        raise UserError(f"after -- come the options of evalkit run, and {job.arguments[0]} is none: start with --ckpt")
    if not _TIME.fullmatch(job.time):
        raise UserError(f"--time {job.time}: give minutes, HH:MM:SS or DAYS-HH:MM:SS, as sbatch reads it")
    if bad := [option for option in job.sbatch if not option.startswith("-")]:
        raise UserError(f"--sbatch {bad[0]}: give an option of sbatch with its dashes, e.g. --sbatch=--mem=64G")
    for what in (job.name, job.partition or "", job.account or ""):
        if re.search(r"\s", what):
            raise UserError(f"{what!r} has a blank in it: Slurm's names have none")


_TEMPLATE = r"""#!/bin/bash
# Written by evalkit slurm. Submit it with sbatch; submitting it again, or letting it queue again, goes on with the run.
{header}

{setup}
export RAY_USAGE_STATS_ENABLED=0 RAY_ENABLE_UV_RUN_RUNTIME_ENV=0 RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO=0
# A key of this job's own: other users of the nodes can't talk to its Ray, and no shared home folder is needed.
RAY_AUTH_TOKEN=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN
within={within}

# Jobs may share a node: ports come from the job's number. Ray's sockets need a short path, which TMPDIR often isn't.
port=$((20000 + SLURM_JOB_ID % 1000 * 10))
folder=/tmp/evalkit-$SLURM_JOB_ID
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=${{nodes[0]}}  # where this script runs

driver='' stopping='' preempted=''
stop() {{ stopping=1; [[ -z $driver ]] || kill -USR1 "$driver" 2>/dev/null; }}
trap stop USR1
trap 'preempted=1; stop' TERM

rays=()
start_ray() {{  # NODE OPTIONS...: a Ray node in a job step of its own, so that one can be lost without the others
    srun --nodes=1 --ntasks=1 --nodelist="$1" --cpus-per-task="$SLURM_CPUS_PER_TASK" \
        "${{within[@]}}" ray start --block --num-cpus="$SLURM_CPUS_PER_TASK" --temp-dir="$folder" \
        --min-worker-port=0 --max-worker-port=0 --disable-usage-stats "${{@:2}}" &
    rays+=($!)
}}
start_ray "$head" --head --port="$port" --dashboard-agent-listen-port=$((port + 1)) --include-dashboard=false
for number in "${{!nodes[@]}}"; do
    ((number == 0)) || start_ray "${{nodes[number]}}" --address="$head:$port" \
        --dashboard-agent-listen-port=$((port + 2 + number % 8))
done

"${{within[@]}}" evalkit run --ray-address "$head:$port" --ray-nodes "${{#nodes[@]}}" --stop-grace {grace} \
    {arguments} &
driver=$!
[[ -z $stopping ]] || stop  # it was told before there was anybody to tell
wait "$driver"
while kill -0 "$driver" 2>/dev/null; do wait "$driver"; done  # a trapped signal ends wait early
wait "$driver"
code=$?
# A driver that is told before it listens, in its first second, dies of that: it had begun nothing, and all is to do.
[[ -z $stopping ]] || ((code != 128 + $(kill -l USR1))) || code=75

kill "${{rays[@]}}" 2>/dev/null
for _ in {{1..20}}; do kill -0 "${{rays[@]}}" 2>/dev/null || break; sleep 0.5; done  # Ray writes until it ends
for node in "${{nodes[@]}}"; do
    timeout 20 srun --nodes=1 --ntasks=1 --nodelist="$node" --overlap rm -rf "$folder"
done
# 75: stopped, and there is more to do. Only a running job queues again by itself, not one that somebody cancelled.
if ((code == 75)) && [[ $(squeue -h -j "$SLURM_JOB_ID" -o %T) == RUNNING ]]; then
    if ((${{SLURM_RESTART_COUNT:-0}} < {most})); then
        scontrol requeue "$SLURM_JOB_ID"
    else
        echo "stopped {most} times and not done: submit this file again to go on" >&2
    fi
fi
# A preempted job that ends by itself counts as failed; one that Slurm has to end counts as preempted, and queues again.
[[ -z $preempted ]] || sleep 120
exit "$code"
"""
