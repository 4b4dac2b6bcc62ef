"""The benchmarks' own world and policies do what the comparison rests on."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest


def test_the_small_world_tells_lost_and_stale_pictures_by_its_end(tmp_path):
    import toy

    def play(spoil=lambda images: images):
        world = toy.ToyWorld(20, 0.0, 3, tmp_path)
        world.reset("toy_0", 5)
        done = False
        while not done:
            for action in toy.decide(world.state(), spoil(world.pictures()), 4):
                done = world.step(action)
        return world.value

    right = play()
    assert play() == right
    stale = toy.ToyWorld(20, 0.0, 3).pictures()
    assert play(lambda images: stale) != right
    assert play(lambda images: {}) != right
    lines = [json.loads(line) for path in tmp_path.glob("*.jsonl") for line in path.read_text().splitlines()]
    assert [line["steps"] for line in lines] == [20, 20, 20, 20]
    assert lines[0]["value"] == right


def test_actions_survive_a_road_that_hands_on_float32():
    import toy

    actions = toy.decide(np.full(14, 0.123456789), {}, 3)
    assert np.array_equal(actions, actions.astype(np.float32).astype(np.float64))


def test_the_small_world_is_the_same_through_evalkits_trial_loop(tmp_path):
    import toy_routes
    from evalkit_side import ToyJob, ToyPolicy, ToySimulator, open_toy_run

    from evalkit.episode.decide import LocalDecider
    from evalkit.episode.run_trial import run_trial
    from evalkit.pool.seed_work import make_scene
    from evalkit.protocol.config import load_config

    setting = toy_routes.ToySetting(name="x", step_ms=0, images=3, chunk_steps=3, tasks=2, episodes=2, horizon=10)
    bare = toy_routes.bare(setting)
    stamps = tmp_path / "stamps"
    stamps.mkdir()
    values = {"tasks": 2, "episodes": 2, "horizon": 10, "step_ms": 0, "images": 3, "chunk_steps": 3}
    job = ToyJob(workers=1, stamps=str(stamps), folder=str(tmp_path / "run"), **values)
    run, config = open_toy_run(job), load_config("demo_clean")
    for spec in run.plan:
        scene = make_scene(spec.task, config, spec.seed)
        run_trial(ToySimulator(job), LocalDecider(ToyPolicy(job)), spec, scene, session=spec.key)
    lines = [json.loads(line) for path in stamps.glob("*.jsonl") for line in path.read_text().splitlines()]
    assert {(line["name"], line["seed"], line["value"]) for line in lines} == bare.outcomes


def test_the_large_policy_gives_each_row_its_own_noise_and_pictures():
    import torch
    from batch_client import episode, observation
    from big_policy import BigPolicy, Size, make_network

    network = make_network(Size(width=16, layers=1, heads=2, chunk_steps=4, euler_steps=2), "cpu", torch.float32)
    alone = BigPolicy(network, slots=1)
    looks = [observation(session, look) for session in range(2) for look in range(2)]
    for session in range(2):
        alone.reset(episode(session))
    right = alone.act_batch(looks)
    assert {chunk.shape for chunk in right} == {(4, 14)}
    assert len({chunk.tobytes() for chunk in right}) == 4
    for look, chunk in zip(looks, right, strict=True):
        assert np.array_equal(chunk, alone.act(look))
    for slots, row_by_row in ((3, False), (3, True), (None, True), (None, False)):
        policy = BigPolicy(network, slots=slots, row_by_row=row_by_row)
        for session in range(2):
            policy.reset(episode(session))
        for chunk, expected in zip(policy.act_batch(looks), right, strict=True):
            np.testing.assert_allclose(chunk, expected, atol=1e-4)


def test_the_default_size_is_about_a_billion_parameters():
    import torch
    from big_policy import Network, Size

    with torch.device("meta"):
        parameters = sum(parameter.numel() for parameter in Network(Size()).parameters())
    assert 0.9e9 < parameters < 1.1e9


STAND_IN = """
import json, sys, time
from pathlib import Path
options = dict(zip(sys.argv[2::2], sys.argv[3::2]))
if sys.argv[1] == "run":
    out = Path(options["--out"])
    out.mkdir()
    (out / "plan.jsonl").write_text("{}\\n" * 2)
    for seed in range(2):
        if seed == 1 and options["--workers"] == "3":
            time.sleep(60)
        line = {"key": str(seed), "spec": {"task": "t", "config": "c", "seed": seed}, "worker": "worker-0"}
        line |= {"outcome": "success", "steps": 4, "policy_calls": 1, "success_step": 4, "state_digest": "x"}
        line |= {"started_at": f"2026-01-01T00:00:0{seed}+00:00", "timings": {"physics_s": 0.5, "wall_s": 0.75}}
        if seed == 1 and options["--workers"] == "2":
            line["steps"] = 5
        with (out / "trials.jsonl").open("a") as stream:
            stream.write(json.dumps(line) + "\\n")
"""


def test_the_scaling_benchmark_writes_each_count_compares_and_keeps_to_its_limit(tmp_path, monkeypatch, capsys):
    import scaling

    out, stand_in = tmp_path / "out", tmp_path / "evalkit.py"
    stand_in.write_text(STAND_IN)
    monkeypatch.setattr(scaling, "EVALKIT", [sys.executable, str(stand_in)])
    monkeypatch.setattr(sys, "argv", ["scaling.py", "--workers", "1,2,3,4", "--out", str(out), "--limit-s", "6"])
    assert scaling.main() == 1  # a trial of two workers took another number of steps
    one, two, three = json.loads((out / "scaling.json").read_text())["counts"]
    assert (one["trials"], one["wanted"], one["cut_off"]) == (2, 2, False)
    assert two["differing"] == ["t c 1 0"]
    assert (three["trials"], three["cut_off"], three["differing"]) == (1, True, [])
    printed = capsys.readouterr()
    assert "| trials/h |" in printed.out
    assert "the limit is reached before 4 workers" in printed.err
    with pytest.raises(SystemExit):
        scaling.main()  # the folder isn't empty any more
