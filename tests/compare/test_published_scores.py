from __future__ import annotations

import shutil
import tomllib
from fractions import Fraction
from pathlib import Path

import pytest

from evalkit.aggregate.audit import Finding, audit, audit_averages
from evalkit.aggregate.published import (
    AVERAGE,
    CONFIGS,
    find_tables,
    load_averages,
    load_tables,
    ranking,
    training_label,
    training_text,
)
from evalkit.core.errors import UnknownNameError, UserError
from evalkit.core.locations import bundled
from evalkit.core.tasks import TASKS
from evalkit.protocol.sheets import known_sheets
from evalkit.protocol.training_set import training_of_text

TABLES = load_tables()
BOARD = [table for table in TABLES if table.name.endswith("@leaderboard")]
FINDINGS = audit(TABLES)


def found(table: str, kind: str) -> list[Finding]:
    return [finding for finding in FINDINGS if finding.table == table and finding.kind == kind]


def test_thirty_one_complete_tables_and_395_averages() -> None:
    assert sum(all(len(table.rates.get(config, ())) == len(TASKS) for config in CONFIGS) for table in TABLES) == 31
    assert len(load_averages()) == 395


def test_every_table_says_where_it_is_from() -> None:
    assert all(table.source and table.training_as_stated for table in TABLES)
    assert all(table.training == "unknown" or training_of_text(table.training) == table.training for table in TABLES)
    assert all(table.protocol is None or table.protocol in known_sheets() for table in TABLES)
    assert len({table.name for table in TABLES}) == len(TABLES)


def test_twenty_board_entries_recompute_from_their_tasks() -> None:
    assert len(BOARD) == 20
    for table in BOARD:
        for config in CONFIGS:
            mean, stated = table.mean(config), table.stated_mean(config)
            assert mean is not None
            assert stated is not None
            assert abs(mean - Fraction(stated.percent)) <= Fraction(5, 100), (table.name, config)


def test_twenty_board_entries_rank_as_printed() -> None:
    printed = sorted(BOARD, key=lambda table: -next(mean.percent for mean in table.stated if mean.config == AVERAGE))
    by_tasks = ranking(BOARD)
    assert by_tasks == ranking(BOARD, stated=True) == tuple(table.name for table in printed)
    assert [name.partition("@")[0] for name in by_tasks[:3]] == ["ola-sem", "gigabrain-0.7", "4d-wam"]


def test_scores_are_labelled_by_their_training_data() -> None:
    labels = {table.name: [table.label(config) for config in CONFIGS] for table in TABLES}
    assert labels["x-wam@leaderboard"] == ["c2c", "c2r"]
    assert labels["x-wam@paper"] == ["mixed2c", "mixed2r"]
    assert labels["loopwam@readme"] == ["?2c", "?2r"]
    assert training_label("demo_randomized_500x50", "demo_clean") == "r2c"
    assert training_label("demo_clean_50x50", "own_config") == "c2?"
    assert training_text("demo_clean_50x50+demo_randomized_500x50") == (
        "50 clean + 500 randomized demonstrations of each of 50 tasks"
    )


def test_impossible_rate() -> None:
    (finding,) = found("x-vla@leaderboard", "impossible rate")
    assert finding.text == "handover_block 1.3 % is no k/100: next to it are 1 and 2 %"
    assert finding.wrong
    assert [item.table for item in FINDINGS if item.kind == "impossible rate"] == ["x-vla@leaderboard"]


def test_even_rates_as_of_fifty_trials() -> None:
    texts = [finding.text for finding in found("gigabrain-0.7@leaderboard", "granularity")]
    assert texts == [f"all {n} rates are multiples of 2 %: as of 50 trials, not 100" for n in (46, 48)]
    assert {item.table for item in FINDINGS if item.kind == "granularity"} == {"gigabrain-0.7@leaderboard"}


def test_means_that_the_tasks_do_not_give() -> None:
    assert [item.text for item in found("motus@starvla-readme", "stated mean")] == [
        "88.66 % is printed; the tasks give 88.52 %"
    ]
    assert [item.text for item in found("x-vla@starvla-readme", "stated mean")] == [
        "72.8 % is printed; the tasks give 72.88 %"
    ]


def test_averages_of_rounded_means() -> None:
    (finding,) = found("gigabrain-0.7@leaderboard", "stated mean")
    assert finding.text == "67.3 % is printed; the tasks give 67.36 %; the rounded 66.8 and 67.9 give 67.35"
    wrong = {item.table for item in FINDINGS if item.kind == "stated mean" and item.config == AVERAGE}
    assert wrong == {f"{name}@leaderboard" for name in ("gigabrain-0.7", "pi0.5", "eventvla", "fastwam")}


def test_a_mean_of_48_tasks() -> None:
    (finding,) = found("starvla-oft@starvla-readme-clean50", "missing tasks")
    assert finding.text == "48 of 50 tasks; without open_microwave, put_bottles_dustbin"
    assert found("starvla-oft@starvla-readme-clean50", "stated mean") == []


def test_randomized_above_clean() -> None:
    above = {item.table for item in FINDINGS if item.kind == "randomized above clean"}
    assert {"gigabrain-0.7@leaderboard", "x-wam@paper"} <= above
    assert "x-wam@leaderboard" not in above
    (finding,) = found("gigabrain-0.7@leaderboard", "randomized above clean")
    assert "unusual for clean training data alone" in finding.text


def test_the_audit_changes_nothing() -> None:
    before = load_tables()
    audit(before)
    assert before == load_tables()
    assert str(find_tables("x-vla@leaderboard", TABLES)[0].rates["demo_randomized"]["handover_block"]) == "1.3"


def test_averages_read_by_machine() -> None:
    findings = audit_averages(load_averages())
    kinds = {kind: sum(item.kind == kind for item in findings) for kind in {item.kind for item in findings}}
    assert kinds == {"missing tasks": 180, "training data": 93, "randomized above clean": 2}


@pytest.mark.parametrize("name", ["x-wam", "X-WAM", "xwam", "X WAM"])
def test_models_are_found_however_they_are_spelt(name: str) -> None:
    assert [table.name for table in find_tables(name, TABLES)] == ["x-wam@leaderboard", "x-wam@paper"]
    assert {table.key for table in find_tables("FastWAM", TABLES)} == {"fastwam", "fast-wam"}
    assert [table.key for table in find_tables("π0.5", TABLES)] == ["pi0.5"] * 3


def test_unknown_model() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown published model 'x-wan': did you mean x-wam"):
        find_tables("x-wan", TABLES)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("rates.csv", "adjust_bottle,98,98", "adjust_bottle,98,198", "has '198'; it must be a number from 0 to 100"),
        ("rates.csv", "adjust_bottle,98,98", "adjust_bottle,98,nan", "has 'nan'; it must be a number from 0 to 100"),
        ("rates.csv", "adjust_bottle,98,98", "adjust_bottles,98,98", "unknown task 'adjust_bottles'"),
        ("rates.csv", "adjust_bottle,98,98", "click_bell,98,98", "has click_bell twice"),
        ("stated.csv", "loopwam@readme", "loopwam@page", "unknown table 'loopwam@page'"),
    ],
)
def test_files_that_make_no_sense(tmp_path: Path, file: str, old: str, new: str, message: str) -> None:
    shutil.copytree(bundled("published"), tmp_path / "published")
    path = tmp_path / "published" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UserError, match=message):
        load_tables(tmp_path / "published")


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tables\.csv is missing"):
        load_tables(tmp_path)
    with pytest.raises(UserError, match=r"averages\.csv is missing"):
        load_averages(tmp_path)


def test_published_scores_travel_in_the_wheel() -> None:
    root = Path(__file__).parents[2]
    included = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert included["force-include"]["results/published"] == "evalkit/_bundled/published"
    assert bundled("published") == root / "results/published"
