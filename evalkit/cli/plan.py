"""``evalkit plan``: what a run would be and cost, before anything starts."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from evalkit.cli import run_options as given
from evalkit.cli.robotwin_choice import RoboTwinChoice, RobotwinPython, RobotwinRoot

if TYPE_CHECKING:
    from evalkit.cli.run_setup import RunSetup
    from evalkit.core.record import TrialRecord
    from evalkit.core.trial import BackendFingerprint
    from evalkit.plan.cost import Cost, Effort, Machine, Portion
    from evalkit.plan.rates import Bench, PolicyRate, SimulatorRate


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("plan")(plan_command)


def plan_command(
    ckpt: given.Ckpt = None,
    policy: given.Policy = None,
    mode: given.Mode = "all",
    tasks: given.Tasks = None,
    trials: given.Trials = None,
    repeats: given.Repeats = 1,
    execute_steps: given.ExecuteSteps = None,
    policy_python: given.PolicyPython = None,
    out: given.Out = None,
    as_json: given.AsJson = False,
    workers: given.Workers = None,
    gpus: given.Gpus = None,
    servers_per_gpu: given.ServersPerGpu = 1,
    policy_copies: given.PolicyCopies = 1,
    protocol: given.Protocol = "leaderboard",
    seed_base: given.SeedBase = 0,
    robotwin_root: RobotwinRoot = None,
    robotwin_python: RobotwinPython = None,
    backend: given.BackendName = "robotwin",
) -> None:
    """Say what evalkit run with the same options would do: trials, what is done, hours, memory, what bounds it.

    Runs no trial. Rates come from trials of this policy in results/runs and from evalkit robotwin bench on this
    machine; without either there are counts, but no hours.

    Example: evalkit plan --ckpt step_30000 --mode all --workers 16 --gpus 2
    """
    from evalkit.cli.protocol_choice import trials_of
    from evalkit.cli.run_setup import RunRequest, prepare
    from evalkit.core.errors import UserError
    from evalkit.policy.selection import names_several

    if several := next((name for name in (ckpt, policy) if names_several(name)), None):
        raise UserError(f"{several} are several policies, and evalkit plan takes one: plan each by itself")
    setup = prepare(
        RunRequest(
            checkpoint=ckpt,
            policy=policy,
            mode=mode,
            tasks=tasks,
            trials=trials_of(protocol, trials),
            protocol=protocol,
            repeats=repeats,
            execute_steps=execute_steps,
            seed_base=seed_base,
            backend=backend,
            out=out,
            policy_python=policy_python,
            on_cpu=given.no_gpus(gpus),
            robotwin=RoboTwinChoice(root=robotwin_root, python=robotwin_python),
        )
    )
    options = given.RunOptions(
        workers=workers or os.cpu_count() or 1, gpus=gpus, servers_per_gpu=servers_per_gpu, policy_copies=policy_copies
    )
    found = preflight(setup, options)
    if as_json:
        print(json.dumps(found.to_json(), indent=1))
    else:
        from rich.console import Console

        from evalkit.cli.plan_text import render

        Console(highlight=False).print(render(found))


@dataclass(frozen=True, kw_only=True)
class Preflight:
    """A run as it would be."""

    policy: str
    backend: BackendFingerprint
    lists: int
    """Seed lists: one per task and configuration."""
    trials: int
    done: int
    seeds_known: int
    candidates: float
    """Candidate seeds whose expert remains to be checked, as expected from the acceptance so far."""
    machine: Machine
    cpus: int
    memory_available: int
    memory_per_worker: int | None
    rates: int
    """(task, configuration) pairs with a rate."""
    sources: tuple[str, ...]
    """Where the rates come from."""
    cost: Cost | None

    @property
    def spans(self) -> dict[str, tuple[Effort, float, str]]:
        """Scenario -> effort, wall time in seconds and what bounds it."""
        from evalkit.plan.cost import wall_s

        if self.cost is None:
            return {}
        scenarios = {"shortest": self.cost.low, "expected": self.cost.expected, "longest": self.cost.high}
        return {name: (effort, *wall_s(effort, self.machine)) for name, effort in scenarios.items() if effort}

    def to_json(self) -> dict[str, Any]:
        """Plain values; times in seconds."""
        from dataclasses import asdict

        values = asdict(self)
        values["backend"] = {**values["backend"], "digest": self.backend.digest}
        if self.cost is not None:
            values["cost"]["borrowed"] = [f"{task}/{config}" for task, config in self.cost.borrowed]
        values["wall"] = {
            name: {
                "wall_s": round(wall_s, 1),
                "bound": bound,
                "worker_s": round(effort.total_s, 1),
                "gpu_s": round(wall_s * self.machine.gpus, 1),
            }
            for name, (effort, wall_s, bound) in self.spans.items()
        }
        return values


def preflight(setup: RunSetup, options: given.RunOptions) -> Preflight:
    """Look at what is there and estimate the rest.

    Args:
        setup: the run.
        options: how it would be run; no cluster.

    Raises:
        UserError: the options name GPUs that aren't there.
    """
    import psutil

    from evalkit.cli.run_placement import make_plan
    from evalkit.plan.cost import Machine, estimate
    from evalkit.plan.rates import policy_rate, read_bench

    fingerprint = setup.backend.fingerprint()
    portions, done, known = _portions(setup, fingerprint)
    records = _records_of(setup, fingerprint)
    bench = read_bench(fingerprint.digest)
    rates = _rates(records, bench, len(setup.spec.cameras))
    rate = policy_rate(records)
    left = sum(portion.trials for portion in portions)
    workers = max(1, min(options.workers, left))
    placement = make_plan(options, workers, 1, None, one_at_a_time=setup.spec.one_at_a_time)
    gpus = len(placement.devices)
    return Preflight(
        policy=setup.policy.adapter + (f" step {setup.policy.step}" if setup.policy.step is not None else ""),
        backend=fingerprint,
        lists=len(portions),
        trials=done + left,
        done=done,
        seeds_known=known,
        candidates=round(sum(portion.candidates for portion in portions), 1),
        machine=Machine(
            workers=len(placement.workers),
            servers=len(placement.servers),
            gpus=gpus,
            pictures_take_turns=gpus > 0,
            start_s=bench.start_s if bench else 0.0,
        ),
        cpus=os.cpu_count() or 1,
        memory_available=psutil.virtual_memory().available,
        memory_per_worker=bench.memory_bytes if bench else None,
        rates=len(rates),
        sources=_sources(rate, bench, len(setup.spec.cameras)),
        cost=estimate(portions, rates, rate, execute_steps=setup.policy.execute_steps) if left else None,
    )


def _portions(setup: RunSetup, fingerprint: BackendFingerprint) -> tuple[list[Portion], int, int]:
    """What is left per list, trials done, and accepted seeds known."""
    from collections import Counter

    from evalkit.cli.run_setup import RUNS_FOLDER
    from evalkit.plan.cost import Portion
    from evalkit.plan.seed_files import SeedFiles, local_folder
    from evalkit.pool.seed_work import judged_entries, open_search, read_lists
    from evalkit.store.run import RUN_FILE, open_run

    needs, request = setup.seed_needs(), setup.request
    files = SeedFiles(local_folder(), fingerprint.physics_digest)
    lists = read_lists(needs, files)
    done: Counter[tuple[str, str]] = Counter()
    if len(lists) == len(needs):
        info = setup.info(fingerprint, lists)
        folder = request.out or RUNS_FOLDER / info.run_id
        if (folder / RUN_FILE).exists():
            run = open_run(folder)
            if run.info.identity_digest() == info.identity_digest():
                remaining = {spec.key for spec in run.remaining()}
                done.update((spec.task, spec.config) for spec in run.plan if spec.key not in remaining)
    portions, known = [], 0
    for need in needs:
        key = need.task, need.config.name
        search = open_search(need, files)
        for entry in judged_entries(need, files).values():  # only sentences differ: no expert is asked again
            search.put(entry)
        accepted, missing = search.accepted_count, need.count - search.accepted_count
        known += accepted
        tried = len(search.entries)
        share = accepted / tried if accepted else 1.0  # nothing known: at least one candidate a seed
        portions.append(
            Portion(
                task=need.task,
                config=need.config.name,
                trials=need.count * request.repeats - done[key],
                horizon_steps=setup.protocol.rules.horizon_steps(need.task, setup.policy.execute_steps),
                candidates=missing / share if need.rule.checked else 0.0,
            )
        )
    return portions, done.total(), known


def _records_of(setup: RunSetup, fingerprint: BackendFingerprint) -> list[TrialRecord]:
    """Trials of this policy in this world that runs here hold."""
    from evalkit.cli.run_setup import RUNS_FOLDER
    from evalkit.core.errors import EvalkitError
    from evalkit.core.trial import BackendFingerprint
    from evalkit.store.run import RUN_FILE, open_run

    records: list[TrialRecord] = []
    for path in sorted(RUNS_FOLDER.glob(f"*/{RUN_FILE}")):
        try:
            run = open_run(path.parent)
            same = BackendFingerprint(**run.info.backend).digest == fingerprint.digest
        except (EvalkitError, TypeError):
            continue  # a run that can't be read has no rates; `evalkit status` says what is wrong with it
        if same and run.info.policy.digest == setup.policy.digest:
            records += run.records().values()
    return records


def _rates(records: Sequence[TrialRecord], bench: Bench | None, cameras: int) -> dict[tuple[str, str], SimulatorRate]:
    """Rates of trials, with what only a measurement knows beside them, and those of a measurement."""
    from evalkit.plan.rates import rates_of

    measured = dict(bench.rates) if bench else {}
    seen = rates_of(records, cameras)
    for key, rate in seen.items():
        if known := measured.get(key):
            seen[key] = replace(rate, expert_s=known.expert_s, expert_steps=known.expert_steps)
    return {**measured, **seen}


def _sources(rate: PolicyRate | None, bench: Bench | None, cameras: int) -> tuple[str, ...]:
    sources = []
    if rate is not None:
        sources.append(f"{rate.n} trials of this policy in results/runs")
    if bench is not None:
        sources.append(f"evalkit robotwin bench, {bench.measured_at[:10]}, {bench.host}")
        measured = {known.cameras for known in bench.rates.values()}
        if measured != {cameras}:
            many = " or ".join(map(str, sorted(measured)))
            sources.append(f"its observations had {many} cameras, this policy asks for {cameras}")
    return tuple(sources)
