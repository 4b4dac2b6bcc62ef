"""A score says which protocol it was measured under, wherever it stands."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest

from evalkit.aggregate.summary import summarise
from evalkit.cli.main import run_cli
from evalkit.core.errors import UserError
from evalkit.report.export import write_exports
from evalkit.report.html import write_page
from evalkit.report.rows import checkpoint_row


def test_protocols_make_different_runs_and_keep_their_seed_lists_apart(repeat, tmp_path):
    ours, theirs = repeat("leaderboard"), repeat("x-vla", folder="other")
    assert not {spec.key for spec in ours.run.plan} & {spec.key for spec in theirs.run.plan}
    assert ours.run.info.identity_digest() != theirs.run.info.identity_digest()
    lists = {str(path.relative_to(tmp_path / "seeds/x").parent) for path in (tmp_path / "seeds").rglob("*.jsonl")}
    assert lists == {".", "from-2000_task-name"}
    with pytest.raises(UserError, match="holds another run"):
        repeat("robotwin-2026-08")  # the same scenes and sentences, but errors count otherwise
    assert "rules.first_seed" not in ours.run.info.identity()  # what is on disk from before keeps its identity


def test_rules_of_trials_are_in_their_keys(repeat, with_rules):
    plain = repeat("robotwin-2026-08").run.plan
    assert plain[0].key == replace(plain[0], success="any_instant", history="fresh").key
    assert len({replace(plain[0], **change).key for change in ({}, {"success": "at_end"}, {"history": "task"})}) == 3


def test_scores_carry_the_protocols_name(repeat):
    run = repeat("x-vla", trials=2).run
    summary = summarise(run)
    [score] = summary.configs
    assert score.label.text == "?2c (x-vla)"
    assert summary.not_leaderboard[0] == "it was measured under protocol x-vla"
    assert "step_limits is 300; the leaderboard has official" in summary.not_leaderboard
    assert "action_type is qpos; x-vla has ee" in summary.not_reproduced
    assert not any(line.startswith("step_limits") for line in summary.not_reproduced)
    row = checkpoint_row(summary)
    assert (row["protocol"], row["c2c"], row["leaderboard_entry"]) == ("x-vla", "", "no")
    write_exports(run, summary)
    with (run.folder / "leaderboard.csv").open() as file:
        assert next(csv.DictReader(file))["not_reproduced"].startswith("assets is none")
    page = write_page(run).read_text()
    assert "x-vla, not the leaderboard" in page
    assert "not reproduced" in page


def test_what_the_source_leaves_open_is_named(repeat):
    lines = repeat("x-wam").summary.not_reproduced
    assert "errors is policy_failure_sim_missing; the source of x-wam doesn't say" in lines
    assert "first_seed is 100000 * (1 + s); x-wam has 100000 * (1 + s), s for each worker" in lines


def test_comparing_runs_of_two_protocols(repeat, tmp_path, capfd):
    repeat("leaderboard", folder="a")
    repeat("x-vla", folder="b")
    repeat("robotwin-legacy", folder="c")
    run_cli(["compare", str(tmp_path / "a"), str(tmp_path / "b")])
    text = " ".join(capfd.readouterr().out.split())
    assert "not comparable" in text
    assert "step limits" in text
    run_cli(["compare", str(tmp_path / "a"), str(tmp_path / "c")])
    text = " ".join(capfd.readouterr().out.split())
    assert "instruction split" in text
