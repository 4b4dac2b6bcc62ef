"""Bad input to ``evalkit run`` and ``evalkit seeds`` ends in one line and exit code 2, before any simulator starts."""

import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest
from pool_kit import CLEAN, FakeSimulator, fake, open_run

from evalkit.cli.main import run_cli
from evalkit.cli.run_options import no_gpus
from evalkit.cli.run_setup import RunRequest, RunSetup, prepare
from evalkit.plan.seed_files import SeedFiles
from evalkit.policy.settings import PolicySettings
from evalkit.pool.drive import find_seeds
from evalkit.pool.inline import InlineCrew
from evalkit.pool.observer import Observer
from evalkit.pool.seed_work import SeedNeed
from evalkit.sim.fake import factory
from evalkit.sim.fake.simulator import FINGERPRINT
from evalkit.sim.fake.world import SEVENTHS

REQUEST = {
    "checkpoint": None,
    "policy": "noop",
    "mode": "all",
    "tasks": "click_bell",
    "trials": 3,
    "repeats": 1,
    "execute_steps": None,
    "seed_base": 0,
    "backend": "fake",
    "out": None,
}


@pytest.fixture
def no_simulator(monkeypatch, tmp_path):
    """Fails the test if anything asks for a simulator."""

    def refuse(*arguments):
        raise AssertionError("a simulator was asked for")

    monkeypatch.setattr(factory, "fingerprint", refuse)
    monkeypatch.setattr(factory.FakeMaker, "__call__", refuse)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--policy noop --tasks click_bel", "unknown task 'click_bel': did you mean click_bell"),
        ("--policy noop --tasks ,", "no task named"),
        ("--policy noop --mode c2d", "unknown mode 'c2d': did you mean"),
        ("--policy nop", "unknown policy 'nop': did you mean noop?"),
        ("--ckpt step_999999999", "no checkpoint 'step_999999999'"),
        ("", "give --ckpt (a checkpoint) or --policy"),
        ("--policy noop --execute-steps 99", "--execute-steps is 99; policy noop gives chunks of 16"),
        ("--policy noop --execute-steps 0", "--execute-steps is 0"),
        ("--policy noop --seed-base -1", "--seed-base is -1"),
        ("--policy noop --trials 0", "--trials"),
        ("--policy noop --trials abs", "Invalid value for '--trials'"),
        ("--policy noop --trial-limit 0", "--trial-limit"),
        ("--policy noop --backend isaac", "unknown backend 'isaac': choose from fake, robotwin"),
    ],
)
def test_bad_input(no_simulator, capfd, arguments, says):
    backend = [] if "--backend" in arguments else ["--backend", "fake"]
    assert run_cli(["run", *arguments.split(), *backend]) == 2
    output, errors = capfd.readouterr()
    assert output == ""
    assert says in errors
    assert len(errors.strip().splitlines()) == 1


def test_bad_seed_input(no_simulator, capfd):
    assert run_cli(["seeds", "show", "--config", "demo_clear", "--backend", "fake"]) == 2
    assert "unknown task configuration 'demo_clear': did you mean demo_clean" in capfd.readouterr().err


def test_what_decides_a_policy_is_in_its_digest():
    setup = prepare(RunRequest(**REQUEST))
    digest = setup.policy.digest
    assert prepare(RunRequest(**{**REQUEST, "trials": 9, "execute_steps": 2})).policy.digest == digest
    assert prepare(RunRequest(**{**REQUEST, "policy": "replay"})).policy.digest != digest
    assert setup.policy.execute_steps == 16
    assert [config.name for config in setup.configs] == ["demo_clean", "demo_randomized"]


def find(setup, folder):
    with SeedFiles(folder, "x") as files:
        return find_seeds(InlineCrew(2, fake(SEVENTHS)), setup.seed_needs(), files, Observer())


def test_run_id_is_the_settings(tmp_path):
    setup = prepare(RunRequest(**REQUEST))
    seeds = find(setup, tmp_path)
    info = setup.info(FINGERPRINT, seeds)
    assert info.run_id.startswith("noop-all-")
    assert info.run_id == setup.info(FINGERPRINT, dict(reversed(seeds.items()))).run_id
    assert len(setup.plan(FINGERPRINT, seeds)) == 6
    for change in ({"execute_steps": 2}, {"repeats": 2}, {"policy": "expert"}):
        other = prepare(RunRequest(**{**REQUEST, **change}))
        assert other.info(FINGERPRINT, seeds).run_id != info.run_id


def test_a_folder_with_another_run_is_refused_before_the_pool_starts(no_simulator, monkeypatch, capfd, tmp_path):
    need = SeedNeed(task="click_bell", config=CLEAN, count=3)
    with SeedFiles(tmp_path / "results/seeds", FINGERPRINT.physics_digest) as files:
        seeds = find_seeds(InlineCrew(1, lambda name: FakeSimulator()), [need], files, Observer())
    open_run(tmp_path / "there", seeds, 3)
    monkeypatch.setattr(factory, "fingerprint", lambda: FINGERPRINT)
    command = "run --backend fake --policy noop --mode c2c --tasks click_bell --trials 3 --out there"
    assert run_cli(command.split()) == 2
    assert "holds another run (policy.adapter: 'queue' there, 'noop' now" in capfd.readouterr().err


def test_seed_statistics(monkeypatch, capfd, tmp_path):
    monkeypatch.chdir(tmp_path)
    setup = prepare(RunRequest(**{**REQUEST, "mode": "c2c", "trials": 30}))
    with SeedFiles(tmp_path / "results/seeds", FINGERPRINT.physics_digest) as files:
        find_seeds(InlineCrew(1, fake(SEVENTHS)), setup.seed_needs(), files, Observer())
    command = "seeds show --backend fake --tasks click_bell --config demo_clean --first 30 --json"
    assert run_cli(command.split()) == 0
    assert json.loads(capfd.readouterr().out) == [
        {
            "task": "click_bell",
            "config": "demo_clean",
            "tried": 30,
            "accepted": 8,
            "acceptance": 8 / 30,
            "rejected": {"plan_failed": 18, "unstable": 4},
            "rejected_in_detail": {"plan_failed": 18, "unstable": 4},
            "setup_s": None,
            "expert_s": None,
            "first_seed": 100000,
            "last_seed": 100009,
        }
    ]


def test_the_manifest_is_complete(tmp_path):
    setup = prepare(RunRequest(**REQUEST))
    info = setup.info(FINGERPRINT, find(setup, tmp_path))
    assert info.backend == asdict(FINGERPRINT)
    assert set(info.seed_lists) == {"click_bell/demo_clean", "click_bell/demo_randomized"}
    assert info.configs["demo_clean"].label == "?2c"
    assert info.configs["demo_randomized"].split == "unseen"
    assert info.environment["packages"]["numpy"]


@pytest.mark.parametrize(("options", "noted"), [({"compile": "default"}, {"policy_compile": "default"}), ({}, {})])
def test_a_compiled_policy_is_noted_in_the_manifest(options, noted):
    settings = PolicySettings(adapter="torch_module", name="p", options=options, folder=Path())
    setup = SimpleNamespace(maker=SimpleNamespace(settings=settings))
    assert RunSetup._policy_circumstances(setup) == noted


@pytest.mark.parametrize(("gpus", "device"), [(None, "cuda"), ("0", "cpu"), ("0,", "cuda")])
def test_a_policy_leaves_gpus_alone_if_it_is_told_to(monkeypatch, gpus, device):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    setup = prepare(RunRequest(**REQUEST, on_cpu=no_gpus(gpus)))
    assert (setup.maker.device, setup.policy.device) == (device, device)
