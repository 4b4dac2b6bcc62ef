"""The options of ``evalkit run``: their types and help texts, and those that only say how to run.

A new option takes three places:

1. its type here, in the group it belongs to;
2. a parameter in ``evalkit.cli.run.run_command``, one line;
3. what it means: a field of ``RunOptions`` below if it changes nothing but how the trials are run (workers, devices,
   limits), with a default that means "as before"; a field of ``evalkit.cli.run_setup.RunRequest`` if it can change an
   outcome, for then it is part of the run's identity.

``RunOptions`` is handed down as it is to everything that starts a crew: no signature on the way changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

# What to run: another value is another run.

Ckpt = Annotated[
    str | None,
    typer.Option(help="Checkpoint: a folder, or a name such as step_30000. Several: a,b,c or 'runs/x/step_*'."),
]
Every = Annotated[
    int | None, typer.Option(min=1, help="Of several checkpoints (or a run's folder): every so many steps.")
]
Policy = Annotated[
    str | None, typer.Option(help="Policy without weights: noop, replay; or a policy file. Several: a.yaml,b.yaml.")
]
Mode = Annotated[str, typer.Option(help="c2c: demo_clean. c2r: demo_randomized. all: both.")]
Tasks = Annotated[str | None, typer.Option(help="Comma-separated; all the installed assets can build.")]
Trials = Annotated[
    int | None, typer.Option(min=1, help="Accepted seeds per task and configuration; the protocol's (100).")
]
Protocol = Annotated[
    str, typer.Option(help="Whose evaluation to repeat: seeds, sentences, limits, errors. evalkit protocol list.")
]
BugCompatible = Annotated[
    bool,
    typer.Option(
        "--bug-compatible",
        help="RoboTwin's own order: one process per task, in which earlier scenes leave their traces. For parity.",
    ),
]
Repeats = Annotated[int, typer.Option(min=1, help="Trials of each scene, with other policy randomness.")]
ExecuteSteps = Annotated[int | None, typer.Option(help="Actions executed of each chunk.")]
SeedBase = Annotated[int, typer.Option(help="Candidate seeds run upward from 100000 * (1 + this).")]
BackendName = Annotated[str, typer.Option(help="robotwin; or fake, for testing the harness itself.")]
UntilDecided = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--until-decided",
        metavar="A B",
        help="Two checkpoints (or policies without weights) on the same scenes, until it is clear which is better "
        "or --trials per task are used up. A choice, not a score.",
    ),
]

# Where and how to run it: circumstances.

Out = Annotated[Path | None, typer.Option(help="The run's folder; results/runs/<run id> if left out.")]
Order = Annotated[str, typer.Option(help="longest: long tasks first. given: as listed in --tasks.")]
RetryErrors = Annotated[bool, typer.Option("--retry-errors", help="Try missing trials of the run again.")]
Video = Annotated[bool, typer.Option("--video", help="Write an mp4 of each trial into the run's folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON on standard output.")]
PolicyPython = Annotated[str | None, typer.Option(help="The policy's own interpreter or environment.")]

Savings = Annotated[
    str,
    typer.Option(
        metavar="all|none|NAME,NAME",
        help="Work of RoboTwin's loop to leave out; changes no result (evalkit robotwin savings).",
    ),
]

# Workers, devices, policy servers.

Workers = Annotated[int | None, typer.Option(min=1, help="Simulators; one per CPU core if left out.")]
RayAddress = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT|auto", help="A running Ray cluster: its head, or the one this machine is part of."),
]
RayNodes = Annotated[
    int | None, typer.Option(min=1, help="With --ray-address: wait until the cluster has so many nodes.")
]
StopGrace = Annotated[
    float, typer.Option(min=0, metavar="SECONDS", help="When told to stop, how long trials in flight may take to end.")
]
Gpus = Annotated[
    str | None,
    typer.Option(
        metavar="all|N|LIST",
        help="GPUs to use: all, so many, or a list of UUIDs or nvidia-smi's numbers (0,1 or 0,); 0: none. All of one "
        "kind if left out.",
    ),
]
ServersPerGpu = Annotated[int, typer.Option(min=1, help="Policy servers on each GPU.")]
PolicyCopies = Annotated[
    int, typer.Option(min=1, help="For a policy that can't tell episodes apart: copies, each with a worker of its own.")
]
MaxBatch = Annotated[int | None, typer.Option(min=1, help="Most observations in one call of the policy.")]
WorkerMemory = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="A simulator that holds more after a trial is replaced, e.g. 6GiB."),
]
PolicyMemory = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="A policy's own process that holds more is replaced; 80 % of the memory."),
]
TrialLimit = Annotated[
    float | None,
    typer.Option(
        min=1,
        metavar="SECONDS",
        help="Wall time after which a trial is killed, for policies that think long; 300 plus 3 for each action of the "
        "task's limit if left out.",
    ),
]
ServersAtOnce = Annotated[
    int | None, typer.Option(min=1, help="Of several checkpoints, how many are loaded together; as many as fit.")
]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How to run, as opposed to what: nothing here makes it another run.

    Add a field with a default; read it where the crew is made (``evalkit.cli.run_crew``) or the work is (``run_trials``
    in ``evalkit.cli.run_session``, ``LockstepWork`` in ``evalkit.cli.until_decided`` and ``evalkit.cli.sweep``).
    """

    workers: int
    workers_given: bool = True
    """Whether somebody asked for so many; otherwise fewer will do where nodes can't be used."""
    video: bool = False
    as_json: bool = False
    retry_errors: bool = False
    ray_address: str | None = None
    task_order: tuple[str, ...] = ()
    """Tasks in the order to start them; empty: longest first."""
    gpus: str | None = None
    """Which GPUs (``evalkit.pool.placement.choose_devices``)."""
    servers_per_gpu: int = 1
    policy_copies: int = 1
    """Servers of a policy that can't tell episodes apart."""
    max_batch: int | None = None
    worker_memory: str | None = None
    policy_memory: str | None = None
    servers_at_once: int | None = None
    """Policies of a sweep that are loaded together; None: as many as fit into memory."""
    trial_limit: float | None = None
    """Wall limit of a trial in seconds; None: it follows from the task's horizon."""
