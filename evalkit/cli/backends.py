"""Backends by name: how a command gets simulators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from evalkit.cli.robotwin_choice import RoboTwinChoice
from evalkit.core.errors import UnknownNameError, UserError
from evalkit.core.tasks import STANDIN_TASKS, TASKS

if TYPE_CHECKING:
    from evalkit.core.trial import BackendFingerprint
    from evalkit.pool.jobs import SimulatorFactory

BACKENDS = ("robotwin", "fake")


@dataclass(frozen=True, kw_only=True)
class Backend:
    """A kind of simulator, ready to be made."""

    make_simulator: SimulatorFactory
    """Worker name -> simulator; travels to the workers."""
    fingerprint: Callable[[], BackendFingerprint]
    """What the simulators are made of; may start one for a moment."""
    tasks: tuple[str, ...]
    """Tasks it can build, in canonical order."""
    is_robotwin: bool = False
    circumstances: Mapping[str, Any] = field(default_factory=dict)
    """What a run's manifest says of it beside the fingerprint: nothing that can change an outcome."""

    def leaving_out(self, savings: str) -> Backend:
        """The same backend, leaving out this work of RoboTwin's loop (``evalkit.sim.robotwin.savings``).

        Raises:
            UnknownNameError: there is no such saving.
            UserError: another simulator than RoboTwin is asked to save.
        """
        from evalkit.sim.robotwin.savings import SavingMaker, parse_savings

        chosen = parse_savings(savings)
        if not self.is_robotwin:
            if savings != "all":
                raise UserError(f"--savings {savings} is about RoboTwin's loop: leave it out for another backend")
            return self
        maker = SavingMaker(make=self.make_simulator, savings=chosen)  # type: ignore[arg-type]
        return replace(self, make_simulator=maker, circumstances={**self.circumstances, "savings": sorted(chosen)})


def load_backend(name: str, robotwin_choice: RoboTwinChoice | None = None) -> Backend:
    """A backend by name. Starts no simulator.

    Args:
        name: ``robotwin`` or ``fake``.
        robotwin_choice: the RoboTwin installation to use; the generated world if none is named.

    Raises:
        UnknownNameError: no such backend.
        UserError: RoboTwin or its assets aren't there.
    """
    world = robotwin_choice.open() if robotwin_choice is not None else None
    if world is not None:
        if name != "robotwin":
            raise UserError(f"--robotwin-root names a RoboTwin; leave --backend {name} out")
        return Backend(make_simulator=world, fingerprint=world.fingerprint, tasks=world.tasks, is_robotwin=True)
    if name == "fake":
        from evalkit.sim.fake import factory as fake

        return Backend(make_simulator=fake.maker_from_environment(), fingerprint=fake.fingerprint, tasks=TASKS)
    if name != "robotwin":
        raise UnknownNameError("backend", name, BACKENDS)
    from evalkit.sim.robotwin import factory as robotwin

    robotwin.find_install()
    tasks = STANDIN_TASKS if robotwin.find_assets().kind == "stand-in" else TASKS
    return Backend(
        make_simulator=robotwin.make_simulator, fingerprint=robotwin.fingerprint, tasks=tasks, is_robotwin=True
    )


def choose_tasks(names: str | None, backend: Backend) -> tuple[str, ...]:
    """Tasks asked for, in canonical order; all the backend can build if none is named.

    Raises:
        UnknownNameError: RoboTwin has no such task.
        UserError: the installed assets can't build a task.
    """
    from evalkit.core.tasks import parse_tasks

    tasks = parse_tasks(names) if names is not None else backend.tasks
    missing = [task for task in tasks if task not in backend.tasks]
    if missing:
        raise UserError(
            f"the installed assets have no objects for task {missing[0]}"
            f"{f' and {len(missing) - 1} more' if len(missing) > 1 else ''}; they can build {', '.join(backend.tasks)}"
        )
    return tasks
