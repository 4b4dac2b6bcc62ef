import os
import signal
import subprocess
import sys
import textwrap

import pytest
import torch
from synthetic_demos import tiny_config, write_demos

from evalkit.core.errors import UserError
from evalkit.policy.checkpoint import read_checkpoint
from evalkit.provenance.card import TrainingCard, read_card
from evalkit.train import checkpointing
from evalkit.train.checkpointing import prepare_run_folder, save_checkpoint

POLICY = {"adapter": "house", "spec": {"name": "house"}}


def make_card(step: int) -> TrainingCard:
    return TrainingCard(
        policy="house",
        step=step,
        data=(),
        initial_weights="random",
        parent=None,
        recipe={},
        world_size=1,
        samples_seen=0,
        parameters=1,
        device="cpu",
        wall_s=1.0,
        seconds_per_step=1.0,
        losses=((1, 0.5),),
        normalisation_digest="d",
        code_commit="unknown",
        code_dirty=True,
        evalkit_version="0",
        created_at="2026-01-01T00:00:00+00:00",
    )


def test_writes_a_folder_that_reads_back(tmp_path):
    folder = save_checkpoint(tmp_path, make_card(5), POLICY, {"w": torch.arange(3.0)})
    assert folder == tmp_path / "step_5"
    assert read_checkpoint(folder).step == 5
    assert read_card(folder) == make_card(5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step_5"]


def test_never_overwrites(tmp_path):
    folder = save_checkpoint(tmp_path, make_card(5), POLICY, {"w": torch.zeros(1)})
    before = (folder / "model.safetensors").read_bytes()
    with pytest.raises(UserError, match="never overwritten"):
        save_checkpoint(tmp_path, make_card(5), POLICY, {"w": torch.ones(1)})
    assert (folder / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize("part", ["save_file", "write_json", "write_card", "_fsync"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failure_while_writing_leaves_nothing(tmp_path, monkeypatch, part, error):
    def fail(*arguments):
        raise error

    monkeypatch.setattr(checkpointing, part, fail)
    with pytest.raises(type(error)):
        save_checkpoint(tmp_path, make_card(5), POLICY, {"w": torch.zeros(1)})
    assert list(tmp_path.iterdir()) == []


def test_sigkill_before_the_rename_leaves_no_step_folder_and_a_new_run_clears_up(tmp_path):
    script = textwrap.dedent(
        f"""
        import os, signal, sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import torch
        from test_checkpoint_writing import POLICY, make_card
        from evalkit.train import checkpointing
        os.rename = lambda *paths: os.kill(os.getpid(), signal.SIGKILL)
        checkpointing.save_checkpoint({str(tmp_path)!r} and __import__("pathlib").Path({str(tmp_path)!r}),
                                      make_card(5), POLICY, {{"w": torch.zeros(1)}})
        """
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    [left] = tmp_path.iterdir()
    assert left.name.startswith(".step_5.tmp-")
    assert (left / "model.safetensors").exists()
    (tmp_path / "losses.jsonl").write_text("of the killed run")
    prepare_run_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_in_training_keeps_finished_checkpoints_only(tmp_path):
    from evalkit.policy.registry import load_training
    from evalkit.train.config import TrainConfig, from_mapping
    from evalkit.train.loop import train

    root = write_demos(tmp_path / "demos", tasks=("click_bell", "grab_roller"), frames=4)
    config = from_mapping(TrainConfig, tiny_config(root, save_every_steps=4, log_every_steps=2), "training setting")

    def interrupt(progress):
        if progress.phase == "train" and progress.done >= 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(config, load_training("house"), out=tmp_path / "out", device="cpu", on_progress=interrupt)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["losses.jsonl", "step_4"]
    assert read_checkpoint(tmp_path / "out/step_4").step == 4
