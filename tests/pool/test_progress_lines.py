import io

import pytest
from pool_kit import Queue50, fake, open_run, seeds_of, trials
from rich.console import Console

from evalkit.cli.main import run_cli
from evalkit.cli.progress import RunProgress
from evalkit.core.record import ErrorInfo
from evalkit.pool import ray_crew
from evalkit.pool.inline import InlineCrew
from evalkit.sim.fake import FakeWorld, Fault
from evalkit.store.run import open_run as stored_run


def test_a_file_gets_plain_lines_with_counts_and_reasons(tmp_path):
    text = io.StringIO()
    world = FakeWorld(faults=(Fault(kind="exception", seed=100001, step=0),))
    crew = InlineCrew(2, fake(world), Queue50)
    with RunProgress(2, Console(file=text, width=60)) as progress:
        seeds = seeds_of(crew, tmp_path, 4, observer=progress)
        assert progress.line().startswith("seeds 4/4 accepted, 0 lists open")
        run = open_run(tmp_path / "r", seeds, 4)
        progress.begin_trials(run)
        assert progress.line() == "trials 0/4, 0 of 2 workers busy"
        trials(crew, run, progress)
        line = progress.line()
    assert line.startswith("trials 4/4, demo_clean 3/4 succeeded, sim_error 1, ")
    assert "trials/h" in line
    said = text.getvalue().splitlines()
    assert said[0] == "seeds 0/4 accepted, 1 lists open, 2 of 2 workers busy"
    assert sum("attempt" in one for one in said) == 3
    assert "click_bell demo_clean seed 100001: sim_error: task_code: AttributeError" in text.getvalue()


def test_a_resumed_run_counts_what_is_there(tmp_path):
    crew = InlineCrew(1, fake(FakeWorld()), Queue50)
    run = open_run(tmp_path / "r", seeds_of(crew, tmp_path, 4), 4)
    trials(crew, run, remaining=run.remaining()[:3])
    progress = RunProgress(1, Console(file=io.StringIO()))
    progress.begin_trials(run)
    assert progress.line().startswith("trials 3/4, demo_clean 3/3 succeeded, 0 of 1")


@pytest.mark.parametrize(
    ("command", "runs"),
    [("--policy noop", 1), ("--policy noop,replay", 2), ("--until-decided noop replay", 2)],
    ids=["run", "sweep", "decision"],
)
def test_what_happened_to_devices_is_said_again_at_the_end(inline, tmp_path, monkeypatch, capfd, command, runs):
    make = ray_crew.RayCrew
    notice = ErrorInfo(kind="gpu_out_of_use", message="GPU 1 is out of use")

    def make_noisy(*arguments, on_notice, **options):
        crew = make(*arguments, **options)
        crew.notices.append(notice)
        on_notice(notice.message)
        return crew

    monkeypatch.setattr(ray_crew, "RayCrew", make_noisy)
    settings = [
        "--backend",
        "fake",
        "--mode",
        "c2c",
        "--tasks",
        "click_bell",
        "--trials",
        "2",
        "--workers",
        "1",
        "--out",
        "out",
    ]
    run_cli(["run", *command.split(), *settings, "--out", "out"])
    said = capfd.readouterr().err.splitlines()
    assert said.count("evalkit: GPU 1 is out of use") == 1
    assert said.count("in this session: GPU 1 is out of use") == 1
    assert said.index("in this session: GPU 1 is out of use") > said.index("evalkit: GPU 1 is out of use")
    folders = [path.parent for path in (tmp_path / "out").rglob("run.json")]
    assert len(folders) == runs
    assert all(run.incidents()[-1]["error"]["kind"] == "gpu_out_of_use" for run in map(stored_run, folders))
