"""From the records of a run to what they mean. The order in which trials ended never matters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from evalkit.aggregate.average import average_estimate
from evalkit.aggregate.choice import stopping_line
from evalkit.aggregate.eligibility import reasons_against
from evalkit.aggregate.pairs import Pairs, pair_up
from evalkit.aggregate.proportions import estimate
from evalkit.aggregate.scores import AverageScore, ConfigScore, MissingTrial, Status, Summary, TaskScore
from evalkit.aggregate.spread import Spread, repeat_spread
from evalkit.aggregate.suite import Stratum, bounds, mean_estimate, pooled, standard_error
from evalkit.aggregate.tasks_like_these import tasks_like_these
from evalkit.aggregate.terms import not_reproduced
from evalkit.aggregate.timing import timing
from evalkit.core.errors import UserError
from evalkit.core.hashing import digest
from evalkit.core.record import TrialRecord
from evalkit.core.trial import BackendFingerprint, TrialSpec
from evalkit.protocol.labels import label
from evalkit.protocol.protocols import Protocol, load_protocol
from evalkit.provenance.card import TrainingCard
from evalkit.store.run import Run

_STATUSES: tuple[Status, ...] = ("complete", "partial", "incomplete", "stopped")  # best first


def summarise(run: Run) -> Summary:
    """What a run means, finished or not.

    Raises:
        UserError: the run mixes policies, backends, configurations or instruction splits, its training card can't be
            read, or its records contradict each other.
    """
    info = run.info
    _refuse_mixtures(run)
    protocol = load_protocol(info.protocol)
    card = _card(run)
    records = run.records()
    configs = tuple(_config_score(run, name, protocol, card, records) for name in info.configs)
    return Summary(
        run_id=info.run_id,
        evalkit_version=info.evalkit_version,
        protocol=info.protocol,
        policy=info.policy,
        card=card,
        backend=info.backend,
        backend_digest=_backend_digest(run),
        trials_per_task=info.trials_per_task,
        repeats=info.repeats,
        configs=configs,
        average=None if info.stopping else _average(protocol, configs, info.repeats, records),
        status=max((score.status for score in configs), key=_STATUSES.index, default="incomplete"),
        under=info.under,
        rules=info.rules,
        not_reproduced=not_reproduced(run, card),
        not_leaderboard=reasons_against(run, protocol, card, configs),
        stopping=stopping_line(info, all_done=len(records) == len(run.plan)),
        errors=_errors(records.values()),
        timing=timing(list(records.values())),
    )


def _config_score(
    run: Run, config: str, protocol: Protocol, card: TrainingCard | None, records: Mapping[str, TrialRecord]
) -> ConfigScore:
    info = run.info
    plan: dict[str, list[TrialSpec]] = defaultdict(list)
    for spec in run.plan:
        if spec.config == config:
            plan[spec.task].append(spec)
    stopped = info.stopping is not None
    tasks = tuple(_task_score(plan[task], protocol, records, info.repeats, stopped) for task in sorted(plan))
    strata = _strata(tasks)
    successes, done = pooled(strata)
    planned = sum(task.planned for task in tasks)
    status: Status = "stopped" if stopped else _status(tasks, protocol, info.repeats)
    mean = mean_estimate(strata, repeats=info.repeats) if status in ("complete", "partial") else None
    return ConfigScore(
        config=config,
        label=label(card, config, privileged=info.policy.privileged, under=info.under),
        split=info.configs[config].split,
        digest=info.configs[config].digest,
        tasks=tasks,
        status=status,
        coverage=_coverage(tasks, protocol, done, planned, stopped),
        planned=planned,
        done=done,
        successes=successes,
        policy_errors=sum(task.policy_errors for task in tasks),
        dropped=sum(task.dropped for task in tasks),
        n_missing=sum(len(task.missing) for task in tasks),
        unequal_trials=len({task.planned for task in tasks}) > 1,
        score=mean if status == "complete" else None,
        partial_mean=mean if status == "partial" else None,
        bounds=bounds(strata) if status == "incomplete" else None,
        pooled=estimate(successes, done, repeats=info.repeats) if mean else None,
        standard_error=standard_error(strata, repeats=info.repeats) if mean else None,
        tasks_like_these=tasks_like_these([_rate(task) for task in tasks]) if mean else None,
        repeat_spread=_spread(plan, protocol, records, info.repeats) if mean else None,
    )


def _coverage(tasks: Sequence[TaskScore], protocol: Protocol, done: int, planned: int, stopped: bool) -> str:
    of = f"{len(tasks)} tasks" if protocol.tasks is None else f"{len(tasks)} of {protocol.tasks} tasks"
    return f"{of}, {done} of {'at most ' if stopped else ''}{planned} trials"


def _spread(
    plan: Mapping[str, Sequence[TrialSpec]], protocol: Protocol, records: Mapping[str, TrialRecord], repeats: int
) -> Spread | None:
    if repeats == 1 or any(protocol.outcomes[record.outcome] == "dropped" for record in records.values()):
        return None  # with trials left out, scenes have unequal numbers of repeats
    return repeat_spread(_repeats(plan, protocol, records))


def _repeats(
    plan: Mapping[str, Sequence[TrialSpec]], protocol: Protocol, records: Mapping[str, TrialRecord]
) -> dict[str, list[list[bool]]]:
    """Task -> scenes -> outcomes of the repeats."""
    tasks: dict[str, dict[int, list[bool]]] = {task: defaultdict(list) for task in plan}
    for task, specs in plan.items():
        for spec in sorted(specs, key=lambda spec: spec.repeat):
            tasks[task][spec.seed].append(protocol.outcomes[records[spec.key].outcome] == "success")
    return {task: list(scenes.values()) for task, scenes in tasks.items()}


def _task_score(
    specs: Sequence[TrialSpec], protocol: Protocol, records: Mapping[str, TrialRecord], repeats: int, stopped: bool
) -> TaskScore:
    counts: Counter[str] = Counter()
    missing: list[MissingTrial] = []
    for spec in specs:
        record = records.get(spec.key)
        if record is None and stopped:
            continue  # the plan of such a run says how many trials there may be
        counts_as = protocol.outcomes[record.outcome] if record else "missing"
        counts[counts_as] += 1
        if counts_as == "missing":
            missing.append(MissingTrial(seed=spec.seed, repeat=spec.repeat, why=_why_missing(record)))
        elif record and record.outcome == "policy_error" and counts_as == "failure":
            counts["policy_error"] += 1
    successes, done = counts["success"], counts["success"] + counts["failure"]
    return TaskScore(
        task=specs[0].task,
        config=specs[0].config,
        planned=len(specs),
        done=done,
        successes=successes,
        failures=counts["failure"],
        policy_errors=counts["policy_error"],
        dropped=counts["dropped"],
        missing=tuple(sorted(missing, key=lambda trial: (trial.seed, trial.repeat))),
        step_limit=specs[0].horizon_steps,
        seeds_digest=digest([spec.seed for spec in specs]),
        estimate=None if missing or stopped or not done else estimate(successes, done, repeats=repeats),
        bounds=bounds([Stratum(successes, done, len(missing))]) if missing and not stopped else None,
    )


def _why_missing(record: TrialRecord | None) -> str:
    if record is None:
        return "not run"
    return f"{record.outcome}: {record.error.kind}" if record.error else str(record.outcome)


def _status(tasks: Sequence[TaskScore], protocol: Protocol, repeats: int) -> Status:
    if not tasks or any(task.missing for task in tasks):
        return "incomplete"
    enough = all(task.planned >= (protocol.trials_per_task or 1) * repeats for task in tasks)
    enough = enough and all(task.done for task in tasks)  # a task whose every trial was dropped has no rate
    return "complete" if enough and protocol.tasks in (None, len(tasks)) else "partial"


def _average(
    protocol: Protocol, configs: Sequence[ConfigScore], repeats: int, records: Mapping[str, TrialRecord]
) -> AverageScore | None:
    by_name = {score.config: score for score in configs}
    if len(protocol.configs) < 2 or any(config not in by_name for config in protocol.configs.values()):
        return None
    pair = [by_name[config] for config in protocol.configs.values()]
    name = f"({' + '.join(score.label.text for score in pair)}) / {len(pair)}"
    if [task.task for task in pair[0].tasks] != [task.task for task in pair[1].tasks]:
        raise UserError(f"{pair[0].config} and {pair[1].config} were run on different tasks: they have no average")
    # The same tasks under each configuration, so the mean over all strata is the mean of the means.
    strata = [stratum for score in pair for stratum in _strata(score.tasks)]
    statuses = {score.status for score in pair}
    pairs = _pairs(pair, protocol, records)
    first, second = (_strata(score.tasks) for score in pair)
    countable = all(stratum.trials for stratum in strata)
    found = (
        None if "incomplete" in statuses or not countable else average_estimate(first, second, pairs, repeats=repeats)
    )
    mean = found.estimate if found else None
    rates = [(_rate(one) + _rate(other)) / 2 for one, other in zip(pair[0].tasks, pair[1].tasks, strict=True) if found]
    return AverageScore(
        name=name,
        score=mean if statuses == {"complete"} else None,
        partial_mean=mean if statuses != {"complete"} else None,
        bounds=bounds(strata) if "incomplete" in statuses else None,
        standard_error=found.standard_error if found else None,
        covariance=found.covariance if found else None,
        shared_scenes=sum(shared.n for shared in pairs),
        tasks_like_these=tasks_like_these(rates) if found else None,
    )


def _pairs(pair: Sequence[ConfigScore], protocol: Protocol, records: Mapping[str, TrialRecord]) -> list[Pairs]:
    """Outcomes of each task on the scenes that both configurations met."""
    scenes: dict[tuple[str, str], dict[tuple[int, int], bool]] = defaultdict(dict)
    for record in records.values():
        counts_as = protocol.outcomes[record.outcome]
        if counts_as in ("success", "failure"):
            spec = record.spec
            scenes[spec.task, spec.config][spec.seed, spec.repeat] = counts_as == "success"
    names = [score.config for score in pair]
    return [pair_up(*(scenes[task.task, name] for name in names)) for task in pair[0].tasks]


def _rate(task: TaskScore) -> float:
    return task.successes / task.done


def _strata(tasks: Iterable[TaskScore]) -> list[Stratum]:
    return [Stratum(task.successes, task.done, len(task.missing)) for task in tasks]


def _errors(records: Iterable[TrialRecord]) -> dict[str, int]:
    kinds = Counter(f"{record.outcome}: {record.error.kind}" for record in records if record.error)
    return dict(sorted(kinds.items()))


def _card(run: Run) -> TrainingCard | None:
    if run.info.card is None:
        return None
    try:
        return TrainingCard.from_json(dict(run.info.card))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise UserError(f"the training card in {run.folder / 'run.json'} can't be read: {what}") from error


def _backend_digest(run: Run) -> str:
    digests = {spec.backend for spec in run.plan}
    return digests.pop() if digests else BackendFingerprint(**run.info.backend).digest


def _refuse_mixtures(run: Run) -> None:
    """One run is one policy in one world; each of its configurations has one meaning."""
    plan = run.plan
    for what in ("policy", "backend", "execute_steps", "action_type"):
        _refuse_several(run, what, {getattr(spec, what) for spec in plan})
    for config in {spec.config for spec in plan}:
        if config not in run.info.configs:
            raise UserError(f"{run.folder}: the plan has trials of {config}, which run.json doesn't name")
        for what in ("config_digest", "instruction_split"):
            values = {getattr(spec, what) for spec in plan if spec.config == config}
            _refuse_several(run, f"{what} of {config}", values)


def _refuse_several(run: Run, what: str, values: set[object]) -> None:
    if len(values) > 1:
        shown = ", ".join(sorted(map(str, values)))
        raise UserError(f"{run.folder} mixes trials of several {what} values ({shown}): they have no common score")
