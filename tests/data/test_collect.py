from __future__ import annotations

import hashlib
import json
import threading
import time
from dataclasses import replace

import pytest
from expert_world import FINGERPRINT, ExpertWorld, is_rejected

from evalkit.cli.collect import parse_cameras, run_collection
from evalkit.core.errors import HarnessError, SimulatorError, UnknownNameError, UserError
from evalkit.core.files import read_json_lines
from evalkit.data.collect import Collection, SeedRecord
from evalkit.data.episode_file import read_episode, read_instructions
from evalkit.data.index import index_dataset
from evalkit.data.layout import DatasetFolder
from evalkit.data.verify import verify
from evalkit.protocol.config import load_config

TASKS = ("click_bell", "grab_roller")
SEEDS = [0, 2, 3, 5, 6, 7, 9]


class Killed(BaseException):
    """Stands for whatever ends the process."""


def collect(out, before=lambda _scene: None, **options):
    """Collect with the known world; returns the summary."""
    values = {
        "tasks": TASKS,
        "config": load_config("demo_clean"),
        "episodes": 5,
        "out": out,
        "workers": 1,
        "cameras": ("head_camera", "left_camera"),
        "max_rejects": 200,
        "fingerprint": lambda: FINGERPRINT,
        "make_simulator": lambda _worker: ExpertWorld(before),
        **options,
    }
    return run_collection(**values)


def contents(root):
    """Relative path -> digest of every file."""
    files = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """What one worker collects undisturbed."""
    root = tmp_path_factory.mktemp("reference")
    collect(root)
    return root


def test_episodes_are_the_first_successful_seeds(reference):
    dataset = DatasetFolder.of(reference, "click_bell", "demo_clean")
    assert dataset.seed_file.read_text() == "0 2 3 5 6 "
    assert dataset.episode_numbers() == (0, 1, 2, 3, 4)
    episode = read_episode(dataset.episode(3))
    assert episode.frames == 5
    assert sorted(episode.images) == ["head_camera", "left_camera"]
    assert episode.provenance is not None
    assert (episode.provenance.seed, episode.provenance.assets, episode.provenance.task) == (5, "none", "click_bell")
    assert episode.provenance.config_digest == load_config("demo_clean").digest
    sentences = read_instructions(dataset.instructions(3))
    assert len(sentences["seen"]) == len(sentences["unseen"]) == 100
    assert sentences["unseen"][0] == "unseen sentence 0 of click_bell, seed 5, left arm"
    assert json.loads(dataset.scene_info_file.read_text())["episode_3"] == {
        "cluttered_table_info": [{"object_type": "001_bottle", "object_index": "2"}],
        "texture_info": {"wall_texture": "seen/3", "table_texture": None},
        "info": {"{a}": "left"},
    }
    report = verify(reference, expected_episodes=5, full=True)
    assert report.findings == ()
    assert len(index_dataset(reference, TASKS, "demo_clean")) == 10


def test_every_seed_tried_is_recorded_with_its_reason(reference):
    lines = read_json_lines(DatasetFolder.of(reference, "click_bell", "demo_clean").seeds_log)
    assert [line["seed"] for line in lines] == list(range(7))
    reasons = {line["seed"]: line["reason"] for line in lines if not line["accepted"]}
    assert reasons == {1: "unstable: objects turn: bell", 4: "plan_failed"}


@pytest.mark.parametrize("workers", [2, 3])
def test_any_number_of_workers_collects_the_same_files(tmp_path, reference, workers):
    """Later seeds finish first, as far as there are workers."""
    summary = collect(tmp_path, lambda scene: time.sleep(0.02 * (scene.seed % 2 == 0)), workers=workers)
    assert contents(tmp_path) == contents(reference)
    assert [(task["episodes"], task["complete"]) for task in summary["tasks"]] == [(5, True), (5, True)]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("fatal_seed", [0, 3, 6])
def test_a_killed_collection_goes_on_to_the_same_files(tmp_path, reference, fatal_seed, workers):
    def die(scene):
        if scene.seed == fatal_seed:
            raise Killed

    with pytest.raises(Killed):
        collect(tmp_path, die, workers=workers)
    done_before = {path.name for path in tmp_path.rglob("*.hdf5")}
    tried = []
    collect(tmp_path, lambda scene: tried.append((scene.task, scene.seed)), workers=workers)
    assert contents(tmp_path) == contents(reference)
    assert ("click_bell", fatal_seed) in tried
    assert len(tried) == len(set(tried))
    if workers == 1:
        assert [seed for task, seed in tried if task == "click_bell"] == list(range(fatal_seed, 7))
        assert len(done_before) == sum(not is_rejected(seed) for seed in range(fatal_seed))


def test_seeds_that_wait_for_smaller_ones_are_kept_through_a_kill(tmp_path, reference):
    """Seed 0 never ends before the kill; seeds 2 and 3 are finished and wait without a number."""
    others_done = threading.Event()

    def wait_or_die(scene):
        if scene.seed == 0:
            assert others_done.wait(20)
            raise Killed
        if scene.seed == 5:
            others_done.set()
            raise SimulatorError("task_code", "ends with the rest")

    with pytest.raises(Killed):
        collect(tmp_path, wait_or_die, tasks=("click_bell",), workers=2)
    dataset = DatasetFolder.of(tmp_path, "click_bell", "demo_clean")
    assert dataset.episode_numbers() == ()
    assert dataset.pending_episode(2).exists()
    assert verify(tmp_path / "click_bell", expected_episodes=1).findings[-1].kind == "unfinished"
    tried = []
    collect(tmp_path, lambda scene: tried.append(scene.seed), tasks=("click_bell",))
    assert tried == [0, 5, 6]
    wanted = {name: value for name, value in contents(reference).items() if name.startswith("click_bell")}
    assert contents(tmp_path) == wanted


def test_more_episodes_can_be_added_later(tmp_path):
    collect(tmp_path, tasks=("click_bell",), episodes=3)
    tried = []
    collect(tmp_path, lambda scene: tried.append(scene.seed), tasks=("click_bell",), episodes=7)
    assert tried == [4, 5, 6, 7, 8, 9]
    assert DatasetFolder.of(tmp_path, "click_bell", "demo_clean").seed_file.read_text() == "0 2 3 5 6 7 9 "
    before = contents(tmp_path)
    [task] = collect(tmp_path, tasks=("click_bell",), episodes=5)["tasks"]
    assert (task["episodes"], task["complete"]) == (7, True)
    assert contents(tmp_path) == before


def test_a_deleted_episode_is_collected_again(tmp_path, reference):
    collect(tmp_path)
    dataset = DatasetFolder.of(tmp_path, "click_bell", "demo_clean")
    dataset.episode(1).unlink()
    dataset.instructions(3).unlink()
    tried = []
    collect(tmp_path, lambda scene: tried.append(scene.seed))
    assert tried == [2, 5]
    assert contents(tmp_path) == contents(reference)


def test_a_seed_that_changes_its_fate_is_an_error(tmp_path):
    collect(tmp_path, tasks=("click_bell",))
    dataset = DatasetFolder.of(tmp_path, "click_bell", "demo_clean")
    dataset.episode(1).unlink()

    class Fickle(ExpertWorld):
        def expert(self, **options):
            return replace(super().expert(**options), success=False, reason="check_failed")

    with pytest.raises(HarnessError, match="seed 2 was accepted before and is rejected now"):
        collect(tmp_path, tasks=("click_bell",), make_simulator=lambda _worker: Fickle())


@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_error_again_and_again_stops_a_task(tmp_path, reference, workers):
    def no_asset(scene):
        if scene.task == "click_bell":
            raise SimulatorError("task_code", "FileNotFoundError: 050_bell/model_data0.json\ntraceback")

    summary = collect(tmp_path, no_asset, workers=workers)
    stopped, other = summary["tasks"]
    assert stopped["stopped"] == (
        "the same error 5 times in a row: task_code: FileNotFoundError: 050_bell/model_data0.json"
    )
    assert (stopped["episodes"], stopped["complete"]) == (0, False)
    assert other["complete"]
    # The seeds weren't at fault: with the asset in place, nothing is held against them.
    assert stopped["rejected"] == {} or workers > 1
    collect(tmp_path)
    assert (tmp_path / "click_bell/demo_clean/seed.txt").read_text() == "0 2 3 5 6 "


def test_errors_of_single_seeds_are_rejections(tmp_path):
    def bad_seeds(scene):
        if scene.seed in (0, 2, 3):
            raise SimulatorError("task_code", "ValueError: bad pose")

    [task] = collect(tmp_path, bad_seeds, tasks=("click_bell",), episodes=2)["tasks"]
    assert task["rejected"] == {"task_code": 3, "unstable": 1, "plan_failed": 1}
    assert (tmp_path / "click_bell/demo_clean/seed.txt").read_text() == "5 6 "
    lines = read_json_lines(tmp_path / "click_bell/demo_clean/seeds.jsonl")
    assert [line["seed"] for line in lines] == list(range(7))


def test_a_crash_is_tried_again_on_the_same_seed(tmp_path, reference):
    crashes = iter(range(100))

    def crash_twice(scene):
        if scene.seed == 3 and scene.task == "click_bell" and next(crashes) < 2:
            raise SimulatorError("crash", "the worker ended with SIGSEGV; log: here", signal=11)

    collect(tmp_path, crash_twice)
    assert contents(tmp_path) == contents(reference)


def test_a_seed_that_always_crashes_is_rejected(tmp_path):
    attempts = []

    def crash(scene):
        if scene.seed == 3:
            attempts.append(scene.seed)
            raise SimulatorError("crash", "the worker ended with SIGSEGV", signal=11)

    [task] = collect(tmp_path, crash, tasks=("click_bell",), episodes=3)["tasks"]
    assert len(attempts) == 3
    assert task["rejected"]["crash"] == 1
    assert (tmp_path / "click_bell/demo_clean/seed.txt").read_text() == "0 2 5 "


def test_a_hopeless_task_is_given_up(tmp_path):
    def unstable(scene):
        from evalkit.core.errors import UnstableSceneError

        raise UnstableSceneError("unstable", f"seed {scene.seed}")

    [task] = collect(tmp_path, unstable, tasks=("click_bell",), max_rejects=6)["tasks"]
    assert task["stopped"] == "6 seeds rejected (6 unstable): raise --max-rejects to go on"
    assert task["seeds_tried"] == 6


def test_ctrl_c_is_reported_and_simulators_are_closed(tmp_path, reference):
    worlds = []

    def make(_worker):
        worlds.append(ExpertWorld(interrupt))
        return worlds[-1]

    def interrupt(scene):
        if scene.seed == 3:
            raise KeyboardInterrupt

    summary = collect(tmp_path, make_simulator=make, workers=2)
    assert summary["interrupted"]
    assert worlds
    assert all(world.closed.is_set() for world in worlds)
    assert not collect(tmp_path)["interrupted"]
    assert contents(tmp_path) == contents(reference)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"config": load_config("demo_randomized")}, None),
        ({"cameras": ("head_camera",)}, r"collected with cameras \['head_camera', 'left_camera'\], now it is"),
        (
            {"fingerprint": lambda: FINGERPRINT.__class__(**{**vars(FINGERPRINT), "renderer": "gpu"})},
            "backend.renderer",
        ),
    ],
)
def test_another_origin_is_refused_in_the_same_folder(tmp_path, change, message):
    collect(tmp_path, tasks=("click_bell",), episodes=2)
    before = contents(tmp_path / "click_bell" / "demo_clean")
    if message is None:
        collect(tmp_path, tasks=("click_bell",), episodes=2, **change)
    else:
        with pytest.raises(UserError, match=message):
            collect(tmp_path, tasks=("click_bell",), episodes=2, **change)
    assert contents(tmp_path / "click_bell" / "demo_clean") == before


def test_foreign_data_is_not_added_to(tmp_path):
    from demo_files import make_dataset

    make_dataset(tmp_path)
    with pytest.raises(UserError, match="holds episodes that evalkit didn't collect"):
        collect(tmp_path)


def test_two_collectors_never_share_a_folder(tmp_path):
    dataset = DatasetFolder.of(tmp_path, "click_bell", "demo_clean")
    first = Collection(dataset, 1, {"task": "click_bell"})
    with pytest.raises(UserError, match="another process is collecting"):
        Collection(dataset, 1, {"task": "click_bell"})
    first.close()
    Collection(dataset, 1, {"task": "click_bell"}).close()


def test_no_more_seeds_are_handed_out_than_can_be_needed(tmp_path):
    collection = Collection(DatasetFolder.of(tmp_path, "click_bell", "demo_clean"), 2, {})
    assert [collection.next_seed() for _ in range(3)] == [0, 1, None]
    collection.record(SeedRecord(seed=1, accepted=False, reason="plan_failed"))
    assert [collection.next_seed() for _ in range(2)] == [2, None]
    collection.abandon(0)
    assert collection.next_seed() == 0
    collection.close()


def test_a_log_that_is_no_log_is_an_error(tmp_path):
    dataset = DatasetFolder.of(tmp_path, "click_bell", "demo_clean")
    dataset.path.mkdir(parents=True)
    dataset.seeds_log.write_text('{"seed": 0}\n')
    with pytest.raises(UserError, match="isn't a record of seeds"):
        Collection(dataset, 1, {})


def test_camera_names_are_checked():
    assert parse_cameras("left_camera, head_camera") == ("head_camera", "left_camera")
    with pytest.raises(UnknownNameError, match="did you mean head_camera"):
        parse_cameras("head_cam")
    with pytest.raises(UserError, match="no camera named"):
        parse_cameras(" , ")
