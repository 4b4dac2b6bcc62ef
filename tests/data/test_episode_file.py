from __future__ import annotations

import json
import pickle
import time
from dataclasses import replace

import h5py
import numpy as np
import pytest
from demo_files import CAMERAS, edit, encode_legacy, foreign_episode, make_episode, picture, put, red

from evalkit.data.container import EpisodeFileError
from evalkit.data.episode_file import Episode, read_episode, read_instructions, read_provenance, write_episode
from evalkit.data.jpeg import encode_rgb


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "data" / "episode0.hdf5"
    write_episode(path, make_episode(seed=7, frames=10))
    return path


def test_what_is_written_is_read(path):
    episode, original = read_episode(path), make_episode(seed=7, frames=10)
    assert np.array_equal(episode.state, original.state)
    assert np.array_equal(episode.endpose, original.endpose)
    assert episode.images == original.images
    assert episode.provenance == original.provenance
    assert episode.path == path
    assert read_provenance(path) == (original.provenance, 10)


def test_layout_is_robotwins(path):
    def shapes(name, item):
        if isinstance(item, h5py.Dataset):
            found[name] = (item.shape, item.dtype.kind)

    found = {}
    with h5py.File(path) as file:
        file.visititems(shapes)
        assert file["observation/head_camera/rgb"].chunks is None
        assert np.array_equal(file["joint_action/right_arm"][:, 0], file["joint_action/vector"][:, 7])
        assert np.array_equal(file["endpose/right_gripper"][:], make_episode(7, 10).endpose[:, 15])
    images = {f"observation/{camera}/rgb": ((10,), "S") for camera in CAMERAS}
    joints = {"left_arm": (10, 6), "left_gripper": (10,), "right_arm": (10, 6), "right_gripper": (10,)}
    poses = {"left_endpose": (10, 7), "left_gripper": (10,), "right_endpose": (10, 7), "right_gripper": (10,)}
    assert found == {
        **images,
        **{f"joint_action/{name}": (shape, "f") for name, shape in joints.items()},
        "joint_action/vector": ((10, 14), "f"),
        **{f"endpose/{name}": (shape, "f") for name, shape in poses.items()},
        "pointcloud": ((10, 0), "f"),
    }


def test_same_episode_gives_same_bytes(path, tmp_path):
    write_episode(tmp_path / "again.hdf5", make_episode(seed=7, frames=10))
    assert (tmp_path / "again.hdf5").read_bytes() == path.read_bytes()


def test_camera_parameters_are_kept(tmp_path):
    parameters = {"head_camera": {"intrinsic_cv": np.ones((6, 3, 3), np.float32)}}
    write_episode(tmp_path / "e.hdf5", replace(make_episode(), camera_parameters=parameters))
    found = read_episode(tmp_path / "e.hdf5").camera_parameters
    assert found["head_camera"]["intrinsic_cv"].shape == (6, 3, 3)
    assert found["left_camera"] == {}
    wrong = {"head_camera": {"extrinsic_cv": np.ones((6, 4, 4), np.float32)}}
    with pytest.raises(ValueError, match="extrinsic_cv has shape"):
        write_episode(tmp_path / "e.hdf5", replace(make_episode(), camera_parameters=wrong))


@pytest.mark.parametrize("encode", [encode_rgb, encode_legacy], ids=["stamped", "legacy"])
def test_padded_images_decode_item_by_item_and_as_a_block(tmp_path, encode):
    """Red, noise, red: the short images are padded with NULs to the length of the long one."""
    images = [encode(red()), encode(picture(3)), encode(red())]
    assert len(images[0]) < len(images[1])
    episode = replace(make_episode(frames=3), images={"head_camera": images})
    write_episode(tmp_path / "e.hdf5", episode)
    with h5py.File(tmp_path / "e.hdf5") as file:
        block = file["observation/head_camera/rgb"][()].tobytes()
    width = len(block) // 3
    padded = [block[start : start + width] for start in (0, width, 2 * width)]
    assert padded[0].endswith(b"\0")
    stored = read_episode(tmp_path / "e.hdf5")
    for episode in (stored, replace(stored, images={"head_camera": padded})):
        for frame in (0, 2):
            assert np.abs(episode.image("head_camera", frame).astype(int) - red()).max() <= 6


def test_state_action_pairs_are_shifted_by_one_frame(tmp_path):
    """q_t = t / 100 over six frames gives five pairs (q_t, q_t+1), and image t belongs to state t."""
    trajectory = np.arange(6)[:, None] * 0.01 * np.ones(14)
    write_episode(tmp_path / "e.hdf5", replace(make_episode(frames=6), state=trajectory))
    episode = read_episode(tmp_path / "e.hdf5", cameras=["head_camera"])
    states, actions = episode.state_action_pairs()
    assert np.array_equal(states, trajectory[:-1])
    assert np.array_equal(actions, trajectory[1:])
    assert list(episode.images) == ["head_camera"]
    assert len(episode.images["head_camera"]) == len(states) + 1


def test_foreign_files_have_no_provenance(tmp_path):
    foreign_episode(tmp_path / "e.hdf5")
    episode = read_episode(tmp_path / "e.hdf5", cameras=[])
    assert episode.provenance is None
    assert episode.images == {}


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (
            lambda f: put(f, "observation/head_camera/rgb", f["observation/head_camera/rgb"][:9]),
            "frame_count",
            "/observation/head_camera/rgb has 9 frames, expected 10",
        ),
        (
            lambda f: f.__delitem__("joint_action/right_gripper"),
            "missing_dataset",
            r"no dataset /joint_action/right_gripper, expected \(10,\) float64",
        ),
        (
            lambda f: put(f, "joint_action/left_arm", np.zeros((10, 7))),
            "wrong_shape",
            r"/joint_action/left_arm is \(10, 7\), expected \(10, 6\)",
        ),
        (
            lambda f: put(f, "joint_action/left_arm", np.zeros((10, 6), int)),
            "wrong_type",
            "/joint_action/left_arm has dtype int64",
        ),
        (
            lambda f: put(f, "observation/left_camera/rgb", np.zeros((10, 4, 4, 3), np.uint8)),
            "wrong_type",
            r"/observation/left_camera/rgb is \(10, 4, 4, 3\) uint8",
        ),
        (lambda f: f.__delitem__("observation"), "missing_dataset", "no dataset /observation/<camera>/rgb"),
        (lambda f: f.__delitem__("joint_action/vector"), "missing_dataset", r"expected \(T, 14\) float64"),
        (lambda f: f.attrs.__delitem__("assets"), "provenance", "lack assets"),
    ],
)
def test_schema_faults_name_path_found_and_expected(path, change, kind, message):
    edit(path, change)
    with pytest.raises(EpisodeFileError, match=message) as caught:
        read_episode(path)
    assert caught.value.kind == kind
    assert str(path) in str(caught.value)


def test_missing_camera_is_named(path):
    with pytest.raises(EpisodeFileError, match="front_camera/rgb; it has head_camera, left_camera, right_camera"):
        read_episode(path, cameras=["front_camera"])


def test_undecodable_image_names_file_camera_and_frame(path):
    episode = read_episode(path)
    half = [image[: len(image) // 2] for image in episode.images["left_camera"]]
    broken = replace(episode, images={"left_camera": half})
    with pytest.raises(EpisodeFileError, match=r"episode0\.hdf5: left_camera, frame 4: truncated JPEG"):
        broken.image("left_camera", 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state": np.zeros((6, 13))}, "state"),
        ({"endpose": np.zeros((5, 16))}, "endpose"),
        ({"images": {"head_camera": [b"x"] * 5}}, "5 images for 6 frames"),
        ({"images": {"head_camera": [b"x"] * 5 + [b""]}}, "5 images for 6 frames"),
    ],
)
def test_inconsistent_episodes_are_not_written(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        write_episode(tmp_path / "e.hdf5", replace(make_episode(), **change))
    assert list(tmp_path.iterdir()) == []


def test_errors_survive_pickling(tmp_path):
    error = pickle.loads(pickle.dumps(EpisodeFileError(tmp_path, "empty", "empty file")))
    assert (error.path, error.kind, str(error)) == (tmp_path, "empty", f"{tmp_path}: empty file")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "expected"),
        ('{"seen": ["a"]}', "'unseen' is not a list"),
        ('{"seen": ["a", ""], "unseen": []}', "'seen' is not a list"),
        ('{"seen": [], "unseen": []}', "no sentence"),
        ('{"seen": ["Click {A}"], "unseen": []}', "unfilled placeholder in 'seen': 'Click {A}'"),
    ],
)
def test_instruction_faults(tmp_path, text, message):
    path = tmp_path / "episode0.json"
    path.write_text(text)
    with pytest.raises(EpisodeFileError, match=message):
        read_instructions(path)
    path.write_text(json.dumps({"seen": ["a"], "unseen": []}))
    assert read_instructions(path) == {"seen": ["a"], "unseen": []}


def test_writing_is_fast(tmp_path):
    """200 frames of three cameras, encoding included, in the order of 0.2 s; the bound leaves room for a busy host."""
    y, x = np.mgrid[0:240, 0:320]
    image = np.stack([x // 2, y, (x + y) // 3], axis=-1).astype(np.uint8)
    start = time.process_time()
    images = {camera: [encode_rgb(image) for _ in range(200)] for camera in CAMERAS}
    write_episode(tmp_path / "e.hdf5", Episode(state=np.zeros((200, 14)), endpose=np.zeros((200, 16)), images=images))
    assert time.process_time() - start < 1.0
