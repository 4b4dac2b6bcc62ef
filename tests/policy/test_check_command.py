"""``evalkit policy check`` as a person meets it: golden actions beside a policy file, and the simulator's part."""

import json

import pytest
import yaml

from evalkit.cli import main as command_line

NET = '''
"""Holds the pose, and turns the first joint and closes the hands by what it sees."""
import numpy as np


class Net:
    def __call__(self, state, image):
        chunk = np.repeat(state, 8, axis=0)
        chunk[:, 0] += (image[..., 0].mean() - image[..., 2].mean()) / 255
        chunk[:, [6, 13]] *= 0.25
        return chunk
'''
PROFILE = {
    "robot": {"actions": "qpos", "cameras": {"head_camera": [240, 320]}, "chunk_steps": 8, "execute_steps": 8,
              "needs_instruction": False, "stateful": False},
    "request": {"state": {"vector": "qpos", "as": [], "dtype": "float64"}, "image": {"picture": "head_camera"}},
    "answer": {"key": "actions", "as": []},
}  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "net.py").write_text(NET)
    write(tmp_path, PROFILE)
    return tmp_path


def write(folder, profile):
    values = {"adapter": "torch_module", "code": "code", "factory": "net:Net", "tensors": False, "profile": profile}
    (folder / "net.yaml").write_text(yaml.safe_dump(values))


def changed(section, **values):
    profile = json.loads(json.dumps(PROFILE))
    profile[section].update(values)
    return profile


def check(capsys, *arguments):
    code = command_line.run_cli(["policy", "check", *arguments])
    output = capsys.readouterr()
    return code, output.out, output.err


def flat(text):
    return " ".join(text.split())


MISTAKES = {
    "red and blue exchanged in its pictures": changed("request", image={"picture": "head_camera", "colour": "bgr"}),
    "grippers turned round in its actions": changed("answer", **{"as": [{"gripper": {"closed": 1, "open": 0}}]}),
    "grippers turned round in its state": changed(
        "request", state={"vector": "qpos", "as": [{"gripper": {"closed": 1, "open": 0}}], "dtype": "float64"}
    ),
    "left and right arm exchanged in its actions": changed("answer", **{"as": [{"order": "right_arm_first"}]}),
}


def test_a_mistake_in_a_profile_is_named_by_the_golden_actions(here, capsys):
    code, out, err = check(capsys, "net.yaml", "--write-golden")
    assert code == 0, out
    assert "wrote net.golden.json" in err
    assert "ok    golden: largest difference" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    for mistake, profile in MISTAKES.items():
        write(here, profile)
        code, out, _ = check(capsys, "net.yaml")
        assert code == 1, mistake
        assert mistake in flat(out)
        assert "golden" in out.splitlines()[-1]
    write(here, changed("answer", **{"as": [{"joints": "degrees"}]}))
    code, out, _ = check(capsys, "net.yaml")
    assert (code, out.splitlines()[-1].startswith("not ready: first action, golden")) == (1, True)


def test_there_are_no_golden_actions_of_what_has_no_weights(here, capsys):
    code, _, err = check(capsys, "noop", "--write-golden")
    assert (code, "policy noop can't have golden actions: it has no weights" in err) == (2, True)
    code, _, err = check(capsys, "net.yaml", "--write-golden", "--demonstration", "e.hdf5")
    assert (code, "leave --demonstration out" in err) == (2, True)


def test_a_demonstration_goes_through_the_conversions_in_the_simulator(here, capsys):
    write(here, changed("answer", **{"as": [{"gripper": {"closed": 120, "open": 0}}, {"joints": "degrees"}]}))
    (here / "code" / "net.py").write_text(
        NET.replace("return chunk", "return np.where(np.isin(np.arange(14), [6, 13]), 60.0, np.rad2deg(chunk))")
    )
    code, out, _ = check(capsys, "net.yaml", "--simulate", "--backend", "fake")
    assert code == 0, out
    assert "replay: solves click_bell seed" in flat(out)
    assert "converted replay: the same demonstration through the profile's conversions: success" in flat(out)
    assert "trial: click_bell seed" in flat(out)


def test_a_policy_that_breaks_in_a_trial_isnt_ready(here, capsys):
    (here / "code" / "net.py").write_text(NET + "        # not reached\n")
    breaking = NET.replace(
        "        chunk =",
        "        assert len(self.__dict__.setdefault('n', [])) < 90\n        self.n.append(1)\n        chunk =",
    )
    (here / "code" / "net.py").write_text(breaking)
    code, out, _ = check(capsys, "net.yaml", "--simulate", "--backend", "fake")
    assert code == 1
    assert "trial: click_bell" in flat(out)
    assert "policy_error after" in flat(out)


def test_the_list_says_what_each_takes_within_80_columns(here, capsys):
    assert command_line.run_cli(["policy", "list"]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    for title in ("Forms, described in a policy file", "With a checkpoint", "As they are"):
        assert title in out
