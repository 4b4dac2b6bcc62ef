"""The arithmetic of the benchmarks: rates, ratios, where workers' time went, which trials differ."""

from __future__ import annotations

import pytest


def stamp(name="toy_0", seed=0, started=100.0, ended=110.0, steps=50, value="1"):
    return {"name": name, "seed": seed, "started": started, "ended": ended, "steps": steps, "value": value}


def record(worker="worker-0", second=0.0, wall_s=10.0, seed=1, **values):
    phases = {"setup_s": 1.0, "physics_s": 5.0, "check_s": 0.5, "render_s": 1.0, "inference_s": 1.5, "queue_s": 0.5}
    minute, rest = divmod(second, 60.0)
    return {
        "key": str(seed),
        "spec": {"task": "click_bell", "config": "demo_clean", "seed": seed},
        "worker": worker,
        "started_at": f"2026-01-01T00:{int(minute):02}:{rest:06.3f}+00:00",
        "timings": {**phases, "wall_s": wall_s},
        "outcome": "success",
        "steps": 100,
        "policy_calls": 7,
        "success_step": 100,
        "state_digest": "abc",
        **values,
    }


ZERO = 1767225600.0  # 2026-01-01T00:00:00Z


def test_a_rate_counts_from_the_first_start_to_the_last_end():
    from accounts import rate

    one = rate("x", [stamp(), stamp(seed=1, started=95.0, ended=105.0), stamp(seed=2, started=110, ended=120)], 40.0)
    assert (one.episodes, one.steps, one.work_s) == (3, 150, 25.0)
    assert one.steps_per_s == 6.0
    assert one.steps_per_s_whole == 3.75


def test_an_episode_run_twice_or_none_at_all_is_no_rate():
    from accounts import rate

    with pytest.raises(ValueError, match="x ran 1 episodes twice"):
        rate("x", [stamp(), stamp(started=200.0, ended=220.0)], 40.0)
    with pytest.raises(ValueError, match="x finished no episode"):
        rate("x", [], 40.0)


def test_outcomes_are_compared_over_all_routes():
    from accounts import rate, same_outcomes

    first = rate("a", [stamp(), stamp(seed=1)], 1.0)
    assert same_outcomes([first, rate("b", [stamp(seed=1, started=1), stamp(ended=300)], 1.0)])
    assert not same_outcomes([first, rate("b", [stamp(), stamp(seed=1, value="2")], 1.0)])
    assert not same_outcomes([first, rate("b", [stamp()], 1.0)])


def test_ratios_take_the_best_of_each_side_and_leave_raw_pictures_apart():
    from accounts import rate
    from throughput import as_markdown, setting_result
    from toy_routes import PeerSetting

    def one(route, seconds):
        return rate(route, [stamp(ended=100.0 + seconds, steps=100)], 2 * seconds)

    runs = [
        [
            one("bare loop", 1.0 * slow),
            one("evalkit, 1 worker", 4.0 * slow),
            one("evalkit, 2 workers", 2.0 * slow),
            one("vla-eval, 1 shard", 20.0 * slow),
            one("vla-eval, 2 shards", 10.0 * slow),
            one(PeerSetting(shards=2, raw=True).name, 5.0 * slow),
        ]
        for slow in (1.0, 100.0, 2.0)
    ]
    result = setting_result("trivial", runs)
    ratios = result["ratios"]
    assert result["routes"]["bare loop"]["n"] == 3
    assert result["routes"]["bare loop"]["steps_per_s"] == 50.0  # the median run
    assert ratios["best evalkit / best vla-eval"] == pytest.approx(5.0)
    assert ratios["of"] == "evalkit, 2 workers; vla-eval, 2 shards"
    assert ratios["best evalkit / best vla-eval with raw pictures"] == pytest.approx(2.5)
    assert ratios["best evalkit / bare loop"] == pytest.approx(0.5)
    page = {"made_at": "now", "machine": {"cores": 2}, "settings": [{**result, "accounts": {"evalkit": {"ms": 1.0}}}]}
    text = as_markdown(page)
    assert "| vla-eval, 2 shards | 3 | 1 |" in text
    assert "- best evalkit / best vla-eval: 5.00" in text
    assert "ended every episode alike: yes" in text


def test_without_the_peer_there_is_no_ratio_to_it():
    from accounts import best, rate
    from throughput import setting_result

    result = setting_result("x", [[rate("bare loop", [stamp()], 1.0), rate("evalkit, 1 worker", [stamp()], 1.0)]])
    assert result["ratios"] == {"best evalkit / bare loop": 1.0}
    with pytest.raises(ValueError, match="no route begins with 'vla-eval'"):
        best(result["routes"], "vla-eval")


def test_every_second_of_every_worker_is_somewhere():
    from accounts import worker_time

    records = [
        record(second=20.0, seed=1),
        record(second=30.5, seed=2),
        record(worker="worker-1", second=22.0, seed=3, wall_s=12.0),
    ]
    spent = worker_time(records, ZERO, ZERO + 50.0)
    assert (spent.workers, spent.trials, spent.wall_s, spent.first_s, spent.work_s) == (2, 3, 50.0, 20.0, 20.5)
    assert spent.phases["physics_s"] == 15.0
    assert spent.other_s == pytest.approx(0.5 + 0.5 + 2.5)
    assert spent.between_s == pytest.approx(0.5)
    assert spent.start_s == pytest.approx(20.0 + 22.0)
    assert spent.end_s == pytest.approx(9.5 + 16.0)
    whole = sum(spent.phases.values()) + spent.other_s + spent.between_s + spent.start_s + spent.end_s
    assert whole == pytest.approx(2 * 50.0)
    assert spent.useful_s == pytest.approx(27.0)
    assert spent.efficiency == pytest.approx(27.0 / (2 * 20.5))
    assert spent.efficiency_whole == pytest.approx(27.0 / 100.0)
    assert spent.overhead_per_trial_ms == pytest.approx(1000 * 4.0 / 3)


def test_a_worker_that_never_got_a_trial_counts_as_idle():
    from accounts import worker_time

    spent = worker_time([record(second=10.0)], ZERO, ZERO + 25.0, workers=3)
    assert (spent.workers, spent.start_s) == (3, 10.0 + 2 * 25.0)
    with pytest.raises(ValueError, match="no trial was finished"):
        worker_time([], 0.0, 1.0)


def test_trials_that_differ_are_named():
    from accounts import differing

    first = [record(seed=1), record(seed=2), record(seed=3)]
    other = [record(seed=3, worker="worker-7"), record(seed=2, steps=99), record(seed=4)]
    assert differing(first, other) == [f"click_bell demo_clean {seed} 0" for seed in (1, 2, 4)]


def test_a_count_of_the_scaling_benchmark_is_compared_with_the_first():
    from scaling import as_markdown, count_result

    def found(records, cut_off=False):
        return {"began": ZERO, "wall_s": 60.0, "code": 0, "records": records, "cut_off": cut_off}

    first = [record(second=10.0, seed=1), record(second=20.0, seed=2)]
    alone = count_result(found(first), 1, None, 2, None)
    assert alone["trials_per_hour"] == pytest.approx(360.0)
    assert alone["trials_per_hour_whole"] == pytest.approx(120.0)
    assert sum(alone["shares"].values()) == pytest.approx(1.0)
    assert "differing" not in alone
    assert (alone["action_ms"], alone["observation_ms"]) == (50.0, pytest.approx(1000 / 7))
    both = [record(second=10.0, seed=1), record(worker="worker-1", second=10.0, seed=2, outcome="failure")]
    two = count_result(found(both), 2, 1, 2, first)
    assert two["differing"] == ["click_bell demo_clean 2 0"]
    assert two["outcomes"] == {"failure": 1, "success": 1}
    part = count_result(found(first[:1], cut_off=True), 2, 1, 2, first)
    assert part["differing"] == []  # what the limit cut off isn't held against it
    nothing = count_result(found([], cut_off=True), 4, 1, 2, first)
    text = as_markdown({"made_at": "now", "machine": {}, "command": ["evalkit"], "counts": [alone, two, part, nothing]})
    assert "| 1 | 2 | 2/2 | 720 |" in text
    assert "| 1 GPU, 2 workers |" in text


def test_gpus_are_the_first_of_those_allowed():
    from scaling import visible_gpus

    assert visible_gpus(2, {}) == "0,1"
    assert visible_gpus(1, {"CUDA_VISIBLE_DEVICES": "GPU-b,GPU-a"}) == "GPU-b"
    with pytest.raises(ValueError, match="--gpus 2: CUDA_VISIBLE_DEVICES allows 1"):
        visible_gpus(2, {"CUDA_VISIBLE_DEVICES": "3"})


def test_answers_that_differ_from_those_alone_are_counted():
    import numpy as np
    from policy_batching import compare

    alone = {(0, 0): np.zeros((2, 14)), (0, 1): np.ones((2, 14))}
    off = np.ones((2, 14))
    off[1, 3] += 0.25
    answers = [[[[5, np.zeros((2, 14))]], [[3, np.ones((2, 14))], [2, off]]]]
    assert compare(alone, answers) == {"compared": 10, "differing": 2, "largest_difference": 0.25}
