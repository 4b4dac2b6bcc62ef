"""Finding accepted seeds with a crew: several lists at once, each in its own order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalkit.core.errors import HarnessError, UserError
from evalkit.core.tasks import STEP_LIMITS
from evalkit.core.trial import Split, TrialSpec
from evalkit.plan.seed_files import SeedFiles
from evalkit.plan.seeds import REJECTED_IN_A_ROW, SeedEntry, SeedList, SeedSearch
from evalkit.pool.jobs import Failed, Finished, Job, SeedJob
from evalkit.pool.observer import Observer
from evalkit.protocol.config import TaskConfig
from evalkit.protocol.variant import ROBOTWINS, SeedRule
from evalkit.sim.contract import Scene

SEED_LIMIT_S = 600.0
"""Wall limit of one candidate: a scene and its expert take seconds; a loaded machine and a cold start, minutes."""


@dataclass(frozen=True, kw_only=True)
class SeedNeed:
    """A list that is wanted."""

    task: str
    config: TaskConfig
    count: int
    seed_base: int = 0
    candidates: int | None = None
    """Try exactly so many candidates instead of looking for ``count`` accepted ones."""
    give_up_after: int = REJECTED_IN_A_ROW
    """So many rejected candidates in a row, and one more, end the search for ``count``."""
    rule: SeedRule = ROBOTWINS
    """How the list is made; lists of other rules are kept apart."""

    @property
    def split(self) -> Split:
        """Sentences that the list's entries have."""
        if not self.rule.sentences:
            return "none"
        return self.rule.split or self.config.instruction_split


class SeedWork:
    """A ``Work`` that completes lists. The shortest list is served first, so that all grow evenly.

    Args:
        needs: lists wanted.
        files: where entries come from and go to; open for writing.
        observer: told about every entry.
        keep_going: a list that can't be completed is set aside (see ``hopeless``) and the others go on.
    """

    def __init__(
        self, needs: Sequence[SeedNeed], files: SeedFiles, observer: Observer, *, keep_going: bool = False
    ) -> None:
        self._files, self._observer, self._keep_going = files, observer, keep_going
        self._needs = {(need.task, need.config.name): need for need in needs}
        self._searches = {key: open_search(need, files) for key, need in self._needs.items()}
        self._judged = {key: judged_entries(need, files) for key, need in self._needs.items()}
        self.hopeless: dict[tuple[str, str], str] = {}
        """(task, configuration) -> why its list can't be completed."""
        for (task, config), search in self._searches.items():
            observer.seeds(task, config, *search.progress)

    @property
    def is_done(self) -> bool:
        """Whether all lists are complete, those set aside excepted."""
        return not self._unfinished()

    def results(self) -> dict[tuple[str, str], SeedList]:
        """(task, configuration) -> complete list."""
        return {key: search.result() for key, search in self._searches.items() if key not in self.hopeless}

    def _unfinished(self) -> list[tuple[tuple[str, str], SeedSearch]]:
        searches = self._searches.items()
        return [(key, search) for key, search in searches if key not in self.hopeless and not search.is_done]

    def next_job(self) -> Job | None:
        """See ``Work``.

        Raises:
            UserError: a search is hopeless.
        """
        for key, search in sorted(self._unfinished(), key=lambda item: item[1].progress[0] / item[1].progress[1]):
            try:
                seed = search.next_candidate()
            except UserError as error:
                if not self._keep_going:
                    raise
                self.hopeless[key] = str(error)
                continue
            if seed is not None:
                return self._job(self._needs[key], seed, self._judged[key].get(seed))
        return None

    def done(self, job: Job, result: Finished, attempts: int) -> None:
        """See ``Work``."""
        entry = result.value
        if not isinstance(job, SeedJob) or not isinstance(entry, SeedEntry):
            raise HarnessError(f"{job.title} gave {type(entry).__name__}")
        self._put(job, entry)

    def give_up(self, job: Job, failure: Failed, attempts: int) -> None:
        """Reject a candidate on which the simulator crashed or hung every time.

        Raises:
            HarnessError: it failed for a reason that says nothing about the scene; with ``keep_going`` the list is set
                aside instead, unless the harness itself is at fault.
        """
        if not isinstance(job, SeedJob):
            raise HarnessError(f"{job.title} is no seed job")
        if failure.scope == "simulator" and failure.error.kind in ("crash", "hang"):
            self._put(job, job.rejected(failure.error))
            return
        message = f"{job.title} failed {attempts} times: {failure.error.kind}: {failure.error.message}"
        if failure.scope != "simulator" or not self._keep_going:
            raise HarnessError(message)
        self.hopeless[job.scene.task, job.scene.config] = message

    def incident(self, job: Job, failure: Failed, attempt: int) -> None:
        """See ``Work``."""
        self._observer.incident(job.title, failure, attempt)

    def _put(self, job: SeedJob, entry: SeedEntry) -> None:
        key = job.scene.task, job.scene.config
        search = self._searches[key]
        for new in search.put(entry):
            self._files.append(*key, new, self._needs[key].rule.folder)
        self._observer.seeds(*key, *search.progress)

    @staticmethod
    def _job(need: SeedNeed, seed: int, judged: SeedEntry | None) -> SeedJob:
        return SeedJob(
            scene=make_scene(need.task, need.config, seed),
            config_digest=need.config.digest,
            split=need.split,
            limit_s=SEED_LIMIT_S,
            rule=need.rule,
            judged=judged,
        )


def make_scene(task: str, config: TaskConfig, seed: int) -> Scene:
    """The evaluation scene of a task, a configuration and a seed."""
    return Scene(
        task=task, config=config.name, settings=dict(config.settings), seed=seed, horizon_steps=STEP_LIMITS[task]
    )


def scene_of(spec: TrialSpec, config: TaskConfig) -> Scene:
    """The scene of a trial, with its step limit and its rule of success."""
    return Scene(
        task=spec.task,
        config=spec.config,
        settings=dict(config.settings),
        seed=spec.seed,
        horizon_steps=spec.horizon_steps,
        success=spec.success,
        history=spec.history,
    )


def read_lists(needs: Sequence[SeedNeed], files: SeedFiles) -> dict[tuple[str, str], SeedList]:
    """The wanted lists that the files complete already."""
    searches = {(need.task, need.config.name): open_search(need, files) for need in needs}
    return {key: search.result() for key, search in searches.items() if search.is_done}


def judged_entries(need: SeedNeed, files: SeedFiles) -> dict[int, SeedEntry]:
    """Candidates that RoboTwin's way has judged already, for a rule that differs in what the policy is told alone."""
    if need.rule.history or not need.rule.checked or not need.rule.folder:
        return {}
    known = files.read(need.task, need.config.name)
    return {entry.seed: entry for entry in known if entry.config_digest == need.config.digest and entry.scene_digest}


def open_search(need: SeedNeed, files: SeedFiles) -> SeedSearch:
    """The search for a list, as far as the files have it."""
    known = files.read(need.task, need.config.name, need.rule.folder)
    return SeedSearch(
        need.task,
        need.config.name,
        need.config.digest,
        need.seed_base,
        need.count,
        known,
        candidates=need.candidates,
        give_up_after=need.give_up_after,
        first=need.rule.first,
    )
