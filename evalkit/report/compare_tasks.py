"""The numbers of one comparison: a row for each task, and the means' difference with its intervals."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from evalkit.aggregate.compare import ALPHA, ConfigComparison, TaskComparison
from evalkit.aggregate.difference import Gap
from evalkit.aggregate.proportions import Bounds, Estimate
from evalkit.aggregate.tasks_like_these import TaskSample
from evalkit.report.text import interval, percent, rounded


def task_table(comparison: ConfigComparison) -> Table:
    """Successes of trials on both sides, discordant scenes if paired, difference with its interval, p after Holm."""
    paired = any(task.first_only is not None for task in comparison.tasks)
    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False, header_style="bold", collapse_padding=True)
    table.add_column("task", no_wrap=True)
    for name in ("first", "second"):
        table.add_column(name, justify="right", no_wrap=True)
    if paired:
        table.add_column("only\n1st", justify="right", no_wrap=True)
        table.add_column("only\n2nd", justify="right", no_wrap=True)
    table.add_column("points", justify="right", no_wrap=True)
    table.add_column("95 %", justify="right", no_wrap=True)
    table.add_column("p, Holm", justify="right", no_wrap=True)
    for task in comparison.tasks:
        if task.gap is None:
            blank = [""] * (len(table.columns) - 3)
            table.add_row(Text(task.task), *blank, Text(f"{task.n_missing} missing", style="red"), "")
            continue
        cells = [_count(task.gap.first), _count(task.gap.second)]
        if paired:
            cells += [str(task.first_only), str(task.second_only)]
        cells += [points(task.gap.value), interval(task.gap.low, task.gap.high, 0)]
        table.add_row(Text(task.task), *cells, _marked(task))
    return table


def gap_lines(gap: Gap, like_these: TaskSample | None, like_these_p: float | None) -> Table:
    """Both means and their difference: for these tasks, and for tasks like these."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    means = f"{percent(gap.first.value, 1)} % against {percent(gap.second.value, 1)} %"
    grid.add_row("means", Text(f"{means}: {points(gap.value)} points", style="bold"))
    z = "" if gap.test.z is None else f"z {rounded(gap.test.z, 2)}, "
    shown = f"{interval(gap.low, gap.high)} points; {z}p {p_value(gap.test.p)}, {gap.test.name}"
    grid.add_row("these tasks", Text(shown))
    if like_these is not None:
        shown = interval(like_these.low, like_these.high)
        p = "" if like_these_p is None else f"; p {p_value(like_these_p)}, Student's t"
        grid.add_row("tasks like these", Text(f"{shown} points, {like_these.method}{p}"))
    return grid


def mean_cells(mean: Estimate | None, bounds: Bounds | None, stated: float | None) -> tuple[Text, Text]:
    """A mean in percent and its interval; what it can still become; or what a source states."""
    if mean is not None:
        return Text(percent(mean.value, 1), style="bold"), Text(f"{percent(mean.low, 1)}–{percent(mean.high, 1)}")
    if bounds is not None:
        return Text("?", style="red"), Text(f"{percent(bounds.low, 1)}…{percent(bounds.high, 1)}", style="red")
    if stated is not None:
        return Text(percent(stated, 1), style="bold"), Text("as stated", style="dim")
    return Text("?"), Text("")


def points(value: float) -> str:
    """A difference in percentage points with its sign, e.g. ``"+4.2"``."""
    text = percent(value, 1)
    return text if text.startswith("-") else f"+{text}"


def p_value(p: float) -> str:
    """E.g. ``"0.035"``, ``"5.1e-14"``."""
    if p >= 0.001:
        return rounded(p, 3)
    return f"{p:.1e}" if p > 1e-300 else "< 1e-300"


def _marked(task: TaskComparison) -> Text:
    if task.p_holm is None:
        return Text("")
    told = task.p_holm <= ALPHA
    return Text(f"{p_value(task.p_holm)}{' *' if told else '  '}", style="bold" if told else "dim")


def _count(estimate: Estimate) -> str:
    return f"{round(estimate.value * estimate.n)}/{estimate.n}"
