from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalkit.core.errors import UnknownNameError, UserError
from evalkit.core.locations import bundled
from evalkit.core.outcome import Outcome
from evalkit.core.tasks import TASKS
from evalkit.protocol.config import load_config
from evalkit.protocol.modes import MODES, configs_of
from evalkit.protocol.protocols import known_protocols, load_protocol, read_protocol
from evalkit.protocol.sheets import known_sheets


def test_the_leaderboard() -> None:
    protocol = load_protocol("leaderboard")
    assert (protocol.tasks, protocol.trials_per_task, protocol.first_seed) == (len(TASKS), 100, 100_000)
    assert protocol.configs == {"c2c": "demo_clean", "c2r": "demo_randomized"}
    assert protocol.outcomes[Outcome.POLICY_ERROR] == "failure"
    assert protocol.outcomes[Outcome.SIM_ERROR] == protocol.outcomes[Outcome.HARNESS_ERROR] == "missing"
    assert (protocol.training.episodes_per_task, protocol.training.tasks) == (50, 50)
    assert protocol.read_on == "2026-09-17"


def test_outcomes_of_each_word_for_errors() -> None:
    found = {}
    for name in known_protocols():
        protocol = load_protocol(name)
        assert (protocol.outcomes[Outcome.SUCCESS], protocol.outcomes[Outcome.FAILURE]) == ("success", "failure")
        assert protocol.outcomes[Outcome.HARNESS_ERROR] == "missing"
        found[protocol.rules.errors] = (protocol.outcomes[Outcome.POLICY_ERROR], protocol.outcomes[Outcome.SIM_ERROR])
    assert found == {
        "policy_failure_sim_missing": ("failure", "missing"),
        "failure": ("failure", "failure"),
        "stops_task": ("missing", "missing"),
        "stops_run": ("missing", "missing"),
        "dropped": ("dropped", "dropped"),
    }


def test_embodiment_is_that_of_the_configurations() -> None:
    protocol = load_protocol("leaderboard")
    for config in protocol.configs.values():
        assert load_config(config).settings["embodiment"] == [protocol.embodiment]


def test_unknown_protocol() -> None:
    with pytest.raises(UnknownNameError, match="unknown protocol 'leaderbord': did you mean leaderboard"):
        load_protocol("leaderbord")


def test_every_sheet_can_be_repeated() -> None:
    assert known_protocols() == known_sheets()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda values: values.pop("success"), "key success is missing"),
        (lambda values: values.update(sucess=1), "unknown key in .*'sucess': did you mean success"),
        (lambda values: values.update(success="last_instant"), "unknown success in .*'last_instant'"),
        (lambda values: values.update(step_limits="half of it"), "unknown step_limits in .*'half of it'"),
        (
            lambda values: values.update(accepted_seeds="expert_list"),
            "accepted_seeds is 'expert_list', which evalkit can't carry out; it knows expert_in_order or unfiltered",
        ),
        (
            lambda values: values.update(errors="unknown"),
            r"errors is 'unknown'.* say in scoring\.instead\.errors what to do",
        ),
        (lambda values: values.update(denominator="completed_trials"), "denominator is 'completed_trials'"),
        (lambda values: values.update(denominator="trials_without_error"), "where errors are dropped, and only there"),
        (lambda values: values.update(errors="failure"), r"scoring\.outcomes\.sim_error is 'missing'"),
        (lambda values: values["scoring"].update(instead={"sucess": 1}), r"unknown key in .*scoring\.instead\.sucess"),
        (lambda values: values["scoring"].update(without_tasks=["click_bel"]), "must be a list of RoboTwin's tasks"),
        (lambda values: values.update(tasks=51), "tasks is 51; it must be a whole number from 1 to 50"),
        (lambda values: values.update(first_seed="1 + s"), r"first_seed is '1 \+ s', which evalkit can't carry out"),
        (
            lambda values: values.update(instruction_split="unseen"),
            "the configurations say otherwise",
        ),
        (lambda values: values.pop("scoring"), "key scoring is missing"),
        (lambda values: values["scoring"].pop("labels"), r"key scoring\.labels is missing"),
        (lambda values: values["scoring"]["outcomes"].pop("sim_error"), r"key scoring\.outcomes\.sim_error is missing"),
        (lambda values: values["scoring"]["outcomes"].update(failure="zero"), "unknown meaning of outcome failure"),
        (lambda values: values["scoring"]["labels"].pop("c2r"), "it must name demo_clean and demo_randomized in order"),
        (lambda values: values.update(training="unknown"), "training is 'unknown'; evalkit scores under one"),
        (lambda values: values.update(training="demo_clean_50x50+demo_randomized_500x50"), "scores under one config"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, change: Callable[[dict[str, Any]], Any], what: str) -> None:
    values = yaml.safe_load((bundled("task_configs") / "protocols/leaderboard.yaml").read_text())
    change(values)
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(values))
    with pytest.raises(UserError, match=what):
        read_protocol(path)


def test_modes() -> None:
    assert configs_of("all") == MODES["c2c"] + MODES["c2r"] == ("demo_clean", "demo_randomized")
    with pytest.raises(UnknownNameError, match="unknown mode 'c2d'"):
        configs_of("c2d")
