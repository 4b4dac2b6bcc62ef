"""Everything ``evalkit run`` can find out before a simulator starts: names, checkpoint, policy, compatibility."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalkit import __version__
from evalkit.cli.backends import Backend, choose_tasks, load_backend
from evalkit.cli.policy_choice import PolicyMaker, choose_policy
from evalkit.cli.protocol_choice import check_request, refuse_left_out
from evalkit.cli.robotwin_choice import RoboTwinChoice
from evalkit.core.errors import UserError
from evalkit.core.trial import BackendFingerprint, TrialSpec
from evalkit.plan.plan import PlanSettings, make_plan
from evalkit.plan.seeds import SeedList
from evalkit.policy.checkpoint import Checkpoint
from evalkit.policy.contract import PolicySpec
from evalkit.protocol.compatibility import check
from evalkit.protocol.config import TaskConfig, load_config
from evalkit.protocol.labels import label
from evalkit.protocol.modes import configs_of
from evalkit.protocol.protocols import Protocol, load_protocol
from evalkit.provenance.card import TrainingCard
from evalkit.store.info import ConfigInfo, PolicyInfo, RunInfo, Stopping

if TYPE_CHECKING:
    from evalkit.pool.seed_work import SeedNeed

RUNS_FOLDER = Path("results/runs")
_PACKAGES = ("h5py", "numpy", "ray", "sapien", "torch")


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """The command line of ``evalkit run``, as given."""

    checkpoint: str | None
    policy: str | None
    mode: str
    tasks: str | None
    trials: int
    repeats: int
    execute_steps: int | None
    seed_base: int
    backend: str
    out: Path | None
    policy_python: str | None = None
    """Interpreter of the policy, if it isn't evalkit's own."""
    on_cpu: bool = False
    """Whether policies compute on the CPU though there may be a GPU: ``--gpus 0``."""
    protocol: str = "leaderboard"
    bug_compatible: bool = False
    """Go through each task's candidates in one process, and leave what scenes leave (``docs/protocols.md``)."""
    robotwin: RoboTwinChoice | None = None
    """The RoboTwin installation to use; None: the generated world."""
    savings: str = "all"
    """A circumstance: no result depends on it (``evalkit.sim.robotwin.savings``)."""


@dataclass(frozen=True, kw_only=True)
class RunSetup:
    """A request whose every name has been found and whose parts fit together."""

    request: RunRequest
    backend: Backend
    tasks: tuple[str, ...]
    configs: tuple[TaskConfig, ...]
    checkpoint: Checkpoint | None
    card: TrainingCard | None
    maker: PolicyMaker
    spec: PolicySpec
    policy: PolicyInfo
    protocol: Protocol

    @property
    def config_map(self) -> dict[str, TaskConfig]:
        """Name -> configuration."""
        return {config.name: config for config in self.configs}

    def seed_needs(self) -> list[SeedNeed]:
        """The seed lists this run needs."""
        from evalkit.pool.seed_work import SeedNeed

        request, rules = self.request, self.protocol.rules
        return [
            SeedNeed(
                task=task,
                config=config,
                count=request.trials,
                seed_base=request.seed_base,
                rule=rules.seed_rule(task, config.name, request.seed_base, history=request.bug_compatible),
            )
            for task in self.tasks
            for config in self.configs
        ]

    def plan(self, backend: BackendFingerprint, seeds: Mapping[tuple[str, str], SeedList]) -> tuple[TrialSpec, ...]:
        """The trials of this run."""
        settings = PlanSettings(
            backend=backend.digest,
            policy=self.policy.digest,
            action_type=self.policy.action_type,
            execute_steps=self.policy.execute_steps,
            trials_per_task=self.request.trials,
            repeats=self.request.repeats,
            horizons={task: self.protocol.rules.horizon_steps(task, self.policy.execute_steps) for task in self.tasks},
            success=self.protocol.rules.success,
            history="task" if self.request.bug_compatible else "fresh",
        )
        return make_plan(settings, self.tasks, self.configs, seeds)

    def info(
        self,
        backend: BackendFingerprint,
        seeds: Mapping[tuple[str, str], SeedList],
        stopping: Stopping | None = None,
    ) -> RunInfo:
        """The run's manifest.

        Args:
            backend: what the simulators are made of.
            seeds: (task, configuration) -> accepted seeds.
            stopping: set if the run may end before its plan does.
        """
        from dataclasses import asdict, replace

        info = RunInfo(
            run_id="",
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            evalkit_version=__version__,
            policy=self.policy,
            card=self.card.to_json() if self.card else None,
            configs={},
            tasks=self.tasks,
            trials_per_task=self.request.trials,
            backend=asdict(backend),
            seed_lists={f"{task}/{config}": seeds[task, config].digest for task, config in seeds},
            seed_base=self.request.seed_base,
            repeats=self.request.repeats,
            protocol=self.protocol.name,
            rules={} if self.protocol.is_leaderboard else self.protocol.rules.facts(),
            bug_compatible=self.request.bug_compatible,
            environment={**environment(), **self.backend.circumstances, **self._policy_circumstances()},
            stopping=stopping,
            command=tuple(sys.argv[1:]),
        )
        configs = {config.name: self._config_info(config, info.under) for config in self.configs}
        info = replace(info, configs=configs)
        step = [str(self.policy.step)] if self.policy.step is not None else []
        under = info.under.replace(", ", "-")
        words = [self.policy.adapter, *step, *([under] if under else []), self.request.mode]
        return replace(info, run_id="-".join([*words, info.identity_digest()[:8]]))

    def _policy_circumstances(self) -> dict[str, Any]:
        """What the policy's digest has in it already, and people want to read."""
        mode = self.maker.settings.options.get("compile") if self.maker.settings is not None else None
        return {"policy_compile": mode} if mode is not None else {}

    def _config_info(self, config: TaskConfig, under: str) -> ConfigInfo:
        found = label(self.card, config.name, privileged=self.spec.is_privileged, under=under)
        split = self.protocol.rules.splits[config.name]
        return ConfigInfo(digest=config.digest, split=split, label=found.text, label_reasons=found.reasons)


def prepare(request: RunRequest, *, backend: Backend | None = None) -> RunSetup:
    """Check a request as far as it goes without a simulator.

    Args:
        request: the command line.
        backend: the backend it names, if that is loaded already.

    Raises:
        UserError: the first thing that is wrong with it.
    """
    configs = tuple(load_config(name) for name in configs_of(request.mode))
    protocol = load_protocol(request.protocol)
    check_request(request, protocol)
    if request.tasks is not None:
        from evalkit.core.tasks import parse_tasks

        parse_tasks(request.tasks)
    choice = choose_policy(request.policy, request.checkpoint, request.policy_python, on_cpu=request.on_cpu)
    backend = (backend or load_backend(request.backend, request.robotwin)).leaving_out(request.savings)
    tasks = choose_tasks(request.tasks, backend)
    tasks = refuse_left_out(tasks, protocol) if request.tasks else protocol.rules.tasks_of(tasks)
    spec, checkpoint = choice.spec, choice.checkpoint
    for config in configs:
        check(spec, config)
    if spec.history_steps > 1 and protocol.rules.success == "after_each_chunk":
        raise UserError(
            f"policy {spec.name} looks between the actions of a chunk, and protocol {protocol.name} judges after whole "
            "chunks: choose another protocol"
        )
    if request.bug_compatible and spec.drive == "demonstration":
        raise UserError(
            f"--bug-compatible: policy {spec.name} has the expert run once more before each trial, which RoboTwin's "
            "loop doesn't: choose another policy"
        )
    execute_steps = request.execute_steps if request.execute_steps is not None else spec.execute_steps
    if not 1 <= execute_steps <= spec.chunk_steps:
        raise UserError(
            f"--execute-steps is {execute_steps}; policy {spec.name} gives chunks of {spec.chunk_steps}: "
            f"choose from 1 to {spec.chunk_steps}"
        )
    return RunSetup(
        request=request,
        backend=backend,
        tasks=tasks,
        configs=configs,
        checkpoint=checkpoint,
        card=choice.card,
        maker=choice.maker,
        spec=spec,
        policy=PolicyInfo(
            adapter=choice.name,
            digest=choice.digest,
            checkpoint=str(checkpoint.path) if checkpoint else None,
            checkpoint_digest=checkpoint.digest if checkpoint else None,
            step=checkpoint.step if checkpoint else None,
            execute_steps=execute_steps,
            action_type=spec.action_type,
            device=choice.maker.device,
            privileged=spec.is_privileged,
        ),
        protocol=protocol,
    )


def environment() -> dict[str, Any]:
    """Where a run happens: circumstances that don't make it another run."""
    import psutil

    return {
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in _PACKAGES},
        "host": platform.node(),
        "system": platform.platform(),
        "cpus": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
    }
