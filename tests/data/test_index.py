from __future__ import annotations

import json
import os

import pytest
from demo_files import edit, foreign_episode, make_dataset

from evalkit.core.errors import UserError
from evalkit.core.hashing import digest, file_digest
from evalkit.data.container import EpisodeFileError
from evalkit.data.index import data_source, episode_digest, index_dataset


def test_episodes_come_in_task_and_numeric_order(tmp_path):
    make_dataset(tmp_path, episodes=11, task="click_bell")
    make_dataset(tmp_path, episodes=2, task="grab_roller")
    refs = index_dataset(tmp_path, ["grab_roller", "click_bell"], "demo_clean")
    assert [(ref.task, ref.number) for ref in refs] == [
        *(("grab_roller", number) for number in range(2)),
        *(("click_bell", number) for number in range(11)),
    ]
    assert [ref.seed for ref in refs[2:]] == [2 * number for number in range(11)]
    assert {ref.frames for ref in refs} == {6}
    assert refs[0].path.name == "episode0.hdf5"
    assert json.loads(refs[0].instruction_path.read_text())["seen"] == ["Click the bell."]


def test_the_first_episodes_can_be_asked_for(tmp_path):
    make_dataset(tmp_path, episodes=3)
    assert len(index_dataset(tmp_path, ["click_bell"], "demo_clean", episodes_per_task=2)) == 2
    with pytest.raises(UserError, match="holds 3 episodes, 4 are asked for"):
        index_dataset(tmp_path, ["click_bell"], "demo_clean", episodes_per_task=4)


def test_source_for_the_training_card(tmp_path):
    make_dataset(tmp_path, episodes=2)
    refs = index_dataset(tmp_path, ["click_bell"], "demo_clean")
    source = data_source(refs, clips=10)
    assert (source.task, source.config, source.episodes, source.clips) == ("click_bell", "demo_clean", 2, 10)
    assert source.seeds == (0, 2)
    assert source.assets == "stand-in"
    assert source.digest == digest([file_digest(ref.path) for ref in refs])
    with pytest.raises(ValueError, match="one task"):
        data_source([], clips=0)


def test_digests_are_cached_until_the_file_changes(tmp_path):
    dataset = make_dataset(tmp_path, episodes=1)
    [ref] = index_dataset(tmp_path, ["click_bell"], "demo_clean")
    first = episode_digest(ref)
    cache = json.loads(dataset.digest_cache.read_text())
    cache["episode0.hdf5"][2] = "from the cache"
    dataset.digest_cache.write_text(json.dumps(cache))
    assert episode_digest(ref) == "from the cache"
    os.utime(ref.path, ns=(0, 0))
    assert episode_digest(ref) == first
    dataset.digest_cache.write_text("{")
    assert episode_digest(ref) == first


def test_released_archives_are_known_by_their_folder_names(tmp_path):
    for folder, config in [("aloha-agilex_clean_50", "demo_clean"), ("aloha-agilex_randomized_500", "demo_randomized")]:
        dataset = make_dataset(tmp_path, episodes=1, config=folder)
        foreign_episode(dataset.episode(0))
        [ref] = index_dataset(tmp_path, ["click_bell"], folder)
        assert (ref.config, ref.assets, ref.seed) == (config, "unknown", 0)


@pytest.mark.parametrize(
    ("task", "config", "message"),
    [
        ("grab_roller", "demo_clean", "the data root has click_bell"),
        ("click_bell", "demo_randomized", "the task has demo_clean"),
    ],
)
def test_missing_data_says_what_is_there(tmp_path, task, config, message):
    make_dataset(tmp_path)
    with pytest.raises(UserError, match=message):
        index_dataset(tmp_path, [task], config)
    with pytest.raises(UserError, match="doesn't exist"):
        index_dataset(tmp_path / "nowhere", [task], config)


def test_nothing_is_left_out_silently(tmp_path):
    dataset = make_dataset(tmp_path)
    dataset.instructions(1).rename(tmp_path / "away")
    with pytest.raises(EpisodeFileError, match=r"instructions/episode1\.json"):
        index_dataset(tmp_path, ["click_bell"], "demo_clean")
    (tmp_path / "away").rename(dataset.instructions(1))
    dataset.episode(2).write_bytes(b"")
    with pytest.raises(EpisodeFileError, match=r"episode2\.hdf5: empty file"):
        index_dataset(tmp_path, ["click_bell"], "demo_clean")
    dataset.episode(1).unlink()
    with pytest.raises(UserError, match="lacks episode1"):
        index_dataset(tmp_path, ["click_bell"], "demo_clean")


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        (
            "config",
            "demo_randomized",
            "holds click_bell/demo_randomized, but lies in a folder of click_bell/demo_clean",
        ),
        ("task", "grab_roller", "holds grab_roller/demo_clean"),
        ("seed", 5, r"the file says seed 5, seed\.txt says 2"),
    ],
)
def test_data_in_the_wrong_folder_is_refused(tmp_path, attribute, value, message):
    dataset = make_dataset(tmp_path)
    edit(dataset.episode(1), lambda file: file.attrs.__setitem__(attribute, value))
    with pytest.raises(EpisodeFileError, match=message):
        index_dataset(tmp_path, ["click_bell"], "demo_clean")


def test_seed_list_that_is_no_list_of_seeds(tmp_path):
    make_dataset(tmp_path).seed_file.write_text("0 two 4")
    with pytest.raises(UserError, match=r"seed\.txt isn't a list of seeds"):
        index_dataset(tmp_path, ["click_bell"], "demo_clean")
