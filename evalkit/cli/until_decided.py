"""``evalkit run --until-decided A B``: two policies on the same scenes until it is clear which one is better.

Both sides are runs of their own, in one folder with ``decision.json``. One crew serves both policies, so that the
trials of a pair run side by side.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from evalkit.aggregate.choice import Choice, ScenePair, choose, outcomes_of, scene_pairs
from evalkit.cli.progress import RunProgress
from evalkit.cli.run_setup import RunRequest, RunSetup, prepare
from evalkit.cli.stopping import EXIT_RESUMABLE, StopRequest
from evalkit.core.errors import UserError
from evalkit.core.hashing import digest
from evalkit.core.record import TrialRecord
from evalkit.core.trial import BackendFingerprint, TrialSpec
from evalkit.report.choice import read_decision, write_decision
from evalkit.store.info import Stopping
from evalkit.store.run import DECISION_FILE, Run

if TYPE_CHECKING:
    from evalkit.cli.run_options import RunOptions
    from evalkit.pool.drive import SeedLists, Session
    from evalkit.pool.ray_crew import RayCrew

DECISIONS_FOLDER = Path("results/decisions")
ALPHA = 0.05
EXIT_INCOMPLETE = 1
SIDES = ("first", "second")


@dataclass(frozen=True)
class Duel:
    """The two sides of a decision, ready to run."""

    first: RunSetup
    second: RunSetup

    @property
    def sides(self) -> tuple[RunSetup, RunSetup]:
        """Both."""
        return self.first, self.second

    def open(self, fingerprint: BackendFingerprint, seeds: SeedLists) -> tuple[Run, Run]:
        """Create both runs, or take them up again.

        Raises:
            UserError: the folder holds something else.
        """
        plain = [side.info(fingerprint, seeds) for side in self.sides]
        names = ["-".join(map(str, filter(None, (info.policy.adapter, info.policy.step)))) for info in plain]
        mark = digest([ALPHA, *(info.identity() for info in plain)])[:8]
        decision = "-".join([names[0], "or", names[1], self.first.request.mode, mark])
        folder = self.first.request.out or DECISIONS_FOLDER / decision
        first, second = (
            side.info(fingerprint, seeds, Stopping(rule="until-decided", decision=decision, side=name, alpha=ALPHA))
            for side, name in zip(self.sides, SIDES, strict=True)
        )
        _refuse_other(folder, decision, {first.run_id, second.run_id, DECISION_FILE})
        return (
            Run.create(folder / first.run_id, first, self.first.plan(fingerprint, seeds)),
            Run.create(folder / second.run_id, second, self.second.plan(fingerprint, seeds)),
        )


class Referee(RunProgress):
    """Shows progress, and looks at the pairs as their trials end."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.order: tuple[ScenePair, ...] = ()
        self.choice: Choice | None = None
        self._protocol = ""
        self._outcomes: dict[str, bool | None] = {}

    def begin(self, runs: Sequence[Run]) -> None:
        """Start with what is recorded already."""
        self.begin_trials(runs[0])
        self._protocol = runs[0].info.protocol
        self.order = scene_pairs(runs[0].plan, runs[1].plan)
        for run in runs:
            self._take(run.records().values())

    def trial(self, record: TrialRecord) -> None:
        """See ``Observer``."""
        super().trial(record)
        self._take([record])

    def settled(self) -> bool:
        """Whether no more trials are needed."""
        return self.choice is not None and self.choice.state == "decided"

    def line(self) -> str:
        """The present state in one line."""
        if self.choice is None:
            return super().line()
        decision, counts = self.choice.decision, self.choice.counts
        pairs = f"pairs {decision.pairs} of at most {self.choice.planned}"
        found = f"the first alone succeeded in {counts.first_only}, the second alone in {counts.second_only}"
        return f"{pairs}: {found}, p {decision.p:.3f}, {self._busy} of {self._workers} workers busy"

    def _take(self, records: Iterable[TrialRecord]) -> None:
        self._outcomes |= outcomes_of(self._protocol, records)
        self.choice = choose(self.order, self._outcomes, alpha=ALPHA)


def prepare_duel(names: Sequence[str], request: RunRequest, *, order: str) -> Duel:
    """Check both sides as far as it goes without a simulator.

    Args:
        names: a checkpoint, or a policy without weights, for each side.
        request: the rest of the command line.
        order: the option ``--order``, which has no meaning here.

    Raises:
        UserError: the first thing that is wrong.
    """
    if dashed := [name for name in names if name.startswith("-")]:
        raise UserError(f"--until-decided takes two names, and {dashed[0]} isn't one: give A and B")
    if request.checkpoint is not None or request.policy is not None:
        raise UserError("--until-decided names both policies itself: leave --ckpt and --policy out")
    if request.repeats != 1:
        raise UserError("--until-decided takes each scene once: leave --repeats out")
    if order != "longest":
        raise UserError("--until-decided takes one scene of each task in turn: leave --order out")
    first, second = (prepare(_side(name, request)) for name in names)
    if first.policy.digest == second.policy.digest:
        raise UserError(f"{names[0]} and {names[1]} are the same policy: there is nothing to decide")
    return Duel(first, second)


def execute_duel(duel: Duel, options: RunOptions, stop: StopRequest) -> int:
    """Find seeds, run pairs until decided, report. Returns the exit code."""
    from evalkit.plan.seed_files import SeedFiles, local_folder
    from evalkit.pool.seed_work import read_lists

    fingerprint = duel.first.backend.fingerprint()
    needs = duel.first.seed_needs()
    known = read_lists(needs, SeedFiles(local_folder(), fingerprint.physics_digest))
    runs = duel.open(fingerprint, known) if len(known) == len(needs) else None
    session = None
    referee = Referee(options.workers)
    with referee:
        if runs is not None:
            referee.begin(runs)
        left = len(_left(referee, runs, options)) if runs is not None else 2 * len(needs) * duel.first.request.trials
        if left:
            most = options.policy_copies if any(side.spec.one_at_a_time for side in duel.sides) else left
            options = replace(options, workers=min(options.workers, most))
            runs, session = _work(duel, fingerprint, runs, options, referee, stop)
    if runs is None or referee.choice is None or (session is not None and session.interrupted):
        return EXIT_RESUMABLE
    return _report(referee.choice, runs, session, options, referee.notices)


def _side(name: str, request: RunRequest) -> RunRequest:
    from evalkit.policy.registry import adapter_names, load_adapter
    from evalkit.policy.settings import is_policy_file

    weightless = is_policy_file(name) or (name in adapter_names() and not load_adapter(name).NEEDS_CHECKPOINT)
    return replace(request, policy=name) if weightless else replace(request, checkpoint=name)


def _refuse_other(folder: Path, decision: str, ours: set[str]) -> None:
    if (folder / DECISION_FILE).exists() and (there := read_decision(folder)["decision"]) != decision:
        raise UserError(f"{folder} holds another decision ({there}): give --out another folder")
    if folder.is_dir() and (others := sorted({entry.name for entry in folder.iterdir()} - ours)):
        raise UserError(f"{folder} holds {others[0]}, which isn't of this decision: give --out an empty or new folder")


def _left(referee: Referee, runs: tuple[Run, Run], options: RunOptions) -> list[TrialSpec]:
    """Trials to run, in the order to start them; none once it is decided."""
    if referee.settled():
        return []
    wanted = {spec.key for run in runs for spec in run.remaining(retry_errors=options.retry_errors)}
    return [spec for pair in referee.order for spec in _both(pair) if spec.key in wanted]


def _both(pair: ScenePair) -> tuple[TrialSpec, TrialSpec]:
    return pair.first, pair.second


def _work(
    duel: Duel,
    fingerprint: BackendFingerprint,
    runs: tuple[Run, Run] | None,
    options: RunOptions,
    referee: Referee,
    stop: StopRequest,
) -> tuple[tuple[Run, Run] | None, Session | None]:
    """Start the pool; complete the seed lists if there are no runs yet; run pairs."""
    from evalkit.cli.run_crew import open_crew, record_notices
    from evalkit.cli.seeds import find_missing_seeds
    from evalkit.pool.drive import work_through
    from evalkit.pool.lockstep import LockstepWork
    from evalkit.pool.scheduler import GRACE_S

    names = " and ".join(side.spec.name for side in duel.sides)
    referee.say(f"starting {options.workers} workers and policies {names} on {duel.first.maker.device}")
    makers = {side.policy.digest: side.maker for side in duel.sides}
    crew: RayCrew | None = None
    try:
        alone = any(side.spec.one_at_a_time for side in duel.sides)
        with open_crew(duel.first.backend, makers, options, stop, referee, one_at_a_time=alone) as crew:
            if runs is None:
                seeds = find_missing_seeds(crew, duel.first.seed_needs(), fingerprint, referee, stop)
                if seeds is None:
                    return None, None
                runs = duel.open(fingerprint, seeds)
                referee.begin(runs)
            for run in runs:
                run.lock()
            if referee.choice is not None:  # so that evalkit status knows the folder from now on
                write_decision(runs[0].folder.parent, referee.choice, runs)
            order = _left(referee, runs, options)
            work = LockstepWork(
                runs,
                order,
                duel.first.config_map,
                referee,
                enough=referee.settled,
                video=options.video,
                trial_limit_s=options.trial_limit,
            )
            session = work_through(crew, work, referee, stop=stop, grace_s=GRACE_S)
            referee.say(referee.line())
    finally:
        record_notices(crew, runs or ())
        for run in runs or ():
            run.close()
    return runs, session


def _report(
    choice: Choice, runs: tuple[Run, Run], session: Session | None, options: RunOptions, notices: Sequence[str]
) -> int:
    from rich.console import Console

    from evalkit.aggregate.summary import summarise
    from evalkit.cli.run_crew import repeat_notices
    from evalkit.report.choice import render
    from evalkit.report.export import write_exports
    from evalkit.report.html import write_page

    folder = runs[0].folder.parent
    path = write_decision(folder, choice, runs)
    for run in runs:
        write_exports(run, summarise(run))
        if choice.state != "going on":
            facts = {"trials": len(run.records()), "decision": choice.state, "of": folder.name}
            run.mark_done({"finished_at": datetime.now(UTC).isoformat(timespec="seconds"), **facts})
        write_page(run)
    if options.as_json:
        print(path.read_text(), end="")
    else:
        Console(highlight=False).print(render(choice, [run.info for run in runs]))
    repeat_notices(notices)
    if session is not None and session.stop_reason:
        print(f"stopped early: {session.stop_reason}", file=sys.stderr)
    print(f"results: {folder} ({path.name}, {', '.join(run.folder.name for run in runs)})", file=sys.stderr)
    unfinished = choice.state == "going on" or (choice.state == "budget used up" and choice.missing)
    return EXIT_INCOMPLETE if unfinished else 0
