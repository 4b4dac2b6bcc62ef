from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from demo_files import edit, foreign_episode, make_dataset, make_episode, picture, put
from typer.testing import CliRunner

from evalkit.core.errors import UserError
from evalkit.data.episode_file import read_episode, write_episode
from evalkit.data.jpeg import encode_rgb
from evalkit.data.verify import verify
from evalkit.data.verify_file import check_file


def set_value(name, frame, value):
    def change(file):
        file[name][frame] = value

    return change


def set_image(camera, frame, data):
    def change(file):
        name = f"observation/{camera}/rgb"
        images = file[name][()].tolist()
        images[frame] = data
        put(file, name, np.array(images, dtype=f"S{max(map(len, images))}"))

    return change


def kinds(report):
    return {(finding.path.name, finding.kind) for finding in report.findings}


def test_clean_data_set_has_no_findings(tmp_path):
    make_dataset(tmp_path, episodes=3)
    for path in (tmp_path, tmp_path / "click_bell", tmp_path / "click_bell" / "demo_clean"):
        report = verify(path, expected_episodes=3, full=True)
        assert report.findings == ()
        assert (report.datasets, report.files, report.frames) == (1, 3, 18)


def test_four_kinds_of_broken_files_among_six_good_ones(tmp_path):
    for number in range(10):
        write_episode(tmp_path / f"episode{number}.hdf5", make_episode(number))
    cut = (tmp_path / "episode1.hdf5").read_bytes()[:-100]
    (tmp_path / "episode1.hdf5").write_bytes(cut)
    (tmp_path / "episode3.hdf5").write_bytes(b"")
    (tmp_path / "episode5.hdf5").write_bytes(b"\0" * 4096)
    (tmp_path / "episode7.hdf5").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    report = verify(tmp_path)
    expected = {1: "truncated", 3: "empty", 5: "zero_filled", 7: "lfs_pointer"}
    assert kinds(report) == {(f"episode{number}.hdf5", kind) for number, kind in expected.items()}
    assert report.files == 10
    assert len(report.broken_files) == 4
    for number in expected:
        with pytest.raises(UserError, match=rf"episode{number}\.hdf5: "):
            read_episode(tmp_path / f"episode{number}.hdf5")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"<!DOCTYPE html><html>404</html>", "html"),
        (b"\n<html>", "html"),
        (b"PK\x03\x04 a zip", "not_hdf5"),
        (b"\0" * 600 + b"x", "not_hdf5"),
    ],
)
def test_other_contents_are_named(tmp_path, content, kind):
    (tmp_path / "episode0.hdf5").write_bytes(content)
    assert [finding.kind for finding in check_file(tmp_path / "episode0.hdf5").findings] == [kind]


def test_missing_file_and_folder_in_the_place_of_a_file(tmp_path):
    assert check_file(tmp_path / "episode0.hdf5").findings[0].kind == "missing_file"
    (tmp_path / "episode1.hdf5").mkdir()
    assert check_file(tmp_path / "episode1.hdf5").findings[0].kind == "not_a_file"


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (lambda f: put(f, "joint_action/left_arm", np.zeros((6, 7))), "wrong_shape", r"\(6, 7\), expected \(6, 6\)"),
        (lambda f: f.__delitem__("endpose/left_gripper"), "missing_dataset", r"/endpose/left_gripper, expected \(6,\)"),
        (lambda f: put(f, "pointcloud", np.zeros((5, 0))), "frame_count", "/pointcloud has 5 frames, expected 6"),
        (set_value("endpose/left_endpose", 4, math.inf), "nonfinite", "/endpose/left_endpose .* in frame 4"),
        (set_value("joint_action/vector", (2, 3), 9.0), "state_disagrees", "side by side"),
        (set_image("left_camera", 3, b"\xff\xd8 cut"), "image", "left_camera, frame 3: truncated JPEG"),
        (set_image("head_camera", 0, b""), "image", "head_camera, frame 0: empty image"),
        (
            set_image("right_camera", 5, encode_rgb(np.zeros((32, 32, 3), np.uint8))),
            "flat_image",
            "right_camera, frame 5: the picture is black",
        ),
        (
            set_image("right_camera", 5, encode_rgb(np.full((32, 32, 3), 90, np.uint8))),
            "flat_image",
            r"the picture is of one colour \(mean RGB \[90.0, 90.0, 90.0\]\)",
        ),
        (set_image("head_camera", 5, encode_rgb(picture(1, 16))), "image_size", r"\(16, 16, 3\), earlier frames have"),
        (lambda f: f.attrs.__setitem__("seed", 9), "seed_disagrees", r"the file says seed 9, seed.txt says 2"),
    ],
)
def test_faults_inside_a_file(tmp_path, change, kind, message):
    dataset = make_dataset(tmp_path)
    edit(dataset.episode(1), change)
    report = verify(tmp_path, expected_episodes=3)
    assert [finding.kind for finding in report.findings] == [kind]
    assert report.findings[0].path == dataset.episode(1)
    assert re.search(message, report.findings[0].message)


def test_all_faults_of_a_file_are_listed(tmp_path):
    dataset = make_dataset(tmp_path, episodes=1)
    edit(dataset.episode(0), lambda f: put(f, "endpose/left_endpose", np.full((6, 7), np.nan)))
    edit(dataset.episode(0), lambda f: f.__delitem__("joint_action/right_arm"))
    edit(dataset.episode(0), set_image("left_camera", 0, b"no"))
    found = kinds(verify(tmp_path, expected_episodes=1))
    assert {kind for _, kind in found} == {"nonfinite", "missing_dataset", "image"}


def test_images_between_the_sampled_ones_are_checked_in_full(tmp_path):
    dataset = make_dataset(tmp_path, episodes=1)
    edit(dataset.episode(0), set_image("head_camera", 1, b""))
    edit(dataset.episode(0), set_image("head_camera", 2, b""))
    assert verify(tmp_path, expected_episodes=1).findings == ()
    [finding] = verify(tmp_path, expected_episodes=1, full=True).findings
    assert finding.message == "head_camera, frame 1: empty image (0 bytes) (and 1 more of 6 frames checked)"


def test_changed_numbers_are_found_by_checksum(tmp_path):
    dataset = make_dataset(tmp_path, episodes=1)
    before = check_file(dataset.episode(0), full=True).sha256
    log = {"seed": 0, "accepted": True, "reason": "ok", "sha256": before}
    dataset.seeds_log.write_text(json.dumps(log) + "\n")
    assert verify(tmp_path, expected_episodes=1, full=True).findings == ()
    edit(dataset.episode(0), set_value("endpose/left_endpose", (0, 0), 0.5))
    assert kinds(verify(tmp_path, expected_episodes=1, full=True)) == {("episode0.hdf5", "checksum")}


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda d: d.episode(1).unlink(), {("episode1.hdf5", "hole"), ("episode1.json", "extra_instructions")}),
        (
            lambda d: d.episode(2).unlink(),
            {("episode2.hdf5", "missing_episode"), ("episode2.json", "extra_instructions")},
        ),
        (lambda d: d.seed_file.write_text("0 2 "), {("episode2.hdf5", "extra_episode")}),
        (
            lambda d: d.seed_file.write_text("0 2 2 "),
            {("seed.txt", "duplicate_seed"), ("episode2.hdf5", "seed_disagrees")},
        ),
        (lambda d: d.seed_file.write_text("0 two 4"), {("seed.txt", "seeds")}),
        (lambda d: d.seed_file.unlink(), {("seed.txt", "missing_seeds")}),
        (lambda d: d.scene_info_file.unlink(), {("scene_info.json", "missing_scene_info")}),
        (lambda d: d.scene_info_file.write_text("{"), {("scene_info.json", "scene_info")}),
        (lambda d: d.instructions(0).unlink(), {("episode0.json", "missing_instructions")}),
        (lambda d: d.instructions(0).write_text('{"seen": ["a"], "unseen": []}'), {("episode0.json", "instructions")}),
        (lambda d: d.episode(0).with_name("episode_0.hdf5").write_text(""), {("episode_0.hdf5", "file_name")}),
        (lambda d: d.pending_episode(7).write_text(""), {(".seed7.hdf5", "unfinished")}),
    ],
)
def test_faults_of_a_data_set(tmp_path, spoil, expected):
    dataset = make_dataset(tmp_path)
    spoil(dataset)
    report = verify(tmp_path, expected_episodes=len(dataset.episode_numbers()))
    found = {each for each in kinds(report) if each != ("scene_info.json", "scene_info") or each in expected}
    assert found == expected


def test_scene_info_must_match_the_episodes(tmp_path):
    dataset = make_dataset(tmp_path)
    dataset.scene_info_file.write_text(json.dumps({"episode_0": {}, "episode_1": {}, "episode_3": {}}))
    messages = [finding.message for finding in verify(tmp_path, expected_episodes=3).errors]
    assert messages == ["no entry episode_2", "entry episode_3 has no episode file"]


def test_episode_ten_comes_after_episode_nine(tmp_path):
    dataset = make_dataset(tmp_path, episodes=11)
    assert dataset.episode_numbers() == tuple(range(11))
    assert verify(tmp_path, expected_episodes=11).findings == ()


def test_same_demonstration_twice(tmp_path):
    dataset = make_dataset(tmp_path)
    foreign_episode(dataset.episode(1))
    foreign_episode(dataset.episode(2))
    # The foreign episodes also hold the trajectory of seed 0.
    [first, second] = verify(tmp_path, expected_episodes=3).errors
    assert (first.path.name, first.kind) == ("episode1.hdf5", "duplicate_trajectory")
    assert second.message == "same trajectory as episode0.hdf5"


def test_warnings_are_not_errors(tmp_path):
    dataset = make_dataset(tmp_path)
    dataset.seed_file.write_text("0 2 100004 ")
    edit(dataset.episode(2), lambda f: f.attrs.__setitem__("seed", 100004))
    report = verify(tmp_path)
    assert {finding.kind for finding in report.findings} == {"evaluation_seed", "episode_count"}
    assert report.errors == ()


def test_processes_find_the_same(tmp_path):
    dataset = make_dataset(tmp_path)
    dataset.episode(1).write_bytes(b"")
    steps = []
    report = verify(tmp_path, workers=2, on_progress=lambda done, total: steps.append((done, total)))
    assert report == verify(tmp_path, workers=1)
    assert steps == [(1, 3), (2, 3), (3, 3)]


def test_random_damage_never_breaks_the_check(tmp_path):
    """Whatever bytes are changed, the check ends with a report."""
    path = tmp_path / "episode0.hdf5"
    write_episode(path, make_episode())
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(150):
        data = bytearray(good)
        # Damage near the end or the start hits HDF5's own structures, elsewhere mostly images.
        for position in rng.integers(0, 4000, size=8):
            data[position] = rng.integers(0, 256)
        path.write_bytes(bytes(data))
        found += bool(check_file(path).findings)
    assert found > 50


def run_cli(*arguments):
    import typer

    from evalkit.cli.data import register

    app = typer.Typer()
    register(app)
    return CliRunner().invoke(app, ["data", "verify", *map(str, arguments)])


def test_command_exits_0_on_clean_data_and_1_on_broken_data(tmp_path):
    dataset = make_dataset(tmp_path)
    result = run_cli(tmp_path, "--workers", 1, "--json", "--full")
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["ok"]
    assert [finding["kind"] for finding in report["findings"]] == ["episode_count"]
    dataset.episode(2).write_bytes(b"")
    result = run_cli(dataset.path, "--workers", 1, "--expect", 3)
    assert result.exit_code == 1
    assert "data/episode2.hdf5" in result.stdout
    assert "empty file (0 bytes)" in result.stdout
    assert "3 episode files, 12 frames: 1 broken files, 1 errors, 0 warnings" in result.stdout


@pytest.mark.parametrize("name", ["", "nowhere"])
def test_command_refuses_a_path_without_data(tmp_path, name):
    result = run_cli(tmp_path / name)
    assert isinstance(result.exception, UserError)
    assert str(tmp_path) in str(result.exception)
