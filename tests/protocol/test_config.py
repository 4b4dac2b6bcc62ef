from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from evalkit.core.errors import UnknownNameError, UserError
from evalkit.core.locations import bundled
from evalkit.protocol.config import flatten, load_config
from evalkit.protocol.schema import SCHEMA


def settings_of(name: str = "demo_clean") -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load((bundled("task_configs") / f"{name}.yml").read_text())
    return values


def written(tmp_path: Path, values: Any, name: str = "mine.yml") -> str:
    path = tmp_path / name
    path.write_text(values if isinstance(values, str) else yaml.safe_dump(values))
    return str(path)


def changed(key: str, value: Any) -> dict[str, Any]:
    values = settings_of()
    group, dot, inner = key.partition(".")
    if dot:
        values[group][inner] = value
    else:
        values[key] = value
    return values


def test_known_names() -> None:
    clean, randomized = load_config("demo_clean"), load_config("demo_randomized")
    assert (clean.instruction_split, randomized.instruction_split) == ("seen", "unseen")
    assert clean.digest != randomized.digest
    assert len(clean.digest) == 64
    assert randomized.settings["domain_randomization"]["random_table_height"] == 0.03
    assert set(flatten(clean.settings)) == set(SCHEMA)


def test_misspelt_name() -> None:
    with pytest.raises(UnknownNameError, match="unknown task configuration 'demo_clena': did you mean demo_clean"):
        load_config("demo_clena")


def test_a_copy_is_the_same_configuration(tmp_path: Path) -> None:
    copy = load_config(written(tmp_path, settings_of()))
    assert copy.name == "mine"
    assert copy.digest == load_config("demo_clean").digest


@pytest.mark.parametrize("name", ["demo_clean.yml", "demo_clean.yaml"])
def test_a_known_name_must_mean_the_known_settings(tmp_path: Path, name: str) -> None:
    assert load_config(written(tmp_path, settings_of(), name)).digest == load_config("demo_clean").digest
    path = written(tmp_path, changed("domain_randomization.random_light", True), name)
    with pytest.raises(UserError, match=r"random_light: True here, False in demo_clean\): rename the file"):
        load_config(path)


@pytest.mark.parametrize("key", list(SCHEMA))
def test_digest_holds_what_can_change_a_trial_and_nothing_else(tmp_path: Path, key: str) -> None:
    old = flatten(load_config("demo_clean").settings)[key]
    other = {
        "bool": not old,
        "count": 7,
        "fraction": 0.5,
        "distance_m": 0.01,
        "text": "./elsewhere",
        "camera": "Large_D435",
        "split": "unseen",
        "embodiment": ["piper", "piper", 0.6],
    }[SCHEMA[key].kind]
    digest = load_config(written(tmp_path, changed(key, other))).digest
    assert (digest != load_config("demo_clean").digest) == SCHEMA[key].in_digest


def test_whole_and_decimal_numbers_are_one_setting(tmp_path: Path) -> None:
    path = written(tmp_path, changed("domain_randomization.clean_background_rate", 1.0))
    assert load_config(path).digest == load_config("demo_clean").digest


@pytest.mark.parametrize("key", ["domain_randomization.random_lite", "embodimant"])
def test_unknown_key_names_file_and_nearest_key(tmp_path: Path, key: str) -> None:
    path = written(tmp_path, changed(key, True))
    nearest = {"embodimant": "embodiment"}.get(key, "domain_randomization.random_light")
    with pytest.raises(UnknownNameError, match=rf"unknown key in {path}: '{key}': did you mean {nearest}"):
        load_config(path)


def test_missing_key_names_file_and_key(tmp_path: Path) -> None:
    values = settings_of()
    del values["camera"]["head_camera_type"]
    with pytest.raises(UserError, match=r"mine\.yml: key camera\.head_camera_type is missing"):
        load_config(written(tmp_path, values))


def test_missing_group_names_its_first_key(tmp_path: Path) -> None:
    values = settings_of()
    del values["camera"]
    with pytest.raises(UserError, match=r"key camera\.head_camera_type \(and 3 more\) is missing"):
        load_config(written(tmp_path, values))


def test_older_files_must_say_which_instructions(tmp_path: Path) -> None:
    values = settings_of()
    del values["eval_instruction"]
    with pytest.raises(UserError, match="add 'eval_instruction: seen' or 'eval_instruction: unseen'"):
        load_config(written(tmp_path, values))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("domain_randomization.random_light", "yes please"),
        ("domain_randomization.random_light", 1),
        ("domain_randomization.clean_background_rate", 1.5),
        ("domain_randomization.clean_background_rate", True),
        ("domain_randomization.clean_background_rate", float("nan")),
        ("domain_randomization.random_table_height", -0.1),
        ("episode_num", 2.5),
        ("episode_num", True),
        ("save_path", None),
        ("camera.head_camera_type", "D345"),
        ("eval_instruction", "both"),
        ("embodiment", "aloha-agilex"),
        ("embodiment", ["piper", "piper"]),
        ("embodiment", ["aloha"]),
        ("camera", True),
    ],
)
def test_wrong_values_are_refused(tmp_path: Path, key: str, value: Any) -> None:
    with pytest.raises(UserError, match=rf"mine\.yml: {key} is .*; it must be "):
        load_config(written(tmp_path, changed(key, value)))


def test_a_key_given_twice_is_refused(tmp_path: Path) -> None:
    text = yaml.safe_dump(settings_of()) + "episode_num: 51\n"
    with pytest.raises(UserError, match="key 'episode_num' is given twice"):
        load_config(written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "what"), [("a: [", "isn't valid YAML"), ("- a\n", "holds list"), ("", "holds NoneType")]
)
def test_files_that_are_no_configuration(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(UserError, match=what) as caught:
        load_config(written(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no task configuration at"):
        load_config(str(tmp_path / "none.yml"))
    with pytest.raises(UserError, match="can't be read"):
        load_config(f"{tmp_path}/")
