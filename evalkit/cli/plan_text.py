"""A preflight as a page for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evalkit.plan.cost import PICTURES_SHARE, Effort
from evalkit.report.text import count, duration, number, percent

if TYPE_CHECKING:
    from evalkit.cli.plan import Preflight

_PARTS = (
    ("set-up", "setup_s"),
    ("physics", "physics_s"),
    ("pictures", "pictures_s"),
    ("policy", "policy_s"),
    ("expert checks", "expert_s"),
)


def render(plan: Preflight) -> RenderableType:
    """Counts, hours by part, wall time, memory, and what would make it faster."""
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column()
    for name, text in _facts(plan):
        facts.add_row(name, Text(text))
    parts: list[RenderableType] = [Text(f"{plan.policy} on {plan.backend.assets} assets", style="bold"), facts]
    if plan.cost is not None:
        parts += [Text(), _table(plan)]
    remarks = _remarks(plan)
    if remarks:
        parts += [Text(), Text("what to know", style="bold"), *(Text(f"- {remark}") for remark in remarks)]
    return Group(*parts)


def _facts(plan: Preflight) -> list[tuple[str, str]]:
    left = plan.trials - plan.done
    facts = [
        (
            "trials",
            f"{count(plan.trials)} in {number(plan.lists, 'list')}: {count(plan.done)} done, {count(left)} to run",
        )
    ]
    if plan.candidates:
        known = f"{count(plan.seeds_known)} accepted seeds known, the lists aren't complete: "
        facts.append(("seeds", known + f"about {count(round(plan.candidates))} candidates to check, at least"))
    else:
        known = f"all {count(plan.seeds_known)} known: " if plan.seeds_known else ""
        facts.append(("seeds", f"{known}no expert check"))
    facts.append(("rates", "; ".join(plan.sources) if plan.sources else "none"))
    memory = f"{plan.memory_available / 2**30:.1f} GB available"
    if plan.memory_per_worker is not None:
        each = plan.memory_per_worker / 2**30
        memory = (
            f"{each:.2f} GB a simulator, {number(plan.machine.workers, 'worker')}: "
            f"{each * plan.machine.workers:.1f} GB; {memory}"
        )
    facts.append(("memory", memory))
    return facts


def _table(plan: Preflight) -> Table:
    gpus = f", {number(plan.machine.gpus, 'GPU')}" if plan.machine.gpus else ""
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        header_style="bold",
        title=f"time with {number(plan.machine.workers, 'worker')}{gpus}",
        title_justify="left",
    )
    table.add_column("trials are", no_wrap=True)
    for name in ("wall", *(["GPU-hours"] if plan.machine.gpus else []), "bound by"):
        table.add_column(name, justify="right", no_wrap=True)
    shown = [(name, field) for name, field in _PARTS if any(getattr(e, field) for e, _, _ in plan.spans.values())]
    for name, _ in shown:
        table.add_column(name, justify="right", no_wrap=True)
    for name, (effort, wall_s, bound) in plan.spans.items():
        hours = [f"{plan.machine.gpus * wall_s / 3600:.1f}"] if plan.machine.gpus else []
        shares = [_share(effort, field) for _, field in shown]
        style = "bold" if name == "expected" else None
        table.add_row(name, duration(wall_s), *hours, bound, *shares, style=style)
    return table


def _share(effort: Effort, field: str) -> str:
    return f"{percent(getattr(effort, field) / effort.total_s, 0)} %"


def _remarks(plan: Preflight) -> list[str]:
    remarks = []
    if plan.trials == plan.done:
        return ["nothing is left to run"]
    if plan.cost is None:
        return ["no rates of this world on this machine, so no hours: evalkit robotwin bench measures them in minutes"]
    spans, machine = plan.spans, plan.machine
    effort, _, bound = spans.get("expected") or spans["longest"]
    shortest = "shortest: as long as the expert's demonstrations; " if "shortest" in spans else ""
    expected = "expected: as long as this policy's trials were; " if "expected" in spans else ""
    remarks.append(f"{shortest}{expected}longest: all to the horizon")
    remarks.append("waiting for one another, and the run's end with few trials left, come on top")
    if plan.cost.borrowed:
        remarks.append(
            f"{len(plan.cost.borrowed)} of {number(plan.lists, 'list')} have no rate of their own: the median of the "
            "others stands for them (evalkit robotwin bench --tasks all)"
        )
    remarks += [f"not in it: {what}" for what in plan.cost.unknown]
    if effort.expert_s:
        remarks.append(
            f"expert checks are {_share(effort, 'expert_s')} of the work, and done once: the next policy in this world "
            "meets the same seeds"
        )
    if machine.workers < plan.cpus and bound == "workers":
        remarks.append(f"{plan.cpus} CPUs, {number(machine.workers, 'worker')}: --workers {plan.cpus} is faster")
    if machine.workers > plan.cpus:
        remarks.append(f"{number(machine.workers, 'worker')} share {plan.cpus} CPUs: the wall time will be longer")
    if plan.memory_per_worker and plan.memory_per_worker * machine.workers > plan.memory_available:
        fits = max(1, plan.memory_available // plan.memory_per_worker)
        remarks.append(f"memory is enough for {number(fits, 'worker')}: --workers {fits}")
    if bound == "pictures":
        remarks.append("pictures of all workers take turns on the GPU: more workers don't help, another GPU does")
    elif effort.pictures_s > PICTURES_SHARE * effort.total_s:
        remarks.append(
            f"pictures are {_share(effort, 'pictures_s')} of the work: a policy with fewer cameras or longer chunks "
            "needs fewer"
        )
    if bound == "the policy":
        remarks.append("the policy is the bound: another GPU, or a policy that decides for several trials at once")
    return remarks
