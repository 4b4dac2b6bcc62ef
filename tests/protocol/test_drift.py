from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from evalkit.core.errors import UserError
from evalkit.core.locations import bundled
from evalkit.core.tasks import STEP_LIMITS
from evalkit.protocol.drift import Drift, drift
from evalkit.protocol.sheets import known_sheets, load_sheet

PROTOCOLS = bundled("task_configs") / "protocols"


def drift_of(tmp_path: Path, values: Any, name: str = "newer.yaml", protocol: str = "leaderboard") -> Drift:
    path = tmp_path / name
    path.write_text(values if isinstance(values, str) else yaml.safe_dump(values))
    return drift(load_sheet(protocol), path)


def read(path: Path) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load(path.read_text())
    return values


@pytest.mark.parametrize("name", known_sheets())
def test_a_protocol_has_not_drifted_from_itself(name: str) -> None:
    found = drift(load_sheet(name), PROTOCOLS / f"{name}.yaml")
    assert (found.kind, found.changes) == ("protocol", ())
    assert found.compared >= 18


def test_a_changed_field_of_a_newer_protocol_file(tmp_path: Path) -> None:
    values = read(PROTOCOLS / "leaderboard.yaml")
    values.update(trials_per_task=50, read_on="2027-01-01", version=3)
    values["instruction_split"]["demo_clean"] = "unseen"
    found = drift_of(tmp_path, values)
    assert {(change.name, change.stored, change.found) for change in found.changes} == {
        ("trials_per_task", "100", "50"),
        ("instruction_split of demo_clean", "seen", "unseen"),
    }


def test_a_configuration_more_or_less_is_drift(tmp_path: Path) -> None:
    values = read(PROTOCOLS / "leaderboard.yaml")
    values.update(configs=["demo_clean"], instruction_split={"demo_clean": "seen"})
    del values["scoring"]
    changes = {change.name: change.found for change in drift_of(tmp_path, values).changes}
    assert changes == {"config": "demo_clean", "instruction_split of demo_randomized": "(absent)"}


def test_step_limits(tmp_path: Path) -> None:
    found = drift_of(tmp_path, dict(STEP_LIMITS), "_eval_step_limit.yml")
    assert (found.kind, found.compared, found.changes) == ("step limits", 50, ())
    newer = {**STEP_LIMITS, "click_bell": 500, "new_task": 400}
    del newer["lift_pot"]
    changes = drift_of(tmp_path, newer).changes
    assert {(change.name, change.stored, change.found) for change in changes} == {
        ("click_bell", "400", "500"),
        ("lift_pot", "400", "(absent)"),
        ("new_task", "(absent)", "400"),
    }


def test_step_limits_of_a_protocol_with_its_own(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="step limits, which protocol x-vla doesn't follow"):
        drift_of(tmp_path, dict(STEP_LIMITS), protocol="x-vla")


@pytest.mark.parametrize("config", ["demo_clean", "demo_randomized"])
def test_task_configurations(config: str, tmp_path: Path) -> None:
    path = bundled("task_configs") / f"{config}.yml"
    found = drift(load_sheet("leaderboard"), path)
    assert (found.kind, found.changes) == ("task configuration", ())
    assert found.compared > 15

    values = read(path)
    values["domain_randomization"]["random_table_height"] = 0.05
    values["domain_randomization"]["random_gravity"] = True
    values["save_path"] = "./elsewhere"  # can't change a trial
    values["render_freq"] = 7
    del values["camera"]["head_camera_type"]
    changes = {change.name: change.found for change in drift_of(tmp_path, values, f"{config}.yml").changes}
    assert changes == {
        "domain_randomization.random_table_height": "0.05",
        "domain_randomization.random_gravity": "True",
        "camera.head_camera_type": "(absent)",
    }


def test_the_split_is_the_protocols(tmp_path: Path) -> None:
    values = read(bundled("task_configs") / "demo_clean.yml")
    [change] = drift_of(tmp_path, values, "demo_clean.yml", "robotwin-legacy").changes
    assert (change.name, change.stored, change.found) == ("eval_instruction", "unseen", "seen")
    del values["eval_instruction"]
    assert drift_of(tmp_path, values, "demo_clean.yml", "robotwin-legacy").changes == ()
    assert drift_of(tmp_path, values, "demo_clean.yml").changes == ()


@pytest.mark.parametrize(
    ("values", "name", "what"),
    [
        ({"a": "b"}, "x.yaml", "neither a protocol file"),
        ({}, "x.yaml", "neither a protocol file"),
        (
            {"domain_randomization": {}},
            "demo_other.yml",
            "isn't named like a task configuration",
        ),
        ("a: [", "x.yaml", "isn't valid YAML"),
        ({"source": "x", "configs": ["demo_clean"]}, "x.yaml", "key name is missing"),
    ],
)
def test_files_that_are_none_of_these(tmp_path: Path, values: Any, name: str, what: str) -> None:
    with pytest.raises(UserError, match=what):
        drift_of(tmp_path, values, name)
