from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from synthetic import card, make_run, record, split

from evalkit.aggregate.summary import summarise
from evalkit.cli.main import run_cli
from evalkit.core.outcome import Outcome
from evalkit.core.record import ErrorInfo
from evalkit.report.documents import escape_latex, escape_markdown, to_latex, to_markdown
from evalkit.report.formats import write_formats
from evalkit.store.run import Run, open_run

CLEAN, RANDOMIZED = "demo_clean", "demo_randomized"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    outcomes = {(task, config): split(2, 5) for task in ("click_bell", "grab_roller") for config in (CLEAN, RANDOMIZED)}
    outcomes["grab_roller", RANDOMIZED] = [Outcome.SUCCESS, Outcome.POLICY_ERROR, None, None, None]
    return make_run(tmp_path / "run", outcomes, training=card())


def test_markdown(run: Run) -> None:
    text = to_markdown(summarise(run))
    lines = text.splitlines()
    assert lines[0] == "# 20260102-flow-0123abcd"
    assert "| c2c (demo\\_clean) | 40.0 | \\[16.8, 68.7\\] | partial | 2 of 50 tasks, 10 of 10 trials |" in lines
    assert "| click\\_bell | 40.0 | \\[11.8, 76.9\\] | 2/5 | 40.0 | \\[11.8, 76.9\\] | 2/5 |" in lines
    assert "| grab\\_roller | 40.0 | \\[11.8, 76.9\\] | 2/5 | ? | can become 20.0 to 80.0 | 1/2 |" in lines
    assert "- c2c, c2r: all training data is demo\\_clean" in lines
    assert "- not a leaderboard number: assets are stand-in, not official" in lines
    tables = [line for line in lines if line.startswith("|")]
    assert {line.count("|") for line in tables} == {6, 8}


def test_latex(run: Run) -> None:
    text = to_latex(summarise(run))
    assert text.splitlines()[0] == "% evalkit 0.1.0, run 20260102-flow-0123abcd"
    assert "% not a leaderboard number: assets are stand-in, not official" in text
    assert r"\begin{tabular}{lrrrrrr}" in text
    assert r"task & c2c \% & 95 \% & k/n & c2r \% & 95 \% & k/n \\" in text
    assert r"click\_bell & 40.0 & [11.8, 76.9] & 2/5 & 40.0 & [11.8, 76.9] & 2/5 \\" in text
    assert r"mean of 2 tasks & 40.0 & [16.8, 68.7] & partial & ? & can become 30.0 to 60.0 & incomplete \\" in text


def test_texts_are_escaped() -> None:
    assert escape_markdown("a|b <i>*x*</i> `y`\n# z [l](u)") == r"a\|b &lt;i&gt;\*x\*&lt;/i&gt; \`y\` \# z \[l\](u)"
    assert escape_latex("50% & a_b\\input{x}\n$~^#") == (
        r"50\% \& a\_b\textbackslash{}input\{x\} \$\textasciitilde{}\textasciicircum{}\#"
    )


def test_no_text_of_a_run_leaves_a_comment(tmp_path: Path) -> None:
    made = make_run(tmp_path / "run", {("click_bell", CLEAN): split(1, 2)}, run_id="x\n\\input{evil}")
    assert "\n\\input" not in to_latex(summarise(made))


def test_parquet_holds_every_planned_trial(run: Run, tmp_path: Path) -> None:
    broken = next(spec for spec in run.plan if spec.key in {left.key for left in run.remaining()})
    error = ErrorInfo(kind="crash", message="=1+1 <b>")
    run.append(replace(record(broken, Outcome.SIM_ERROR), error=error, media=("media/a.mp4",)))
    run.close()
    (path,) = write_formats(run, summarise(run), ["parquet"], tmp_path / "out")
    frame = pd.read_parquet(path)
    assert len(frame) == len(run.plan) == 20
    assert frame["key"].tolist() == [spec.key for spec in run.plan]
    counts = {"failure": 9, "success": 7, "policy_error": 1, "sim_error": 1}
    assert frame["outcome"].value_counts().to_dict() == counts
    assert frame["outcome"].isna().sum() == 2
    assert str(frame["success_step"].dtype) == "Int64"
    row = frame[frame["outcome"] == "sim_error"].iloc[0]
    assert (row["task"], row["config"], row["label"], row["seed"]) == ("grab_roller", RANDOMIZED, "c2r", 100_002)
    assert (row["error_kind"], row["error_message"], list(row["media"])) == ("crash", "=1+1 <b>", ["media/a.mp4"])
    assert row["physics_s"] == 4.0
    assert (row["assets"], row["instruction"]) == ("stand-in", "do grab_roller")


def test_formats_of_the_command(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    arguments = ["export", str(run.folder), "--out", str(out), "--format"]
    assert run_cli([*arguments, "markdown, latex,parquet"]) == 1  # trials are missing
    assert sorted(path.name for path in out.iterdir()) == ["scores.md", "scores.tex", "trials.parquet"]
    capsys.readouterr()
    assert run_cli([*arguments, "markdwn"]) == 2
    assert "unknown format 'markdwn': did you mean markdown?" in capsys.readouterr().err
    assert run_cli([*arguments, ","]) == 2
    assert "no format named" in capsys.readouterr().err


def test_the_default_files_are_those_of_a_run(run: Run, tmp_path: Path) -> None:
    from evalkit.report.export import write_exports

    again = open_run(run.folder)
    expected = {path.name: path.read_bytes() for path in write_exports(again, summarise(again), tmp_path / "a")}
    paths = write_formats(again, summarise(again), ["csv", "json"], tmp_path / "b")
    assert {path.name: path.read_bytes() for path in paths} == expected
