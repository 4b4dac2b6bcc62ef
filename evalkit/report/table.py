"""The terminal view of a run: training pipeline, one line per task, and what the numbers are worth."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from evalkit.aggregate.proportions import Bounds, Estimate
from evalkit.aggregate.scores import ConfigScore, Status, Summary, TaskScore
from evalkit.aggregate.timing import Timing
from evalkit.report.pipeline import add_fact, facts_grid, pipeline_panel
from evalkit.report.text import duration, interval, number, percent

_STATUS_STYLES: dict[Status, str] = {
    "complete": "bold green",
    "partial": "bold yellow",
    "incomplete": "bold red",
    "stopped": "bold yellow",
}


RETRY_HINT = "the same command with --retry-errors"


def render(summary: Summary) -> RenderableType:
    """The whole view; made for 80 columns or more. It holds no times, so equal trials give equal text."""
    return Group(pipeline_panel(summary), task_table(summary), result_panel(summary))


def task_table(summary: Summary) -> Table:
    """One row per task: successes of trials, rate and 95 % interval under each configuration.

    The footer has the means: with the interval for these tasks, and with the one for tasks like these.
    """
    names = sorted({task.task for score in summary.configs for task in score.tasks})
    table = Table(
        box=box.SIMPLE, show_edge=False, pad_edge=False, show_footer=True, header_style="", footer_style="bold"
    )
    footer = f"mean of {number(len(names), 'task')}"
    if any(score.tasks_like_these for score in summary.configs):
        footer += "\n  for tasks like these"
    table.add_column(Text("\ntask", style="bold"), Text(footer), no_wrap=True)
    columns = [_Columns(score) for score in summary.configs]
    for column in columns:
        table.add_column(column.header(), column.mean(), no_wrap=True)
    for name in names:
        table.add_row(Text(name), *(column.task(name) for column in columns))
    return table


def result_panel(summary: Summary) -> Panel:
    """Means with their status, coverage, label and everything that limits what they may be called."""
    scores = Table.grid(padding=(0, 2))
    scores.add_column(no_wrap=True)
    scores.add_column(no_wrap=True)
    scores.add_column(overflow="fold")
    for score in summary.configs:
        name = _name_text(score.label.text, score.status)
        value = Text("    no score", style="yellow") if summary.stopping else _value_text(score.mean, score.bounds)
        scores.add_row(name, value, Text(score.coverage))
    if summary.average:
        average = summary.average
        name = _name_text("average" if average.score else "mean of both", summary.status)
        scores.add_row(name, _value_text(average.mean, average.bounds), Text(average.name))
    parts: list[RenderableType] = [scores, "", _facts(summary)]
    if summary.not_leaderboard:
        parts += ["", _not_leaderboard(summary)]
    return Panel(
        Group(*parts),
        title="Result, with 95 % intervals",
        title_align="left",
        subtitle=Text(f"run {summary.run_id}"),
        subtitle_align="right",
        box=box.ROUNDED,
        border_style="cyan",
    )


def timing_line(timing: Timing) -> Text:
    """Median time per trial by phase, and how busy the simulators were."""
    phases = [(phase, value) for phase, value in timing.median_ms.items() if phase != "wall" and value > 0]
    text = Text("median ms per trial: ", style="dim")
    text.append(", ".join(f"{phase} {value:,.0f}" for phase, value in phases), style="")
    text.append(f"; whole trial {timing.median_ms['wall']:,.0f}")
    if timing.efficiency is not None:
        text.append(
            f"; simulators at work {percent(timing.efficiency, 0)} % of {timing.trials_in_flight} x "
            f"{duration(timing.active_s)}"
        )
    return text


class _Columns:
    """The cells of one configuration, aligned by hand: a table can't give three columns one heading."""

    def __init__(self, score: ConfigScore) -> None:
        self._score = score
        self._tasks = {task.task: task for task in score.tasks}
        self._count_width = max(len("k/n"), *(len(self._count(task)) for task in score.tasks))

    def header(self) -> Text:
        text = Text(self._score.label.text, style="bold cyan")
        text.append("\n" if "(" in self._score.label.text else "  ")  # a label with its protocol fills a line
        text.append(f"{self._score.config}\n", style="cyan")
        return text.append(self._line("k/n", "%", "95 %"), style="bold")

    def task(self, name: str) -> Text:
        task = self._tasks.get(name)
        if task is None:
            return Text("not run", style="dim")
        return self._cell(self._count(task), task.estimate, task.bounds)

    def mean(self) -> Text:
        # No k/n: every task weighs the same, so the mean isn't one.
        text = self._cell("", self._score.mean, self._score.bounds)
        if wide := self._score.tasks_like_these:
            shown = f"{percent(wide.low, 1)}–{percent(wide.high, 1)}"
            text.append(f"\n{self._line('', '', shown)}", style="not bold dim")
        return text

    def _count(self, task: TaskScore) -> str:
        return f"{task.successes}/{task.done}"

    def _cell(self, count: str, estimate: Estimate | None, bounds: Bounds | None) -> Text:
        if estimate is not None:
            shown = f"{percent(estimate.low, 1)}–{percent(estimate.high, 1)}"
            text = Text(self._line(count, percent(estimate.value, 1), shown))
            text.stylize("dim", len(text) - _INTERVAL_WIDTH)
            return text
        if self._score.status == "stopped":
            return Text(self._line(count, "", ""))
        shown = f"{percent(bounds.low, 1)}…{percent(bounds.high, 1)}" if bounds else ""
        return Text(self._line(count, "?", shown), style="red")

    def _line(self, count: str, rate: str, shown: str) -> str:
        return f"{count:>{self._count_width}} {rate:>5} {shown:>{_INTERVAL_WIDTH}}"


_INTERVAL_WIDTH = len("96.3–100.0")


def _name_text(name: str, status: Status) -> Text:
    return Text(f"{name} ", style="bold").append(status, style=_STATUS_STYLES[status])


def _value_text(mean: Estimate | None, bounds: Bounds | None) -> Text:
    if mean is not None:
        text = Text(f"{percent(mean.value, 1):>5} %", style="bold")
        return text.append(f"  ({interval(mean.low, mean.high)})", style="not bold dim")
    if bounds is not None:
        return Text(f"    ?    can become {interval(bounds.low, bounds.high)}", style="red")
    return Text("    ?    nothing planned", style="red")


def _facts(summary: Summary) -> Table:
    grid = facts_grid()
    if summary.under:
        add_fact(grid, "protocol", f"{summary.under}, not the leaderboard's", "bold yellow")
        rules = "; ".join(f"{name.replace('_', ' ')} {value}" for name, value in summary.rules.items())
        add_fact(grid, "carried out", rules or "the leaderboard's rules, in RoboTwin's own order")
        if summary.not_reproduced:
            add_fact(grid, "not reproduced", "\n".join(summary.not_reproduced), "yellow")
    assets = summary.backend.get("assets")
    add_fact(grid, "assets", str(assets), "" if assets == "official" else "bold yellow")
    add_fact(grid, "renderer", str(summary.backend.get("renderer")))
    add_fact(grid, "simulator", f"{summary.backend.get('code')}, {summary.backend.get('physics')}")
    add_fact(grid, "instructions", ", ".join(f"{score.config} {score.split}" for score in summary.configs))
    for reasons in dict.fromkeys(score.label.reasons for score in summary.configs):
        labels = [score.label.text for score in summary.configs if score.label.reasons == reasons]
        add_fact(grid, f"why {', '.join(labels)}", "; ".join(reasons))
    if like_these := _tasks_like_these(summary):
        add_fact(grid, "tasks like these", like_these)
    errors = sum(score.policy_errors for score in summary.configs)
    add_fact(grid, "policy errors", _policy_errors(summary), "bold red" if errors else "")
    if any(score.dropped for score in summary.configs):
        add_fact(grid, "dropped", _dropped(summary), "bold red")
    for score in summary.configs:
        if score.n_missing:
            add_fact(grid, f"missing in {score.label.text}", _missing(score), "red")
        if score.unequal_trials:
            pooled = f"; all trials together: {percent(score.pooled.value, 1)} %" if score.pooled else ""
            text = f"differ between tasks, which still weigh the same{pooled}"
            add_fact(grid, f"trials in {score.label.text}", text)
    if any(trial.why != "not run" for score in summary.configs for task in score.tasks for trial in task.missing):
        add_fact(grid, "to try these again", RETRY_HINT)
    return grid


def _tasks_like_these(summary: Summary) -> str:
    """The means' other interval, which takes the tasks for a sample; empty for too few tasks."""
    named = [(score.label.text, score.tasks_like_these) for score in summary.configs]
    if summary.average:
        named.append(("average" if summary.average.score else "mean of both", summary.average.tasks_like_these))
    shown = [f"{name} {interval(wide.low, wide.high)}" for name, wide in named if wide]
    method = next((wide.method for _, wide in named if wide), "")
    return f"{', '.join(shown)} % ({method})" if shown else ""


def _policy_errors(summary: Summary) -> str:
    counts = [
        f"{task.policy_errors} in {task.task} ({score.label.text})"
        for score in summary.configs
        for task in score.tasks
        if task.policy_errors
    ]
    return f"{', '.join(counts)}: counted as failures" if counts else "none"


def _dropped(summary: Summary) -> str:
    counts = [f"{score.dropped} of {score.planned} in {score.label.text}" for score in summary.configs if score.dropped]
    return f"{', '.join(counts)}: trials with an exception, left out of both numbers as {summary.protocol} has it"


def _missing(score: ConfigScore, shown: int = 4) -> str:
    trials = [(task.task, trial) for task in score.tasks for trial in task.missing]
    listed = ", ".join(f"{task} seed {trial.seed} ({trial.why})" for task, trial in trials[:shown])
    return listed + (f" and {len(trials) - shown} more" if len(trials) > shown else "")


def _not_leaderboard(summary: Summary) -> Group:
    assets = str(summary.backend.get("assets"))
    prefix = {"official": "", "none": "NO ASSETS: "}.get(assets, f"{assets.upper()} ASSETS: ")
    return Group(
        Text(f"{prefix}not a leaderboard number", style="bold yellow"),
        *(Text(f"· {reason}", style="yellow") for reason in summary.not_leaderboard),
    )
