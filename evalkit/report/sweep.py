"""A sweep on the terminal: one row per checkpoint, and what may be said about the best of them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from evalkit.aggregate.proportions import Bounds, Estimate
from evalkit.aggregate.scores import ConfigScore
from evalkit.aggregate.sweep import AVERAGE, FOLDS, Against, Entry, SweepScores
from evalkit.report.text import count, interval, number, percent, rounded
from evalkit.store.sweep import SweepInfo

_SAME_SETTINGS = (
    "--mode",
    "--tasks",
    "--protocol",
    "--repeats",
    "--execute-steps",
    "--policy-python",
    "--backend",
    "--robotwin-root",
    "--robotwin-python",
)
"""Options that the score on fresh scenes must share."""


def render_sweep(scores: SweepScores, info: SweepInfo) -> RenderableType:
    """The terminal view; made for 80 columns or more."""
    return Group(sweep_table(scores), _panel(scores, info))


def sweep_table(scores: SweepScores) -> Table:
    """One row per checkpoint: means with 95 % intervals, and the difference to the best."""
    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("checkpoint", overflow="fold", min_width=10)
    labels = common_labels(scores)
    for config, label in labels.items():
        heading = Text(label or config, style="bold cyan")
        if label:
            heading.append(f"\n{config}", style="not bold cyan")
        table.add_column(heading, justify="right", no_wrap=True)
    if scores.by == AVERAGE:
        table.add_column("mean\n ", justify="right", no_wrap=True)
    table.add_column(f"minus the best\nin {_by(scores)}", justify="right", no_wrap=True)
    for entry in scores.entries:
        cells = [_config_cell(score) for score in entry.summary.configs]
        if entry.summary.average is not None:
            cells.append(_cell(entry.summary.average.mean, entry.summary.average.bounds))
        name = Text(entry.name, style="bold green" if entry.is_best else "")
        if None in labels.values():
            own = dict.fromkeys(score.label.text for score in entry.summary.configs)
            name.append(f"\n{', '.join(own)}", style="not bold not green cyan")
        table.add_row(name, *cells, _against_cell(entry))
    return table


def common_labels(scores: SweepScores) -> dict[str, str | None]:
    """Configuration -> the label of all checkpoints under it, or None if they have several."""
    found: dict[str, set[str]] = {}
    for entry in scores.entries:
        for score in entry.summary.configs:
            found.setdefault(score.config, set()).add(score.label.text)
    return {config: labels.pop() if len(labels) == 1 else None for config, labels in found.items()}


def remarks(scores: SweepScores) -> list[str]:
    """What a reader must know before using the best one's number, one paragraph each."""
    lines = []
    best = scores.best
    if scores.incomplete:
        names = ", ".join(entry.name for entry in scores.incomplete)
        lines.append(
            f"Trials are missing, so these aren't compared: {names}. Shown of them: successes/trials so far of those "
            "planned, and what the mean can still become."
        )
    if best is None or best.value is None:
        return lines
    others = [entry for entry in scores.entries if entry.against is not None]
    if not others:
        return lines
    near = [entry.name for entry in others if entry.against and not entry.against.told_apart]
    level = [entry.name for entry in others if entry.value and entry.value.value == best.value.value]
    lines.append(
        f"{best.name} is best in {_by(scores)} here{', level with ' if level else ''}{', '.join(level)}. "
        + (f"Not told apart from it: {', '.join(near)}." if near else "All others were found worse.")
    )
    paired = min(entry.against.gap.n_shared for entry in others if entry.against)
    lines.append(
        f"Differences are {f'paired on {count(paired)} shared scenes' if paired else 'unpaired'}. Their intervals hold "
        f"together at 95 % for {_all_pairs(scores.pairs)}, and p is adjusted for as many tests (Holm)."
    )
    elsewhere = ""
    if scores.chosen_elsewhere is not None:
        elsewhere = (
            f" Chosen on a part of the scenes and scored on the rest (in up to {FOLDS} parts), such a choice has "
            f"{percent(scores.chosen_elsewhere, 1)} %, against {percent(best.value.value, 1)} % here."
        )
    lines.append(
        f"The best of {len(others) + 1} was chosen by the trials that score it, so its score is on average too "
        f"high.{elsewhere} For a number to report, run it on fresh scenes: {fresh_command(best)}"
    )
    return lines


def fresh_command(best: Entry) -> str:
    """The command that scores a chosen policy on scenes it wasn't chosen on."""
    info = best.run.info
    policy = info.policy
    what = ["--ckpt", policy.checkpoint] if policy.checkpoint else ["--policy", _adapter_or_file(best)]
    more = ["--trials", str(info.trials_per_task), "--seed-base", str(info.seed_base + 1)]
    given = _given(info.command, _SAME_SETTINGS)
    return shlex.join(["evalkit", "run", *what, *given, *more])


def difference(against: Against) -> str:
    """E.g. ``"-12.5, p 0.034"``."""
    p = rounded(against.p, 3) if against.p >= 0.001 else f"{against.p:.0e}"
    return f"{signed(against.gap.value)}, p {p}"


def signed(fraction: float) -> str:
    """A difference in percentage points, with its sign."""
    return f"{'+' if fraction > 0 else ''}{percent(fraction, 1)}"


def _panel(scores: SweepScores, info: SweepInfo) -> Panel:
    parts: list[RenderableType] = []
    for line in remarks(scores):
        parts += [Text(line), ""]
    for line in info.left_out:
        parts.append(Text(f"left out: {line}", style="yellow"))
    for run_id, reason in info.failures.items():
        parts.append(Text(f"{run_id} ended early: {reason}", style="red"))
    reasons = not_leaderboard(scores)
    if reasons:
        parts.append(Text("not leaderboard numbers", style="bold yellow"))
        parts += [Text(f"· {reason}", style="yellow") for reason in reasons]
    if parts and parts[-1] == "":
        parts.pop()
    return Panel(
        Group(*parts),
        title=f"{number(len(scores.entries), 'checkpoint')} on the same scenes, with 95 % intervals",
        title_align="left",
        subtitle=Text(f"sweep {info.sweep}"),
        subtitle_align="right",
        box=box.ROUNDED,
        border_style="cyan",
    )


def not_leaderboard(scores: SweepScores) -> list[str]:
    """Why these aren't leaderboard numbers: the reasons of all checkpoints, then those of some, by name."""
    of_all = {entry.name: entry.summary.not_leaderboard for entry in scores.entries}
    common = [
        reason for reason in scores.entries[0].summary.not_leaderboard if all(reason in r for r in of_all.values())
    ]
    own = [
        f"{name}: {'; '.join(r)}" for name, reasons in of_all.items() if (r := [x for x in reasons if x not in common])
    ]
    return common + own


def _config_cell(score: ConfigScore) -> Text:
    return _cell(score.mean, score.bounds, f"{score.successes}/{score.done} of {score.planned}")


def _cell(mean: Estimate | None, bounds: Bounds | None, so_far: str = "?") -> Text:
    if mean is not None:
        shown = f"\n{percent(mean.low, 1)}–{percent(mean.high, 1)}"
        return Text(f"{percent(mean.value, 1)} %").append(shown, style="dim")
    shown = f"\n{percent(bounds.low, 1)}…{percent(bounds.high, 1)}" if bounds else ""
    return Text(so_far, style="yellow").append(shown, style="dim")


def _against_cell(entry: Entry) -> Text:
    if entry.is_best:
        return Text("best", style="bold green")
    if entry.against is None:
        return Text("")
    text = Text(difference(entry.against), style="red" if entry.against.told_apart else "")
    return text.append(f"\n{interval(entry.against.joint_low, entry.against.joint_high)}", style="not red dim")


def _by(scores: SweepScores) -> str:
    return "the mean" if scores.by == AVERAGE else scores.by


def _all_pairs(pairs: int) -> str:
    return "the one pair" if pairs == 1 else f"all {pairs} pairs of checkpoints"


def _adapter_or_file(entry: Entry) -> str:
    """What names a policy without a checkpoint on the command line; a run doesn't know the path of its policy file."""
    info = entry.run.info
    named = [part for value in _given(info.command, ("--policy",)) for part in value.split("=")[-1].split(",")]
    return info.policy.adapter if info.policy.adapter in map(str.strip, named) else "ITS_POLICY_FILE"


def _given(command: Sequence[str], options: Sequence[str]) -> list[str]:
    """Those options of a command line that decide the scenes, as they were given."""
    found: list[str] = []
    for place, word in enumerate(command):
        if word.split("=")[0] in options:
            found += [word] if "=" in word else list(command[place : place + 2])
    return found
