"""The language of fault files: what it says is what strikes; what it doesn't know is refused in one line."""

import pytest

from evalkit.core.errors import SimulatorError, UnstableSceneError, UserError
from evalkit.sim.contract import Scene
from evalkit.sim.fake import FakeSimulator
from evalkit.sim.fake.factory import FAULTS_VARIABLE, maker_from_environment
from evalkit.sim.fake.fault_file import PolicyFault, parse_faults, read_faults
from evalkit.sim.fake.process import FakeProcessSimulator


def scene(seed=100002, task="click_bell"):
    return Scene(task=task, config="demo_clean", settings={}, seed=seed, horizon_steps=25)


def sim_fault(**entry):
    return {"faults": [{"where": "sim", "task": "click_bell", "seed": 100002, **entry}]}


def test_a_fault_strikes_its_task_and_seed_and_so_many_attempts(tmp_path):
    faults = parse_faults(sim_fault(kind="exception", attempts=2), tmp_path / "marks")
    sim = FakeSimulator(faults.world)
    for _ in range(2):
        with pytest.raises(SimulatorError, match="broke at step -1"):
            sim.reset(scene())
    sim.reset(scene())
    for other in (scene(seed=100005), scene(task="place_shoe")):
        FakeSimulator(parse_faults(sim_fault(kind="exception"), tmp_path).world).reset(other)


def test_an_unstable_scene_on_order(tmp_path):
    sim = FakeSimulator(parse_faults(sim_fault(kind="unstable"), tmp_path).world)
    with pytest.raises(UnstableSceneError):
        sim.reset(scene())


def test_a_memory_balloon_ends_its_own_process_only(tmp_path):
    world = parse_faults(sim_fault(kind="memory"), tmp_path).world
    sim = FakeProcessSimulator(world, log_path=tmp_path / "log")
    with pytest.raises(SimulatorError) as caught:
        sim.reset(scene())
    assert caught.value.kind == "crash"
    assert "MemoryError" in (tmp_path / "log").read_text()


def test_faults_of_the_policy_are_kept_apart(tmp_path):
    entry = {"where": "policy", "kind": "nan", "task": "click_bell", "seed": 100002, "step": 3}
    faults = parse_faults({"faults": [entry]}, tmp_path)
    assert faults.world.faults == ()
    assert faults.policy == (PolicyFault(kind="nan", task="click_bell", seed=100002, step=3),)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- 1", "must be a mapping"),
        ("faults: 3", "faults must be a list"),
        ("faults: [{where: sim, kind: hangs, seed: 1}]", "unknown kind in .* 'hangs': did you mean hang"),
        ("faults: [{where: moon, kind: hang, seed: 1}]", "where is 'moon'"),
        ("faults: [{where: sim, kind: hang}]", "names no seed"),
        ("faults: [{where: sim, kind: hang, seed: x}]", "seed is 'x'; it is a number"),
        ("faults: [{where: sim, kind: hang, seed: 1, task: click_bel}]", "unknown task 'click_bel'"),
        ("faults: [{where: policy, kind: nan, seed: 1}]", "names no task"),
        ("faults: [{where: sim, kind: unstable, seed: 1, step: 2}]", "leave step out"),
        ("fault: []", "unknown key in .* 'fault': did you mean faults"),
        ("a: [", "isn't YAML"),
    ],
)
def test_what_is_not_of_the_language_is_named(tmp_path, text, says):
    path = tmp_path / "faults.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=says):
        read_faults(path)


def test_the_environment_names_a_file_for_the_fake_backend(tmp_path, monkeypatch):
    path = tmp_path / "faults.yaml"
    monkeypatch.setenv(FAULTS_VARIABLE, str(path))
    with pytest.raises(UserError, match="can't be read: No such file"):
        maker_from_environment()
    path.write_text("{step_s: 0.25, faults: [{where: sim, kind: hang, seed: 100002, attempts: 1}]}")
    maker = maker_from_environment()
    assert (maker.world.step_s, maker.world.faults[0].kind) == (0.25, "hang")
    assert (tmp_path / "faults.yaml.marks").is_dir()
    path.write_text("faults: [{where: policy, kind: nan, task: click_bell, seed: 100002}]")
    with pytest.raises(UserError, match="evalkit drill --faults"):
        maker_from_environment()
