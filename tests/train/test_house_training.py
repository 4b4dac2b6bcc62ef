import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from synthetic_demos import tiny_config, write_demos

from evalkit.core.errors import UserError
from evalkit.policy.checkpoint import resolve
from evalkit.policy.conformance import example_episode, example_observations, violations
from evalkit.policy.registry import load_adapter, load_training
from evalkit.provenance.card import read_card
from evalkit.train.checkpointing import LOSS_FILE
from evalkit.train.config import TrainConfig, from_mapping
from evalkit.train.loop import TrainingDivergedError, train


def make_config(root, **changes) -> TrainConfig:
    return from_mapping(TrainConfig, tiny_config(root, **changes), "training setting")


def act_once(policy):
    policy.reset(example_episode(policy.spec, session="s", seed=3))
    return policy.act(example_observations(policy.spec, session="s", seed=3, count=1)[0])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    root = write_demos(folder / "demos")
    seen = []
    config = make_config(root, save_every_steps=25)
    result = train(config, load_training("house"), out=folder / "out", device="cpu", on_progress=seen.append)
    return folder, config, result, seen


def test_overfits_and_saves_every_step_asked_for(run):
    _, _, result, _ = run
    losses = [json.loads(line) for line in (result.checkpoints[0].parent / LOSS_FILE).read_text().splitlines()]
    assert losses[-1]["loss"] < 0.75 * losses[0]["loss"]
    assert [path.name for path in result.checkpoints] == ["step_25", "step_50", "step_60"]
    assert [entry["step"] for entry in losses] == [10, 20, 25, 35, 45, 50, 60]
    assert not list(result.checkpoints[0].parent.glob(".step*"))


def test_progress_tells_of_decoding_and_training(run):
    _, _, result, seen = run
    assert [(p.done, p.total) for p in seen if p.phase == "frames"] == [(n, 4) for n in (1, 2, 3, 4)]
    assert seen[-1].done == 60
    assert seen[-1].loss == pytest.approx(result.final_loss)


def test_card_tells_where_the_checkpoint_comes_from(run):
    folder, _, result, _ = run
    card = read_card(result.checkpoints[-1])
    assert card is not None
    assert (card.policy, card.step, card.initial_weights, card.parent) == ("house", 60, "random", None)
    assert [(s.task, s.config, s.episodes, s.clips, s.seeds, s.assets) for s in card.data] == [
        ("click_bell", "demo_clean", 2, 22, (10, 11), "stand-in"),
        ("grab_roller", "demo_clean", 2, 22, (10, 11), "stand-in"),
    ]
    assert card.samples_seen == 60 * 16
    assert card.parameters == result.parameters
    assert card.recipe["data"]["root"] == str(folder / "demos")
    assert card.recipe["settings"]["network"]["width"] == 32
    assert card.recipe["settings"]["augmentation"]["contrast"] == 0.15
    assert card.losses[-1][0] == 60
    policy_file = json.loads((result.checkpoints[-1] / "policy.json").read_text())
    assert policy_file["normalisation"]["data_digest"] == card.normalisation_digest
    assert len(card.code_commit) == 40 or (card.code_commit, card.code_dirty) == ("unknown", True)


def test_reloaded_policy_gives_bitwise_the_same_actions(run):
    _, _, result, _ = run
    checkpoint = resolve(str(result.checkpoints[-1].parent))
    assert (checkpoint.step, checkpoint.adapter) == (60, "house")
    adapter = load_adapter(checkpoint.adapter)
    first, second = (act_once(adapter.load(checkpoint.path, device="cpu")) for _ in range(2))
    assert np.array_equal(first, second)
    other = act_once(adapter.load(resolve(str(result.checkpoints[0])).path, device="cpu"))
    assert not np.array_equal(first, other)


def test_trained_policy_conforms(run):
    _, _, result, _ = run
    policy = load_adapter("house").load(result.checkpoints[-1], device="cpu")
    assert violations(policy) == []


def test_trained_policy_reaches_the_demonstrated_goal(run):
    """An end-to-end check of action scaling, colour order and chunk alignment: the chunk follows the demonstration."""
    from evalkit.data.episode_file import read_episode
    from evalkit.policy.contract import EpisodeInfo, Observation

    folder, config, _, _ = run
    longer = replace(config, steps=250, save_every_steps=None)
    result = train(longer, load_training("house"), out=folder / "longer", device="cpu")
    policy = load_adapter("house").load(result.checkpoints[-1], device="cpu")
    errors, baseline = [], []
    for task in config.data.tasks:
        for number in range(2):
            path = folder / "demos" / task / "demo_clean" / "data" / f"episode{number}.hdf5"
            episode = read_episode(path)
            sentence = f"Do {task} now."
            policy.reset(EpisodeInfo(session="s", instruction=sentence, policy_seed=1, horizon_steps=12))
            chunk = policy.act(
                Observation(
                    session="s",
                    step=0,
                    instruction=sentence,
                    state=episode.state[0],
                    images={camera: episode.image(camera, 0) for camera in episode.images},
                )
            )
            errors.append(np.abs(chunk - episode.state[1:9]).mean())
            baseline.append(np.abs(episode.state[0] - episode.state[1:9]).mean())
    assert np.mean(errors) < 0.35 * np.mean(baseline)


def test_same_seed_trains_the_same_weights(run):
    folder, config, result, _ = run
    again = train(
        replace(config, steps=25, save_every_steps=None), load_training("house"), out=folder / "again", device="cpu"
    )
    shorter = train(
        replace(config, steps=25, save_every_steps=None), load_training("house"), out=folder / "again2", device="cpu"
    )
    models = [(r.checkpoints[-1] / "model.safetensors").read_bytes() for r in (again, shorter)]
    assert models[0] == models[1]
    assert models[0] != (result.checkpoints[0] / "model.safetensors").read_bytes(), "the schedule knows the length"


def test_non_finite_loss_stops_the_run_and_names_the_step(run, tmp_path, monkeypatch):
    _, config, _, _ = run
    module = load_training("house").configure(config.settings).build.__globals__["HouseTrainable"]
    original, calls = module.loss, []

    def loss(self, batch, generator):
        calls.append(1)
        return original(self, batch, generator) * (float("nan") if len(calls) == 7 else 1.0)

    monkeypatch.setattr(module, "loss", loss)
    with pytest.raises(TrainingDivergedError, match="step 7:"):
        train(config, load_training("house"), out=tmp_path / "out", device="cpu")
    assert not list((tmp_path / "out").glob("*step_*"))


def test_refuses_a_folder_with_checkpoints(run):
    _, config, result, _ = run
    with pytest.raises(UserError, match="already holds step_25, step_50, step_60"):
        train(config, load_training("house"), out=result.checkpoints[0].parent, device="cpu")


def test_unknown_device_is_refused(run, tmp_path):
    _, config, _, _ = run
    with pytest.raises(UserError, match="unknown device 'gpu'"):
        train(config, load_training("house"), out=tmp_path, device="gpu")
    if not torch.cuda.is_available():
        with pytest.raises(UserError, match="0 CUDA devices"):
            train(config, load_training("house"), out=tmp_path, device="cuda")
