import json

import numpy as np
import pytest
import torch
from synthetic_demos import write_demos

from evalkit.core.errors import UserError
from evalkit.data.episode_file import read_episode
from evalkit.train.config import DataConfig
from evalkit.train.dataset import load_dataset
from evalkit.train.recipe import DataRequest

CPU = torch.device("cpu")


def request(**changes) -> DataRequest:
    values = {
        "cameras": ("head_camera", "right_camera"),
        "height_px": 12,
        "width_px": 16,
        "chunk_steps": 4,
        "prepare_image": lambda image: image[::2, ::2],
        "prepare_image_name": "every second pixel",
        "encode_text": lambda sentence: np.array([len(sentence), 0], np.int64),
    }
    return DataRequest(**(values | changes))


def load(root, folder, *, told=None, asked=None, **changes):
    config = DataConfig(**({"root": str(root), "tasks": ("click_bell",), "configs": ("demo_clean",)} | changes))
    told = [] if told is None else told
    progress = lambda done, total: told.append((done, total))  # noqa: E731
    return load_dataset(config, asked or request(), device=CPU, cache_folder=folder / "cache", progress=progress)


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    return write_demos(tmp_path_factory.mktemp("demos"), frames=6)


def test_targets_are_the_next_commanded_states_held_at_the_end(demos, tmp_path):
    dataset = load(demos, tmp_path)
    state = read_episode(demos / "click_bell/demo_clean/data/episode1.hdf5", ()).state.astype(np.float32)
    assert len(dataset) == 10
    for place in range(4):
        expected = state[np.minimum(np.arange(5) + place + 1, 5)]
        assert np.array_equal(dataset.targets(place)[5:], expected)


def test_a_batch_belongs_together(demos, tmp_path):
    dataset = load(demos, tmp_path)
    batch = dataset.sample(64, torch.Generator().manual_seed(0))
    assert batch.images.shape == (64, 2, 12, 16, 3)
    for row in range(64):
        index = int(torch.where((dataset.states[dataset.sample_frame] == batch.state[row]).all(1))[0][0])
        assert torch.equal(batch.images[row], dataset.images[index])
        assert np.array_equal(batch.actions[row, 2], dataset.targets(2)[index])
    lengths = {len("Do click_bell now."), len("Please do click_bell.")}
    assert set(batch.text[:, 0].tolist()) == lengths, "each seen sentence, no unseen one"


def test_pictures_are_in_rgb_and_in_camera_order(demos, tmp_path):
    dataset = load(demos, tmp_path)
    assert np.allclose(dataset.images[0, 0, 8, 2].tolist(), (200, 30, 90), atol=12)
    assert np.allclose(dataset.images[0, 1, 0, 12].tolist(), (80, 80, 80), atol=12)


def test_stride_thins_the_pictures_not_the_actions(demos, tmp_path):
    dataset = load(demos, tmp_path, frame_stride=2)
    assert dataset.sample_frame.tolist() == [0, 2, 4, 6, 8, 10]
    assert dataset.sources[0].clips == 6
    full = load(demos, tmp_path)
    assert np.array_equal(dataset.targets(0), full.targets(0)[[0, 2, 4, 5, 7, 9]])


def test_decoded_pictures_are_kept_and_used_again(demos, tmp_path):
    first = load(demos, tmp_path)
    told = []
    second = load(demos, tmp_path, told=told)
    assert told == []
    assert torch.equal(first.images, second.images)
    assert len(list((tmp_path / "cache").iterdir())) == 1
    load(demos, tmp_path, told=told, asked=request(prepare_image_name="another"))
    assert told == [(1, 2), (2, 2)], "another way to prepare pictures isn't served from the old file"
    load(demos, tmp_path / "none", cache_frames=False)
    assert not (tmp_path / "none").exists()


def test_a_broken_picture_is_named_and_leaves_no_cache(tmp_path):
    root = write_demos(tmp_path / "demos", tasks=("click_bell",), frames=4)

    def refuse(image):
        raise UserError("can't prepare")

    with pytest.raises(UserError, match="can't prepare"):
        load(root, tmp_path, asked=request(prepare_image=refuse))
    assert list((tmp_path / "cache").iterdir()) == []


def test_missing_and_too_few_demonstrations_are_refused(demos, tmp_path):
    with pytest.raises(UserError, match="holds 2 episodes, 3 are asked for"):
        load(demos, tmp_path, episodes_per_task=3)
    with pytest.raises(UserError, match="no demonstrations of stack_bowls_two"):
        load(demos, tmp_path, tasks=("stack_bowls_two",))


def test_digest_follows_the_content(demos, tmp_path):
    other = write_demos(tmp_path / "other", frames=7)
    assert load(demos, tmp_path).digest == load(demos, tmp_path).digest != load(other, tmp_path).digest


def test_two_configurations_are_two_sources(tmp_path):
    root = write_demos(tmp_path / "demos", tasks=("click_bell",), frames=4)
    write_demos(root, tasks=("click_bell",), config="demo_randomized", frames=4)
    dataset = load(root, tmp_path, configs=("demo_clean", "demo_randomized"))
    assert [source.config for source in dataset.sources] == ["demo_clean", "demo_randomized"]
    assert json.dumps([source.clips for source in dataset.sources]) == "[6, 6]"
