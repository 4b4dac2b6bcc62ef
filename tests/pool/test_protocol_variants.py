"""Every rule of a protocol is carried out: each test here fails if its rule isn't. On the fake simulator, in one
process."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from pool_kit import Make, Queue50
from variant_kit import REQUEST, TASK, PassesBy, Raises, Stays

from evalkit.cli.protocol_choice import trials_of
from evalkit.cli.run_setup import prepare
from evalkit.core.errors import UserError
from evalkit.core.tasks import STEP_LIMITS
from evalkit.sim.fake import FakeSimulator, FakeWorld, Fault
from evalkit.sim.fake.world import SEVENTHS


@pytest.mark.parametrize(
    ("protocol", "seed_base", "seeds"),
    [
        ("leaderboard", 0, [100000, 100001, 100002]),
        ("robotwin-2026-08", 1, [200000, 200002, 200003]),
        ("x-wam", 0, [100000, 100001, 100002]),
        ("lingbot-va", 0, [10001, 10002, 10003]),
        ("lingbot-va", 1, [20001, 20002, 20004]),
        ("x-vla", 0, [2000, 2001, 2002]),
        ("lerobot", 0, [1000, 1001, 1002]),  # of which the last is unstable
    ],
)
def test_first_seed(repeat, protocol, seed_base, seeds):
    assert [spec.seed for spec in repeat(protocol, seed_base=seed_base).run.plan] == seeds


def test_lerobot_has_one_list_and_one_configuration():
    with pytest.raises(UserError, match="--seed-base is 1; protocol lerobot always starts at seed 1000: leave"):
        prepare(replace(REQUEST, protocol="lerobot", seed_base=1))
    with pytest.raises(UserError, match="--mode is all; protocol lerobot has no demo_randomized: give --mode c2c"):
        prepare(replace(REQUEST, protocol="lerobot", mode="all"))


def test_unfiltered_seeds_run_no_expert_and_hold_unstable_scenes(repeat):
    broken = FakeWorld(unsolvable=lambda seed: True)
    found = repeat("lerobot", world=broken, trials=5)
    assert [entry.reason for entry in found.seeds[TASK, "demo_clean"].entries] == ["unchecked"] * 5
    with pytest.raises(UserError, match="were rejected"):
        repeat("leaderboard", world=broken)


@pytest.mark.parametrize(
    ("protocol", "mode", "words"),
    [
        ("leaderboard", "c2c", "(seen wording"),
        ("leaderboard", "c2r", "(unseen wording"),
        ("robotwin-legacy", "c2c", "(unseen wording"),
        ("robotwin-2026-08", "c2c", "(seen wording"),
        ("x-wam", "c2c", "(unseen wording"),
        ("lingbot-va", "c2r", "(seen wording"),
        ("vla-eval", "c2r", "(seen wording"),
        ("x-vla", "c2c", "click bell"),
        ("lerobot", "c2c", "click bell"),
    ],
)
def test_the_policy_is_told_what_the_protocol_has_it_told(repeat, protocol, mode, words):
    Stays.told.clear()
    found = repeat(protocol, mode=mode)
    assert len(Stays.told) == (2 if protocol == "lerobot" else 3)  # its third scene is unstable, and ends the run
    assert all(words in told for told in Stays.told)
    splits = {spec.instruction_split for spec in found.run.plan}
    assert splits == {"none" if words == "click bell" and protocol == "x-vla" else next(iter(splits))}


def test_lerobot_has_sentences_for_two_tasks(repeat):
    Stays.told.clear()
    repeat("lerobot", tasks="blocks_ranking_rgb,click_bell", trials=1)
    assert any("(seen wording" in told for told in Stays.told)
    assert "click bell" in Stays.told


def test_other_sentences_for_the_same_scenes_need_no_second_search(repeat):
    ours = repeat("leaderboard").seeds[TASK, "demo_clean"]
    theirs = repeat("robotwin-legacy", world=Make(NoExpert, (SEVENTHS,)), folder="other").seeds[TASK, "demo_clean"]
    assert [entry.seed for entry in theirs.entries] == [entry.seed for entry in ours.entries]
    assert not {entry.instruction for entry in theirs.accepted} & {entry.instruction for entry in ours.accepted}


class NoExpert(FakeSimulator):
    def expert(self, **options):
        raise AssertionError("the expert was asked")


def test_step_limits(repeat):
    tasks = "click_bell,open_microwave"
    limits = {}
    for protocol in ("leaderboard", "x-vla", "lerobot"):
        specs = repeat(protocol, tasks=tasks, trials=1, folder=protocol).run.plan
        limits[protocol] = [spec.horizon_steps for spec in specs]
    official = [STEP_LIMITS["click_bell"], STEP_LIMITS["open_microwave"]]
    assert limits == {"leaderboard": official, "x-vla": [300, 300], "lerobot": [1200, 1200]}


def test_the_trial_ends_at_the_protocols_limit(repeat):
    steps = {record.steps for record in repeat("x-vla").run.records().values()}
    assert steps == {300}


@pytest.mark.parametrize(
    ("limits", "execute_steps", "steps"),
    [("10 chunks", 10, 100), ("10 chunks", 4, 40), ("official_up_to_70", 10, 70), ("official", 10, 400)],
)
def test_limits_in_chunks_and_caps(repeat, with_rules, limits, execute_steps, steps):
    with_rules(step_limits=limits)
    found = repeat("robotwin-2026-08", trials=1, execute_steps=execute_steps).run
    assert [record.steps for record in found.records().values()] == [steps]


@pytest.mark.parametrize(
    ("rule", "policy", "outcome"),
    [
        ("any_instant", PassesBy, "success"),
        ("after_each_chunk", PassesBy, "failure"),
        ("at_end", PassesBy, "failure"),
        ("after_each_chunk", Queue50, "success"),
        ("at_end", Queue50, "success"),
    ],
)
def test_when_success_counts(repeat, with_rules, rule, policy, outcome):
    with_rules(success=rule, step_limits="40")
    run = repeat("robotwin-2026-08", policy=policy).run
    assert {str(record.outcome) for record in run.records().values()} == {outcome}
    if outcome == "success":
        steps = {record.success_step for record in run.records().values()}
        assert steps == {{"any_instant": 3, "after_each_chunk": 10, "at_end": 40}[rule]}


LOOKS_BACK = """
adapter: xpolicylab
url: tcp://127.0.0.1:1
serves: nothing, which is never asked here
robot: {actions: qpos, cameras: {}, chunk_steps: 4, execute_steps: 4, history_steps: 2}
"""


def test_a_policy_that_looks_between_actions_cant_be_judged_after_whole_chunks(tmp_path, with_rules):
    (tmp_path / "looks.yaml").write_text(LOOKS_BACK)
    request = replace(REQUEST, policy=str(tmp_path / "looks.yaml"), protocol="robotwin-2026-08", execute_steps=None)
    assert prepare(request).spec.history_steps == 2
    with_rules(success="after_each_chunk")
    with pytest.raises(UserError, match="policy looks looks between the actions of a chunk, and protocol robotwin"):
        prepare(request)


@pytest.mark.parametrize(
    ("protocol", "outcomes", "done", "missing", "dropped"),
    [
        ("leaderboard", {"policy_error": 2, "failure": 3}, 5, 0, 0),
        ("robotwin-2026-08", {"policy_error": 2, "failure": 3}, 5, 0, 0),
        ("vla-eval", {"policy_error": 2, "failure": 3}, 5, 0, 0),
        ("x-wam", {"policy_error": 2, "failure": 3}, 5, 0, 0),
        ("robotwin-legacy", {"policy_error": 1}, 0, 5, 0),
        ("lingbot-va", {"policy_error": 1}, 0, 5, 0),
        ("lerobot", {"policy_error": 1}, 0, 5, 0),
        ("x-vla", {"policy_error": 2, "failure": 3}, 3, 0, 2),
    ],
)
def test_an_exception_of_the_policy(repeat, protocol, outcomes, done, missing, dropped):
    found = repeat(protocol, policy=Raises, trials=5)
    assert Counter(str(record.outcome) for record in found.run.records().values()) == outcomes
    [score] = found.summary.configs
    assert (score.done, score.n_missing, score.dropped) == (done, missing, dropped)
    assert score.status == ("incomplete" if missing else score.status)
    if not missing:
        assert score.tasks[0].estimate is not None
        assert score.tasks[0].estimate.n == done


@pytest.mark.parametrize(("protocol", "ends_all"), [("robotwin-legacy", False), ("lerobot", True)])
def test_how_much_an_error_ends(repeat, protocol, ends_all):
    world = FakeWorld(faults=tuple(Fault(kind="exception", seed=seed, step=0) for seed in (1000, 100000)))
    found = repeat(protocol, world=Make(BellBreaks, (world,)), tasks="click_bell,grab_roller")
    counts = Counter(record.spec.task for record in found.run.records().values())
    assert 1 <= counts["click_bell"] < 3
    assert (counts["grab_roller"] < 3) == ends_all
    assert found.session.stop_reason
    assert protocol in found.session.stop_reason
    assert found.summary.status == "incomplete"


class BellBreaks(FakeSimulator):
    """The world's faults strike in click_bell alone."""

    def _strike(self, step):
        if self._scene.task == "click_bell":
            super()._strike(step)


@pytest.mark.parametrize(
    ("protocol", "counts_as"), [("leaderboard", (0, 1, 0)), ("robotwin-2026-08", (1, 0, 0)), ("x-vla", (0, 0, 1))]
)
def test_an_exception_of_the_simulator(repeat, protocol, counts_as):
    seed = {"x-vla": 2000}.get(protocol, 100000)
    world = FakeWorld(faults=(Fault(kind="exception", seed=seed, step=0),))
    [score] = repeat(protocol, world=world, trials=1).summary.configs
    assert (score.tasks[0].failures, score.n_missing, score.dropped) == counts_as


def test_the_number_of_trials():
    assert trials_of("leaderboard", None) == 100
    assert trials_of("x-vla", 10) == 10
    with pytest.raises(UserError, match="protocol x-vla leaves trials_per_task to each run: give --trials"):
        trials_of("x-vla", None)


def test_tasks_a_protocol_leaves_out():
    setup = prepare(replace(REQUEST, protocol="lerobot", tasks=None))
    assert len(setup.tasks) == 49
    assert "open_laptop" not in setup.tasks
    with pytest.raises(UserError, match="protocol lerobot leaves out open_laptop: take it out of --tasks"):
        prepare(replace(REQUEST, protocol="lerobot", tasks="open_laptop"))
    assert len(prepare(replace(REQUEST, tasks=None)).tasks) == 50
