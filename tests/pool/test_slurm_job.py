"""The batch file of ``evalkit slurm``, run for real: Slurm's programs are stand-ins, both nodes are this machine."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from evalkit.cli.main import run_cli
from evalkit.cli.slurm import SlurmJob, batch_file
from evalkit.core.errors import UserError

PROGRAMS = {
    # a job step: drops its options and becomes the program
    "srun": 'while [[ $1 == --* ]]; do shift; done\nexec "$@"',
    "scontrol": 'if [[ $1 == show ]]; then tr , "\\n" <<<"$3"; else echo "$*" >>"$SLURM_LOG"; fi',
    "squeue": "echo RUNNING",
}
RUN = ("--backend", "fake", "--policy", "replay", "--mode", "c2c", "--tasks", "click_bell", "--trials", "60", "--json")


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A Slurm of one user: starts a batch file as job 4711 on two nodes."""
    programs = tmp_path / "slurm"
    programs.mkdir()
    for name, text in PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/bash\n{text}\n")
        (programs / name).chmod(0o755)
    faults = tmp_path / "slow.yaml"
    faults.write_text("step_s: 0.02\n")
    started = []

    def start(file, restarts=0):
        environment = os.environ | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "EVALKIT_FAULTS": str(faults),
            "SLURM_LOG": str(tmp_path / "requeued"),
            "SLURM_JOB_ID": str(os.getpid()),
            "SLURM_JOB_NODELIST": "localhost,127.0.0.1",
            "SLURM_CPUS_PER_TASK": "2",
            "SLURM_RESTART_COUNT": str(restarts),
        }
        with (tmp_path / "job.log").open("ab") as log:
            started.append(subprocess.Popen(["bash", str(file)], cwd=tmp_path, env=environment, stdout=log, stderr=log))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
            process.kill()
            process.wait()


def finished_trials(folder):
    return sum(path.read_bytes().count(b"\n") for path in Path(folder, "results/runs").glob("*/trials.jsonl"))


def test_a_job_stops_before_its_time_queues_again_and_finishes(slurm, tmp_path):
    file = tmp_path / "eval.sbatch"
    assert run_cli(["slurm", "--nodes", "2", "--cpus", "2", "--out", str(file), "--", *RUN]) == 0
    log = tmp_path / "job.log"

    job = slurm(file)
    until = time.monotonic() + 90
    while finished_trials(tmp_path) < 3:
        assert job.poll() is None, log.read_text()
        assert time.monotonic() < until
        time.sleep(0.05)
    below = psutil.Process(job.pid).children(recursive=True)
    job.send_signal(signal.SIGUSR1)
    assert job.wait(timeout=60) == 75, log.read_text()
    assert (tmp_path / "requeued").read_text() == f"requeue {os.getpid()}\n"
    assert 3 <= finished_trials(tmp_path) < 60
    assert log.read_text().count("(2 CPUs)") == 2, "both nodes are in use"
    psutil.wait_procs(below, timeout=15)
    assert [process.name() for process in below if process.is_running()] == []
    assert not Path(f"/tmp/evalkit-{os.getpid()}").exists()

    again = slurm(file, restarts=1)
    assert again.wait(timeout=120) == 0, log.read_text()
    [summary] = Path(tmp_path, "results/runs").glob("*/summary.json")
    assert json.loads(summary.read_text())["configs"][0]["successes"] == 60
    assert finished_trials(tmp_path) == 60
    assert (tmp_path / "requeued").read_text().count("requeue") == 1
    assert not Path(f"/tmp/evalkit-{os.getpid()}").exists()


@pytest.mark.parametrize(
    "evalkit",
    ["trap 'exit 75' USR1; touch up; while :; do sleep 0.05; done", "touch up; exec sleep 60"],
    ids=["in good order", "before it listens"],
)
def test_a_job_that_is_told_at_once_queues_again(slurm, tmp_path, evalkit):
    """Ray and evalkit are stand-ins, too: the second one listens to USR1, or dies of it as Python does at first."""
    for name, text in {"ray": "exec sleep 60", "evalkit": evalkit}.items():
        program = tmp_path / "slurm" / name
        program.write_text(f"#!/bin/bash\n{text}\n")
        program.chmod(0o755)
    file = tmp_path / "eval.sbatch"
    file.write_text(batch_file(SlurmJob(arguments=RUN, nodes=2, bin_folder=None)))
    job = slurm(file)
    until = time.monotonic() + 30
    while not (tmp_path / "up").exists():
        assert time.monotonic() < until, (tmp_path / "job.log").read_text()
        time.sleep(0.02)
    job.send_signal(signal.SIGUSR1)
    assert job.wait(timeout=30) == 75, (tmp_path / "job.log").read_text()
    assert (tmp_path / "requeued").read_text() == f"requeue {os.getpid()}\n"


@pytest.mark.parametrize(
    "job",
    [
        SlurmJob(arguments=RUN),
        SlurmJob(
            arguments=["--ckpt", "a folder/it's here", "--mode", "all"],
            nodes=3,
            gpus=2,
            partition="gpu",
            account="robots",
            sbatch=["--mem=64G"],
            setup=["module load cuda", "conda activate evalkit"],
            within="apptainer exec --nv evalkit.sif",
            bin_folder=None,
        ),
    ],
    ids=["plain", "everything"],
)
def test_the_batch_file_is_clean(job, tmp_path):
    file = tmp_path / "eval.sbatch"
    file.write_text(batch_file(job))
    shellcheck = Path(sys.executable).with_name("shellcheck")
    assert subprocess.run([shellcheck, file], capture_output=True, text=True).stdout == ""
    lines = file.read_text().splitlines()
    directives = [line for line in lines if line.startswith("#SBATCH")]
    assert f"#SBATCH --nodes={job.nodes}" in directives
    assert "#SBATCH --signal=B:USR1@120" in directives
    assert max(lines.index(line) for line in directives) < next(
        number for number, line in enumerate(lines) if line and not line.startswith("#")
    ), "Slurm reads no options after the first command"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"arguments": ["--ckpt", "x", "--ray-address=auto"]}, "--ray-address is the batch file's own"),
        ({"arguments": ["run", "--ckpt", "x"]}, "run is none"),
        ({"time": "8 hours"}, "--time 8 hours"),
        ({"sbatch": ["mem=64G"]}, "--sbatch mem=64G"),
        ({"partition": "gpu; rm"}, "has a blank"),
    ],
)
def test_options_that_cannot_be_right(change, what):
    with pytest.raises(UserError, match=what):
        batch_file(SlurmJob(**{"arguments": RUN} | change))
