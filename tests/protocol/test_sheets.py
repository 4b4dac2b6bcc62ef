"""The protocols that travel with evalkit, against the facts they were written from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalkit.core.errors import UnknownNameError, UserError
from evalkit.core.locations import bundled
from evalkit.protocol.comparability import FIELDS, values_of
from evalkit.protocol.config import load_config
from evalkit.protocol.sheets import known_sheets, load_sheet, read_sheet, unknown_fields
from evalkit.protocol.words import MEANINGS, meaning

FACTS = {
    # first seed, trials, split of clean, split of randomized, source of the sentence, step limits, accepted, errors
    "leaderboard": "100000 * (1 + s)|100|seen|unseen|templates|official|expert_in_order|policy_failure_sim_missing",
    "robotwin-legacy": "100000 * (1 + s)|100|unseen|unseen|templates|official|expert_in_order|stops_task",
    "robotwin-2026-08": "100000 * (1 + s)|100|seen|unseen|templates|official|expert_in_order|failure",
    "x-wam": "100000 * (1 + s), s for each worker|100|unseen|unseen|templates|official|expert_in_order|unknown",
    "lingbot-va": "10000 * (1 + s)|100|seen|seen|templates|official|expert_in_order|stops_task",
    "x-vla": "2000 * (1 + s)|per_run|none|none|task_name|300|expert_in_order|dropped",
    "lerobot": "1000|per_run|seen|-|task_name_mostly|1200|unfiltered|stops_run",
    "vla-eval": "100000 * (1 + s)|100|seen|seen|templates|official|expert_list|failure",
}


def test_all_are_there() -> None:
    assert set(known_sheets()) == set(FACTS)


@pytest.mark.parametrize("name", list(FACTS))
def test_facts(name: str) -> None:
    sheet = load_sheet(name)
    first, trials, clean, randomized, source, limits, accepted, errors = FACTS[name].split("|")
    assert sheet.name == name
    assert sheet.facts["first_seed"] == first
    assert sheet.facts["trials_per_task"] == trials
    assert sheet.instruction_split.get("demo_clean") == clean
    assert sheet.instruction_split.get("demo_randomized", "-") == randomized
    assert sheet.facts["instruction_source"] == source
    assert sheet.facts["step_limits"] == limits
    assert sheet.facts["accepted_seeds"] == accepted
    assert sheet.facts["errors"] == errors


@pytest.mark.parametrize("name", list(FACTS))
def test_every_sheet_has_source_date_and_terms(name: str) -> None:
    sheet = load_sheet(name)
    assert len(sheet.source) > 20
    assert sheet.read_on.startswith("2026-")
    assert set(sheet.notes) <= {"configs", *FIELDS}
    for config in sheet.configs:
        terms = sheet.terms(config)
        assert all(values_of(getattr(terms, field)) for field in FIELDS)
        assert terms.config == config


def test_words_mean_something() -> None:
    for name in known_sheets():
        sheet = load_sheet(name)
        for field, fact in {**sheet.facts, "instruction_split": tuple(sheet.instruction_split.values())}.items():
            if field in MEANINGS:
                for fact_or_word in values_of(fact):
                    assert meaning(field, fact_or_word), (name, field, fact_or_word)
    assert meaning("training", "demo_clean_50x50") == ""


def test_what_a_source_leaves_open_is_named() -> None:
    assert unknown_fields(load_sheet("leaderboard")) == ()
    assert "embodiment" in unknown_fields(load_sheet("x-wam"))
    assert unknown_fields(load_sheet("robotwin-legacy")) == ("training",)


def test_terms_take_the_scores_own_values() -> None:
    terms = load_sheet("robotwin-legacy").terms("demo_clean", training="demo_clean_50x12", tasks="12")
    assert (terms.training, terms.tasks, terms.protocol) == ("demo_clean_50x12", "12", "robotwin-legacy")
    with pytest.raises(UnknownNameError, match="unknown task configuration of protocol lerobot 'demo_randomized'"):
        load_sheet("lerobot").terms("demo_randomized")


def test_the_newest_script_takes_the_split_from_the_configuration() -> None:
    sheet = load_sheet("robotwin-2026-08")
    assert sheet.instruction_split == {config: load_config(config).instruction_split for config in sheet.configs}


def test_rows_tell_the_split_of_each_configuration() -> None:
    rows = load_sheet("leaderboard").rows()
    assert rows["instruction_split of demo_clean"] == "seen"
    assert rows["action_type"] == "qpos or ee"
    assert rows["config"] == "demo_clean and demo_randomized"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda values: values.pop("renderer"), "key renderer is missing"),
        (lambda values: values.update(rendrer="x"), "unknown key in .*'rendrer': did you mean renderer"),
        (lambda values: values.update(configs="demo_clean"), "configs is 'demo_clean'; it must be a list"),
        (lambda values: values.update(configs=["demo_clen"]), "unknown task configuration in .*'demo_clen'"),
        (lambda values: values.update(instruction_split={"demo_clean": "seen"}), r"instruction_split\.demo_randomized"),
        (lambda values: values.update(training="clean_50"), "write it like demo_clean_50x50"),
        (lambda values: values.update(training=True), "training is True; it must be a word"),
        (lambda values: values.update(trials_per_task="many"), "trials_per_task is 'many'; it must be a whole number"),
        (lambda values: values.update(trials_per_task=0), "trials_per_task is 0"),
        (lambda values: values.update(action_type=[]), "action_type is \\[\\]; it must be a word"),
        (lambda values: values.update(action_type=["joint"]), "unknown action_type in .*'joint'"),
        (lambda values: values.update(version="new"), "version is 'new'"),
        (lambda values: values.update(notes={"seed": "x"}), r"unknown key in .*'notes\.seed'"),
        (lambda values: values.update(notes="x"), "notes must be a mapping"),
    ],
)
def test_wrong_sheets_are_refused(tmp_path: Path, change: Callable[[dict[str, Any]], Any], what: str) -> None:
    values = yaml.safe_load((bundled("task_configs") / "protocols/x-wam.yaml").read_text())
    change(values)
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(values))
    with pytest.raises(UserError, match=what):
        read_sheet(path)


@pytest.mark.parametrize(("text", "what"), [("a: [", "isn't valid YAML"), ("- a", "holds list, not a mapping")])
def test_files_that_are_no_sheet(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=what):
        read_sheet(path)
    with pytest.raises(UserError, match="can't be read"):
        read_sheet(tmp_path / "none.yaml")
