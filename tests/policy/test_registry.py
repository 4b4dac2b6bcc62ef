from pathlib import Path

import pytest

from evalkit.core.errors import UnknownNameError, UserError
from evalkit.policy.contract import Policy
from evalkit.policy.registry import adapter_digest, adapter_names, load_adapter, load_training

OWN = """
from pathlib import Path
from .part import VALUE
NEEDS_CHECKPOINT = False
def load(checkpoint, *, device):
    return VALUE
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policies").mkdir()
    return tmp_path / "policies"


def write_folder_adapter(policies: Path, name: str, value: int) -> None:
    folder = policies / name
    folder.mkdir()
    (folder / "__init__.py").write_text(OWN)
    (folder / "part.py").write_text(f"VALUE = {value}\n")


def test_finds_the_adapters_that_travel_with_evalkit(here):
    assert {"noop", "expert", "replay", "house"} <= set(adapter_names())


@pytest.mark.parametrize("name", ["noop", "expert", "replay"])
def test_adapters_without_weights_load_and_refuse_a_checkpoint(name):
    adapter = load_adapter(name)
    assert adapter.NEEDS_CHECKPOINT is False
    policy = adapter.load(None, device="cpu")
    assert isinstance(policy, Policy)
    assert policy.spec.name == name
    with pytest.raises(UserError, match="takes no checkpoint"):
        adapter.load(Path("x"), device="cpu")


def test_house_needs_a_checkpoint():
    adapter = load_adapter("house")
    assert adapter.NEEDS_CHECKPOINT is True
    with pytest.raises(UserError, match="needs a checkpoint"):
        adapter.load(None, device="cpu")


def test_unknown_name_gives_the_nearest():
    with pytest.raises(UnknownNameError, match="unknown policy 'hose': did you mean house"):
        load_adapter("hose")
    with pytest.raises(UnknownNameError):
        adapter_digest("hose")


def test_an_adapter_of_the_working_folder_may_use_relative_imports(here):
    write_folder_adapter(here, "mine", 7)
    assert "mine" in adapter_names()
    assert load_adapter("mine").load(None, device="cpu") == 7


def test_another_working_folder_means_another_adapter(here, tmp_path, monkeypatch):
    write_folder_adapter(here, "mine", 7)
    assert load_adapter("mine").load(None, device="cpu") == 7
    other = tmp_path / "other" / "policies"
    other.mkdir(parents=True)
    write_folder_adapter(other, "mine", 8)
    monkeypatch.chdir(other.parent)
    assert load_adapter("mine").load(None, device="cpu") == 8


def test_a_name_defined_twice_is_refused(here):
    (here / "noop.py").write_text("NEEDS_CHECKPOINT = False\n")
    with pytest.raises(UserError, match=r"policy noop is defined twice: .* and .*; rename one"):
        load_adapter("noop")


def test_a_broken_adapter_is_named(here):
    (here / "half.py").write_text("NEEDS_CHECKPOINT = False\n")
    with pytest.raises(UserError, match=r"adapter half .* has no 'load'"):
        load_adapter("half")
    (here / "bad.py").write_text("import no_such_package_of_ours\n")
    with pytest.raises(UserError, match=r"adapter bad .* can't be imported: No module named"):
        load_adapter("bad")


def test_files_that_are_no_adapters_are_left_alone(here):
    (here / "_helper.py").write_text("")
    (here / "notes.txt").write_text("")
    (here / "folder").mkdir()
    assert not {"_helper", "notes", "folder"} & set(adapter_names())


def test_digest_follows_every_file_of_the_adapter(here):
    write_folder_adapter(here, "mine", 7)
    before = adapter_digest("mine")
    assert before == adapter_digest("mine")
    (here / "mine" / "part.py").write_text("VALUE = 8\n")
    assert adapter_digest("mine") != before


def test_training_recipe_is_found_and_its_lack_said(here):
    assert hasattr(load_training("house"), "configure")
    with pytest.raises(UserError, match=r"policy noop .* can't be trained: it has no training\.py"):
        load_training("noop")
