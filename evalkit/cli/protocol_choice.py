"""``evalkit run --protocol``: what a protocol asks of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalkit.core.errors import UserError
from evalkit.protocol.modes import MODES, configs_of
from evalkit.protocol.protocols import Protocol, load_protocol

if TYPE_CHECKING:
    from evalkit.cli.run_setup import RunRequest


def trials_of(protocol: str, trials: int | None) -> int:
    """Accepted seeds of each task and configuration: as given, or the protocol's.

    Raises:
        UnknownNameError: no such protocol.
        UserError: the protocol leaves the number to each run, and none is given.
    """
    found = load_protocol(protocol)
    if trials is not None:
        return trials
    if found.trials_per_task is None:
        raise UserError(f"protocol {protocol} leaves trials_per_task to each run: give --trials")
    return found.trials_per_task


def check_request(request: RunRequest, protocol: Protocol) -> None:
    """Pass if the protocol can be followed with these options.

    Raises:
        UserError: it has no such configuration or seed base, or its rules exclude ``--bug-compatible``.
    """
    rules = protocol.rules
    rules.first_candidate(request.seed_base)
    known = tuple(protocol.configs.values())
    for config in configs_of(request.mode):
        if config not in known:
            fitting = " or ".join(mode for mode, configs in MODES.items() if set(configs) <= set(known))
            raise UserError(
                f"--mode is {request.mode}; protocol {protocol.name} has no {config}: give --mode {fitting}"
            )
    if not request.bug_compatible:
        return
    if rules.accepted != "expert_in_order":
        raise UserError(
            f"--bug-compatible repeats RoboTwin's own loop, which has an expert's check; protocol {protocol.name} has "
            f"accepted_seeds: {rules.accepted}: leave one of them out"
        )
    if request.repeats != 1:
        raise UserError(f"--bug-compatible repeats RoboTwin's own loop, which has no --repeats {request.repeats}")


def refuse_several(request: RunRequest) -> None:
    """Pass if several policies can take turns under these rules.

    Raises:
        UserError: a task belongs to one process, or ends with its first error.
    """
    if request.bug_compatible:
        raise UserError("--bug-compatible goes through a task with one policy: run several one after the other")
    errors = load_protocol(request.protocol).rules.errors
    if errors in ("stops_task", "stops_run"):
        raise UserError(
            f"protocol {request.protocol} has errors: {errors}, and several policies take turns in a task: run them "
            "one after the other"
        )


def refuse_left_out(tasks: tuple[str, ...], protocol: Protocol) -> tuple[str, ...]:
    """The tasks, if the protocol has all of them.

    Raises:
        UserError: it leaves one out.
    """
    for task in tasks:
        if task in protocol.rules.without_tasks:
            raise UserError(f"protocol {protocol.name} leaves out {task}: take it out of --tasks")
    return tasks
