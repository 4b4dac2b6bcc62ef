"""Policies and runs for the tests of protocols."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from pool_kit import Notes, Queue50, fake

from evalkit.aggregate.summary import summarise
from evalkit.cli.run_setup import RunRequest, prepare
from evalkit.plan.seed_files import SeedFiles
from evalkit.pool.drive import find_seeds, run_trials
from evalkit.pool.inline import InlineCrew
from evalkit.sim.fake.simulator import FINGERPRINT
from evalkit.sim.fake.world import SEVENTHS
from evalkit.store.run import Run

TASK = "click_bell"
REQUEST = RunRequest(
    checkpoint=None,
    policy="noop",
    mode="c2c",
    tasks=TASK,
    trials=3,
    repeats=1,
    execute_steps=10,
    seed_base=0,
    backend="fake",
    out=None,
)


class Stays(Queue50):
    """Never gets there; takes any instruction, which it remembers."""

    told: ClassVar[list[str]] = []

    def reset(self, info):
        self.told.append(info.instruction)

    def act(self, observation):
        return observation.state[None].repeat(10, axis=0)


class Raises(Stays):
    """Has an exception in its first two trials."""

    def __init__(self):
        self._left = 2

    def act(self, observation):
        if observation.step == 0 and self._left:
            self._left -= 1
            raise ValueError("no")
        return super().act(observation)


class PassesBy(Queue50):
    """Reaches the goal in the middle of its first chunk, and leaves it before the chunk ends."""

    def act(self, observation):
        chunk = super().act(observation).copy()
        chunk[-3:, 0] = 0.0
        return chunk


@dataclass
class Repeat:
    """A run under a protocol."""

    setup: object
    seeds: dict
    run: Run
    session: object

    @property
    def summary(self):
        return summarise(self.run)


def repeat_in(tmp_path):
    """Something that runs a policy under a protocol, in a folder."""

    def run(protocol, policy=Stays, world=SEVENTHS, folder="run", **changes):
        setup = prepare(replace(REQUEST, protocol=protocol, **changes))
        crew = InlineCrew(1, world if callable(world) else fake(world), policy)
        with SeedFiles(tmp_path / "seeds", "x", travelling=tmp_path / "none") as files:
            seeds = find_seeds(crew, setup.seed_needs(), files, Notes())
        found = Run.create(tmp_path / folder, setup.info(FINGERPRINT, seeds), setup.plan(FINGERPRINT, seeds))
        session = run_trials(crew, found, found.remaining(), setup.config_map, Notes())
        found.close()
        return Repeat(setup, seeds, found, session)

    return run
