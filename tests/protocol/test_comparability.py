from __future__ import annotations

from dataclasses import replace

import pytest

from evalkit.protocol.comparability import FIELDS, SEVERITIES, Terms, compare_protocols
from evalkit.protocol.sheets import load_sheet

OURS = load_sheet("leaderboard").terms("demo_randomized")

OTHER = {
    "training": "demo_clean_51x50",
    "config": "demo_clean",
    "tasks": "49",
    "embodiment": "piper",
    "assets": "stand-in",
    "task_code": "0000000",
    "renderer": "raster",
    "action_type": "delta",
    "first_seed": "10000 * (1 + s)",
    "accepted_seeds": "expert_list",
    "trials_per_task": "50",
    "instruction_source": "task_name",
    "instruction_split": "seen",
    "step_limits": "300",
    "success": "last_instant",
    "errors": "failure",
    "denominator": "completed_trials",
    "score": "micro_mean",
}
BLOCKING = {
    *("training", "config", "tasks", "embodiment", "assets", "instruction_source", "step_limits", "success", "score"),
}


def test_the_same_terms() -> None:
    found = compare_protocols(OURS, OURS)
    assert (found.legal, found.fields, found.reason) == (True, (), "comparable: the same terms")


def test_every_field_has_a_rule_and_a_case() -> None:
    assert set(SEVERITIES) == set(FIELDS) == set(OTHER)


@pytest.mark.parametrize("field", list(OTHER))
def test_one_difference(field: str) -> None:
    found = compare_protocols(OURS, replace(OURS, protocol="theirs", **{field: OTHER[field]}))
    [difference] = found.fields
    assert (difference.name, difference.theirs) == (field, OTHER[field])
    assert difference.severity == ("blocks" if field in BLOCKING else "caveat")
    assert found.legal == (field not in BLOCKING)
    assert field in found.reason
    assert OTHER[field] in found.reason
    assert "\n" not in found.reason
    assert found.reason.startswith("comparable, but" if found.legal else "not comparable:")
    assert (found.ours, found.theirs) == ("leaderboard", "theirs")


@pytest.mark.parametrize("field", list(OTHER))
@pytest.mark.parametrize("word", ["unknown", "per_run"])
def test_what_is_not_known_blocks_only_where_it_must_be_known(field: str, word: str) -> None:
    unknown = replace(OURS, **{field: word})
    for found in (compare_protocols(OURS, unknown), compare_protocols(unknown, OURS)):
        assert found.legal == (field not in ("training", "config"))
        assert [difference.name for difference in found.fields] == [field]
    assert compare_protocols(unknown, unknown).fields, "two unknowns don't agree"


def test_several_values_agree_with_any_of_them() -> None:
    for action_type in ("qpos", "ee", ("ee", "qpos")):
        assert compare_protocols(OURS, replace(OURS, action_type=action_type)).fields == ()


@pytest.mark.parametrize(
    ("field", "value"), [("accepted_seeds", "unfiltered"), ("denominator", "trials_without_error")]
)
def test_values_that_block_by_themselves(field: str, value: str) -> None:
    theirs = replace(OURS, **{field: value})
    assert not compare_protocols(OURS, theirs).legal
    assert not compare_protocols(theirs, OURS).legal
    assert compare_protocols(theirs, theirs).legal


def test_x_wams_paper_is_not_comparable_with_its_own_leaderboard_entry() -> None:
    found = compare_protocols(OURS, load_sheet("x-wam").terms("demo_randomized"))
    assert found.reason == (
        "not comparable: training is demo_clean_50x50 here, demo_clean_50x50+demo_randomized_500x50 there"
    )


def legacy_and_newest(config: str) -> tuple[Terms, Terms]:
    sheets = load_sheet("robotwin-legacy"), load_sheet("robotwin-2026-08")
    legacy, newest = (sheet.terms(config, training="demo_clean_50x50") for sheet in sheets)
    return legacy, newest


def test_the_sentences_changed_under_demo_clean_only() -> None:
    assert {found.name for found in compare_protocols(*legacy_and_newest("demo_clean")).fields} == {
        "errors",
        "instruction_split",
    }
    clean, randomized = (compare_protocols(*legacy_and_newest(name)) for name in ("demo_clean", "demo_randomized"))
    assert clean.legal
    assert randomized.legal
    assert {found.name for found in randomized.fields} == {"errors"}


@pytest.mark.parametrize(("name", "blocking"), [("lerobot", 4), ("x-vla", 3), ("vla-eval", 0), ("lingbot-va", 0)])
def test_evaluators_with_the_same_training_data(name: str, blocking: int) -> None:
    ours = load_sheet("leaderboard").terms("demo_clean")
    theirs = load_sheet(name).terms("demo_clean", training="demo_clean_50x50")
    assert len(compare_protocols(ours, theirs).blocking) == blocking
    assert compare_protocols(ours, theirs).caveats
