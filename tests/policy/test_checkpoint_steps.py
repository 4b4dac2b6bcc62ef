"""Which of a trainer's steps is taken, and what is refused."""

import json
from pathlib import Path

import pytest
from safetensors.torch import save_file
from weight_kit import tensors

from evalkit.core.errors import UserError
from evalkit.policy.weight_files import find_weights, newest_step


def write_step(folder: Path, value=1.0):
    folder.mkdir(parents=True)
    save_file(tensors(value), folder / "model.safetensors")


def test_the_newest_step_is_a_number_not_a_name(tmp_path):
    for name in ("step_9000", "step_10000"):
        write_step(tmp_path / "a" / name)
    assert newest_step(tmp_path / "a")[:2] == (10000, tmp_path / "a" / "step_10000")
    for name in ("100000", "0900000", "handpicked"):
        write_step(tmp_path / "b" / name)
    (tmp_path / "b" / "last").symlink_to("100000")
    (tmp_path / "b" / "1000000").mkdir()
    step, folder, notes = newest_step(tmp_path / "b")
    assert (step, folder.name) == (900000, "0900000")
    assert sorted(notes) == [
        "1000000 holds no weights (still being written?) and was passed over",
        "handpicked has no number and was passed over",
        "last points to 100000, but the newest is 0900000, which is taken",
    ]
    assert find_weights(tmp_path / "b").step == 900000
    assert find_weights(tmp_path / "b" / "last").folder == tmp_path / "b" / "100000"


def accelerate(folder):
    write_step(folder)
    (folder / "optimizer.bin").write_bytes(b"x")


def fsdp(folder):
    inside = folder / "pytorch_model_fsdp_0"
    inside.mkdir(parents=True)
    (inside / "__0_0.distcp").write_bytes(b"x")
    (inside / ".metadata").write_bytes(b"x")


@pytest.mark.parametrize(("write", "kind"), [(accelerate, "safetensors"), (fsdp, "dcp")])
def test_steps_of_accelerate_and_of_distributed_training_are_found_alike(tmp_path, write, kind):
    for name in ("checkpoint-900", "checkpoint-1000"):
        write(tmp_path / name)
    if write is fsdp:  # the list of contents is written last
        (tmp_path / "checkpoint-1100" / "pytorch_model_fsdp_0").mkdir(parents=True)
        (tmp_path / "checkpoint-1100" / "pytorch_model_fsdp_0" / "__0_0.distcp").write_bytes(b"x")
    found = find_weights(tmp_path)
    assert (found.kind, found.step) == (kind, 1000)
    passed_over = ("checkpoint-1100 holds no weights (still being written?) and was passed over",)
    assert found.notes == (passed_over if write is fsdp else ())


def test_a_step_that_contradicts_itself_is_refused(tmp_path):
    write_step(tmp_path / "0050000")
    (tmp_path / "0050000" / "trainer_state.json").write_text(json.dumps({"global_step": 40000}))
    with pytest.raises(UserError, match=r"0050000 says step 40000 in trainer_state\.json"):
        find_weights(tmp_path / "0050000")


def test_weights_inside_a_step(tmp_path):
    write_step(tmp_path / "checkpoint_step_750" / "transformer")
    found = find_weights(tmp_path / "checkpoint_step_750")
    assert (found.step, found.folder.name) == (750, "transformer")
    assert find_weights(tmp_path / "checkpoint_step_750" / "transformer").step == 750


def test_several_candidates_and_none_are_refused(tmp_path):
    save_file(tensors(), tmp_path / "a.safetensors")
    save_file(tensors(), tmp_path / "b.safetensors")
    with pytest.raises(UserError, match=r"several files of weights: a\.safetensors, b\.safetensors"):
        find_weights(tmp_path)
    (tmp_path / "none").mkdir()
    with pytest.raises(UserError, match="holds neither weights nor numbered folders"):
        find_weights(tmp_path / "none")
    with pytest.raises(UserError, match="don't exist"):
        find_weights(tmp_path / "nowhere")
