"""The options of ``evalkit run``: their types and help texts, and those that only say how to run.

A new option takes three places:

1. its type here, in the group and the panel it belongs to;
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

# The panels of the help page; what is in none of them comes first. Each option is one line at 100 columns.
SEVERAL = "Several checkpoints"
FILES = "Where it goes"
WORKERS = "Workers and devices"
LIMITS = "Limits"
CLUSTER = "Ray cluster"
PROTOCOL = "Protocol"
ROBOTWIN = "RoboTwin"

# What to run: another value is another run.

Ckpt = Annotated[
    str | None,
    typer.Option(metavar="NAME|FOLDER", help="Checkpoint, e.g. step_30000; a,b,c or 'runs/x/step_*'."),
]
Policy = Annotated[
    str | None, typer.Option(metavar="NAME|FILE", help="noop, replay, a policy file, or several: a.yaml,b.yaml.")
]
Mode = Annotated[
    str,
    typer.Option(metavar="c2c|c2r|all", help="demo_clean, demo_randomized, or both (default).", show_default=False),
]
Tasks = Annotated[
    str | None, typer.Option(metavar="NAME,NAME", help="Tasks; if left out, all the installed assets can build.")
]
Trials = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Accepted seeds of each task; the protocol's number (100).")
]
Repeats = Annotated[
    int,
    typer.Option(
        metavar="N", min=1, help="Trials of each scene, with other policy randomness (1).", show_default=False
    ),
]
ExecuteSteps = Annotated[
    int | None, typer.Option(metavar="N", help="Actions executed of each chunk; the policy's own number.")
]
PolicyPython = Annotated[
    str | None, typer.Option(metavar="PYTHON", help="The policy's own interpreter or environment.")
]

Every = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Of the checkpoints, those every N steps.", rich_help_panel=SEVERAL),
]
UntilDecided = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--until-decided",
        metavar="A B",
        help="Two policies, same scenes, until it is clear which is better.",
        rich_help_panel=SEVERAL,
    ),
]
ServersAtOnce = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="How many are loaded together; as many as fit.", rich_help_panel=SEVERAL),
]

Protocol = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Whose evaluation to repeat (leaderboard): evalkit protocol list.",
        show_default=False,
        rich_help_panel=PROTOCOL,
    ),
]
SeedBase = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="Candidate seeds run upward from 100000 * (1 + N) (0).",
        show_default=False,
        rich_help_panel=PROTOCOL,
    ),
]
BugCompatible = Annotated[
    bool,
    typer.Option(
        "--bug-compatible",
        help="RoboTwin's own order, with traces of earlier scenes.",
        rich_help_panel=PROTOCOL,
    ),
]
BackendName = Annotated[
    str,
    typer.Option(
        metavar="robotwin|fake",
        help="fake is for testing the harness itself.",
        show_default=False,
        rich_help_panel=ROBOTWIN,
    ),
]

# How to run it: circumstances.

Out = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="The run's folder; results/runs/<run id> if left out.", rich_help_panel=FILES),
]
RetryErrors = Annotated[
    bool, typer.Option("--retry-errors", help="Try missing trials of the run again.", rich_help_panel=FILES)
]
Video = Annotated[
    bool, typer.Option("--video", help="Write an mp4 of each trial into the run's folder.", rich_help_panel=FILES)
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the summary as JSON on standard output.", rich_help_panel=FILES)
]

Workers = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Simulators; one per CPU core if left out.", rich_help_panel=WORKERS),
]
Gpus = Annotated[
    str | None,
    typer.Option(
        metavar="all|N|LIST",
        help="How many, or which: numbers or UUIDs, 0,1 (one: 0,).",
        rich_help_panel=WORKERS,
    ),
]
Order = Annotated[
    str,
    typer.Option(
        metavar="longest|given",
        help="Long tasks first, or as listed in --tasks.",
        show_default=False,
        rich_help_panel=WORKERS,
    ),
]
ServersPerGpu = Annotated[
    int,
    typer.Option(
        metavar="N", min=1, help="Policy servers on each GPU (1).", show_default=False, rich_help_panel=WORKERS
    ),
]
PolicyCopies = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=1,
        help="Of a policy that can't tell episodes apart (1).",
        show_default=False,
        rich_help_panel=WORKERS,
    ),
]
MaxBatch = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Most observations in one call of the policy.", rich_help_panel=WORKERS),
]

TrialLimit = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        min=1,
        help="A trial is killed after it; 300 and 3 for each action.",
        rich_help_panel=LIMITS,
    ),
]
StopGrace = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0,
        help="For trials in flight when told to stop (15).",
        show_default=False,
        rich_help_panel=LIMITS,
    ),
]
WorkerMemory = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="A simulator that holds more, e.g. 6GiB, is replaced.", rich_help_panel=LIMITS),
]
PolicyMemory = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="The same for a policy's own process (80 % of all).", rich_help_panel=LIMITS),
]

RayAddress = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT|auto", help="A running cluster's head; auto: this machine's.", rich_help_panel=CLUSTER
    ),
]
RayNodes = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Wait until the cluster has so many nodes.", rich_help_panel=CLUSTER),
]

Savings = Annotated[
    str,
    typer.Option(
        metavar="all|none|LIST",
        help="Work to leave out: evalkit robotwin savings (all).",
        show_default=False,
        rich_help_panel=ROBOTWIN,
    ),
]


def no_gpus(gpus: str | None) -> bool:
    """Whether ``--gpus`` says that GPUs are to be left alone."""
    return gpus is not None and gpus.strip() == "0"


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
