"""Where the drill takes place: sixty trials of the fake backend, and what comes out when nothing goes wrong."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from evalkit import __version__
from evalkit.aggregate.summary import summarise
from evalkit.core.record import TrialRecord
from evalkit.core.trial import TrialSpec
from evalkit.drill.policy import CHUNK_STEPS, SPEC, DrillPolicyMaker
from evalkit.plan.plan import PlanSettings, make_plan
from evalkit.plan.seed_files import SeedFiles
from evalkit.pool.drive import SeedLists, Session, find_seeds, run_trials
from evalkit.pool.inline import InlineCrew
from evalkit.pool.jobs import Failed
from evalkit.pool.observer import Observer
from evalkit.pool.scheduler import Crew
from evalkit.pool.seed_work import SeedNeed, make_scene
from evalkit.protocol.config import load_config
from evalkit.report.export import TASKS_FILE, write_exports
from evalkit.sim.contract import Simulator
from evalkit.sim.fake.process import FakeProcessSimulator
from evalkit.sim.fake.simulator import FINGERPRINT, FakeSimulator
from evalkit.sim.fake.world import SEVENTHS, FakeWorld
from evalkit.store.info import ConfigInfo, PolicyInfo, RunInfo
from evalkit.store.run import Run

TASKS = ("click_bell", "place_shoe", "stack_blocks_two")
SCENES = 20
WORLD = replace(SEVENTHS, success_after_steps=12, step_s=0.001)
CONFIG = load_config("demo_clean")
NO_DEADLINE_S = 1e6
"""The drill's simulators never judge themselves: the worker's deadline is what is tested."""


@dataclass(frozen=True)
class SimMaker:
    """Makes fake simulators in processes of their own. Travels to the workers."""

    world: FakeWorld
    logs: Path

    def __call__(self, worker_name: str) -> Simulator:
        """A simulator for a worker."""
        return FakeProcessSimulator(self.world, NO_DEADLINE_S, self.logs / f"{worker_name}.log")


@dataclass(frozen=True)
class Ground:
    """Scenes, the undisturbed run, and a folder for runs to come."""

    folder: Path
    seeds: SeedLists
    reference: Run
    start_s: float
    """What the start of a simulator takes here at present."""

    def open(self, name: str) -> Run:
        """A run of the drill's sixty trials; the one of that name again if it is there."""
        return _open(self.folder / name, self.seeds)

    @property
    def logs(self) -> Path:
        """Folder of the simulators' logs."""
        return self.folder / "logs"


class Notes(Observer):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.incidents: list[tuple[str, str]] = []
        """Title and kind of each failed attempt."""
        self.trials: list[TrialRecord] = []

    def incident(self, title: str, failure: Failed, attempt: int) -> None:
        """See ``Observer``."""
        self.incidents.append((title, failure.error.kind))

    def trial(self, record: TrialRecord) -> None:
        """See ``Observer``."""
        self.trials.append(record)


def prepare_ground(folder: Path) -> Ground:
    """Find the scenes and run the sixty trials once in this process, undisturbed."""
    crew = InlineCrew(1, lambda name: FakeSimulator(replace(WORLD, step_s=0.0)), DrillPolicyMaker())
    needs = [SeedNeed(task=task, config=CONFIG, count=SCENES) for task in TASKS]
    with SeedFiles(folder / "seeds", "drill", travelling=folder / "none") as files:
        seeds = find_seeds(crew, needs, files, Observer())
    assert seeds is not None
    run = _open(folder / "reference", seeds)
    work(crew, run, Notes())
    return Ground(folder, seeds, run, _start_s(run, folder / "logs"))


def drill_scenes() -> list[int]:
    """Seeds of the drill's scenes, the same for each task: the first accepted ones."""
    rejected = (WORLD.unstable, WORLD.unsolvable)
    accepted = (seed for seed in itertools.count(100_000) if not any(test(seed) for test in rejected))
    return list(itertools.islice(accepted, SCENES))


def work(crew: Crew, run: Run, notes: Observer, *, retry_errors: bool = False, **options: Any) -> Session:
    """Run what remains of a run; see ``run_trials``."""
    try:
        return run_trials(crew, run, run.remaining(retry_errors=retry_errors), {CONFIG.name: CONFIG}, notes, **options)
    finally:
        run.close()


def essence(run: Run, without: Collection[str] = ()) -> dict[str, tuple[Any, ...]]:
    """What must not depend on how a run was run, by trial key."""
    return {
        key: (r.outcome, r.steps, r.policy_calls, r.success_step, r.planner_failures, r.state_digest)
        for key, r in run.records().items()
        if key not in without
    }


def table(run: Run, without: Collection[str], folder: Path) -> bytes:
    """``leaderboard_tasks.csv`` of a run with some trials taken out of plan and records."""
    plan = [spec for spec in run.plan if spec.key not in without]
    cut = Run.create(folder, run.info, plan)
    try:
        for key, record in run.records().items():
            if key not in without:
                cut.append(record)
        write_exports(cut, summarise(cut))
        return (folder / TASKS_FILE).read_bytes()
    finally:
        cut.close()


def recorded(records: Collection[TrialRecord]) -> str:
    """Outcome and kind of faulty trials, counted; for people."""
    counts = Counter(f"{r.outcome} {r.error.kind}" if r.error else f"{r.outcome}" for r in records)
    return ", ".join(f"{number} x {name}" if number > 1 else name for name, number in sorted(counts.items()))


def key_of(plan: Sequence[TrialSpec], task: str, seed: int) -> str:
    """The key of a trial by its scene."""
    return next(spec.key for spec in plan if (spec.task, spec.seed) == (task, seed))


def _start_s(run: Run, logs: Path) -> float:
    sim = SimMaker(WORLD, logs)("start")
    started = time.monotonic()
    try:
        sim.reset(make_scene(run.plan[0].task, CONFIG, run.plan[0].seed))
        return time.monotonic() - started
    finally:
        sim.close()


def _open(folder: Path, seeds: SeedLists) -> Run:
    settings = PlanSettings(
        backend=FINGERPRINT.digest,
        policy=SPEC.name,
        action_type=SPEC.action_type,
        execute_steps=CHUNK_STEPS,
        trials_per_task=SCENES,
    )
    return Run.create(folder, _info(seeds), make_plan(settings, TASKS, [CONFIG], seeds))


def _info(seeds: SeedLists) -> RunInfo:
    policy = PolicyInfo(
        adapter=SPEC.name,
        digest=SPEC.name,
        checkpoint=None,
        checkpoint_digest=None,
        step=None,
        execute_steps=CHUNK_STEPS,
        action_type=SPEC.action_type,
        device="cpu",
        privileged=False,
    )
    return RunInfo(
        run_id="drill",
        created_at="",
        evalkit_version=__version__,
        policy=policy,
        card=None,
        configs={CONFIG.name: ConfigInfo(digest=CONFIG.digest, split=CONFIG.instruction_split, label="?2c")},
        tasks=TASKS,
        trials_per_task=SCENES,
        backend=asdict(FINGERPRINT),
        seed_lists={f"{task}/{config}": found.digest for (task, config), found in seeds.items()},
    )


def json_lines(path: Path) -> list[Mapping[str, Any]]:
    """All lines of a file, each of which must be complete.

    Raises:
        ValueError: one isn't.
    """
    return [json.loads(line) for line in path.read_bytes().splitlines(keepends=True)]
