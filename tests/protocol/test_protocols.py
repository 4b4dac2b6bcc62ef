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


def test_the_leaderboard() -> None:
    protocol = load_protocol("leaderboard")
    assert (protocol.tasks, protocol.trials_per_task, protocol.first_seed) == (len(TASKS), 100, 100_000)
    assert protocol.configs == {"c2c": "demo_clean", "c2r": "demo_randomized"}
    assert protocol.outcomes[Outcome.POLICY_ERROR] == "failure"
    assert protocol.outcomes[Outcome.SIM_ERROR] == protocol.outcomes[Outcome.HARNESS_ERROR] == "missing"
    assert (protocol.training.episodes_per_task, protocol.training.tasks) == (50, 50)
    assert protocol.read_on == "2026-09-17"


def test_outcomes_agree_with_what_is_scored() -> None:
    for name in known_protocols():
        for outcome, counts_as in load_protocol(name).outcomes.items():
            assert outcome.is_scored == (counts_as != "missing")


def test_embodiment_is_that_of_the_configurations() -> None:
    protocol = load_protocol("leaderboard")
    for config in protocol.configs.values():
        assert load_config(config).settings["embodiment"] == [protocol.embodiment]


def test_unknown_protocol() -> None:
    with pytest.raises(UnknownNameError, match="unknown protocol 'leaderbord': did you mean leaderboard"):
        load_protocol("leaderbord")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda values: values.pop("success"), "key success is missing"),
        (lambda values: values.update(sucess=1), "unknown key in .*'sucess': did you mean success"),
        (lambda values: values.update(success="last_instant"), "'any_instant' is the only rule"),
        (lambda values: values.update(score="micro"), "'macro_mean' is the only rule"),
        (lambda values: values.update(tasks=51), "tasks is 51; it must be a whole number from 1 to 50"),
        (lambda values: values["outcomes"].pop("sim_error"), r"key outcomes\.sim_error is missing"),
        (lambda values: values["outcomes"].update(failure="zero"), "unknown meaning of outcome failure"),
        (lambda values: values["configs"].update(c2c="demo_clen"), "unknown task configuration in .*'demo_clen'"),
        (lambda values: values.update(training=[]), "training must be a mapping"),
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
