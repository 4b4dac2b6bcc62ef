"""What ``--ckpt`` and ``--policy`` may name at once."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from evalkit.core.errors import UserError
from evalkit.policy import selection
from evalkit.policy.selection import names_several, select_checkpoints, select_policies


def write_step(run: Path, step: int) -> Path:
    folder = run / f"step_{step}"
    folder.mkdir(parents=True)
    save_file({"w": np.full(8, step, np.float32)}, folder / "model.safetensors")
    (folder / "policy.json").write_text(json.dumps({"schema": 1, "adapter": "x", "step": step, "spec": {}}))
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for step in (9000, 10000, 20000, 25000):
        write_step(tmp_path / "runs/mine", step)
    write_step(tmp_path / "runs/other", 500)
    return tmp_path


def steps(selected):
    return [Path(name).name.removeprefix("step_") for name in selected.names]


@pytest.mark.parametrize(
    ("text", "every", "found"),
    [
        ("runs/mine/step_*", None, ["9000", "10000", "20000", "25000"]),
        ("runs/mine/step_*", 10000, ["10000", "20000"]),
        ("runs/mine", 10000, ["10000", "20000"]),
        ("mine/step_2*", None, ["20000", "25000"]),  # in a usual place, like a single name
        ("step_20000,runs/mine/step_9000", None, ["9000", "20000"]),
        ("step_20000, runs/mine/step_*", 10000, ["10000", "20000"]),
        ("runs/*", None, ["25000", "500"]),  # of each run its last one; runs stay together
        ("runs/other/step_500,runs/mine/step_9000,step_25000", None, ["500", "9000", "25000"]),
        ("runs/mine/step_[12]0000", None, ["10000", "20000"]),
    ],
)
def test_lists_and_patterns(here, text, every, found):
    assert steps(select_checkpoints(text, every=every)) == found


def test_what_a_pattern_matches_but_isnt_whole_is_left_out_by_name(here):
    (here / "runs/mine/step_9000/policy.json").unlink()
    model = here / "runs/mine/step_10000/model.safetensors"
    model.write_bytes(model.read_bytes()[:-4])
    (here / "runs/mine/step_30000.tmp").mkdir()
    selected = select_checkpoints("runs/mine/step_*")
    assert steps(selected) == ["20000", "25000"]
    unnamed, truncated, temporary = selected.left_out
    assert "step_9000 isn't a complete checkpoint: it has no policy.json" in unnamed
    assert "step_10000/model.safetensors is truncated" in truncated
    assert "step_30000.tmp isn't a checkpoint" in temporary
    with pytest.raises(UserError, match=r"step_10000/model.safetensors is truncated"):
        select_checkpoints("runs/mine/step_10000,runs/mine/step_20000")  # named by itself: refused
    (here / "runs/mine/step_20000/model.safetensors").unlink()
    (here / "runs/mine/step_25000/model.safetensors").unlink()
    with pytest.raises(UserError, match=r"matches no complete checkpoint; left out: .*no policy.json"):
        select_checkpoints("runs/mine/step_*")


def test_nothing_is_said_to_be_nothing(here):
    with pytest.raises(UserError, match="--every 7 leaves no checkpoint of --ckpt runs/mine: their steps are 9000, 1"):
        select_checkpoints("runs/mine", every=7)
    with pytest.raises(UserError, match=r"--ckpt runs/nobody/\* matches no complete checkpoint"):
        select_checkpoints("runs/nobody/*")
    with pytest.raises(UserError, match="no checkpoint 'step_1'"):
        select_checkpoints("step_1,step_20000")


def test_what_is_one_name(here):
    write_step(here / "a,b[1]", 3)
    assert not names_several("a,b[1]/step_3")
    assert steps(select_checkpoints("a,b[1]/step_3")) == ["3"]
    assert not names_several("step_30000")
    assert not names_several(None)
    assert names_several("a,b")
    assert names_several("runs/mine/step_*")


def test_policies(here):
    for number in (2, 10):
        (here / f"pi_{number}.yaml").touch()
    assert select_policies("noop, pi_*.yaml,noop").names == ("noop", "pi_2.yaml", "pi_10.yaml")
    with pytest.raises(UserError, match=r"--policy x_\*.yaml matches no policy file"):
        select_policies("x_*.yaml")


def test_places_are_those_of_single_names(here, monkeypatch):
    monkeypatch.setattr(selection, "default_places", lambda: [here / "elsewhere"])
    write_step(here / "elsewhere/run", 8)
    assert steps(select_checkpoints("run/step_*")) == ["8"]
