"""A node of a cluster is lost in the middle of a run: several Ray nodes on this machine, one of them killed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from evalkit.core.errors import HarnessError
from evalkit.drill.ground import Ground, Notes, essence, json_lines, work
from evalkit.drill.local_cluster import clean_environment, local_cluster
from evalkit.drill.processes import all_left, marked_session
from evalkit.drill.row import Case, Played
from evalkit.pool.inline import InlineCrew
from evalkit.pool.scheduler import NODE_LOST
from evalkit.sim.fake.factory import FAULTS_VARIABLE
from evalkit.sim.fake.simulator import FakeSimulator
from evalkit.sim.fake.world import SEVENTHS
from evalkit.store.run import INCIDENTS_FILE, TRIALS_FILE, Run, open_run

BEFORE = 8
"""Trials before the node is lost."""
LIMIT_S = 180.0


def node_case() -> Case:
    """The case of the drill."""
    return Case(kind="node", fault="a node of the cluster, with the policy server: lost", play=node_loss)


@dataclass(frozen=True)
class ClusterCommand:
    """``evalkit run`` on a cluster, in a folder of its own, slowed down so that there is time to do something to it."""

    folder: Path
    trials: int = 20
    tasks: str = "click_bell,place_shoe"

    @property
    def run(self) -> Path:
        """The run's folder."""
        return self.folder / "run"

    def start(self, address: str, *options: str) -> subprocess.Popen[bytes]:
        """Start it; its output goes to ``output.txt``."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "slow.yaml").write_text(json.dumps({"step_s": 0.02}))
        environment = {**clean_environment(), FAULTS_VARIABLE: str(self.folder / "slow.yaml")}
        line = [sys.executable, "-m", "evalkit.cli.main", "run", "--backend", "fake", "--policy", "replay"]
        line += ["--mode", "c2c", "--tasks", self.tasks, "--trials", str(self.trials), "--out", "run"]
        line += ["--ray-address", address, *options]
        with (self.folder / "output.txt").open("ab") as output:
            return subprocess.Popen(line, cwd=self.folder, env=environment, stdout=output, stderr=output)

    def recorded(self) -> int:
        """Trials recorded so far."""
        log = self.run / TRIALS_FILE
        return log.read_bytes().count(b"\n") if log.exists() else 0

    def wait_for(self, process: subprocess.Popen[bytes], trials: int) -> None:
        """Wait until so many trials are recorded.

        Raises:
            HarnessError: the command ended before, or takes too long.
        """
        until = time.monotonic() + LIMIT_S
        while self.recorded() < trials:
            if process.poll() is not None or time.monotonic() > until:
                process.kill()
                raise HarnessError(f"{self.recorded()} trials, exit code {process.wait()}: {self.output()[-500:]}")
            time.sleep(0.02)

    def output(self) -> str:
        """What it said."""
        return (self.folder / "output.txt").read_text(errors="replace")


def node_loss(ground: Ground, mark: str) -> Played:
    """Lose the node with the policy server in the middle of a run on three nodes."""
    command = ClusterCommand(ground.folder / "command-node")
    with marked_session() as cluster_mark:
        with local_cluster(0, 2, 2) as cluster:
            process = command.start(cluster.address, "--ray-nodes", "3")
            command.wait_for(process, BEFORE)
            node = cluster.node_of("PolicyServer")
            if node is None:
                raise HarnessError("the policy server is on no node")
            before = command.recorded()
            cluster.lose(node)
            code = process.wait(timeout=LIMIT_S)
        left = all_left(cluster_mark)
    problems = [f"exit code {code}: {command.output()[-300:]}"] if code != 0 else []
    run = open_run(command.run)
    undisturbed = replayed_in_process(run, command.folder / "undisturbed")
    if essence(run) != essence(undisturbed):
        problems.append("the trials aren't those of an undisturbed run")
    kinds = [incident["error"]["kind"] for incident in json_lines(command.run / INCIDENTS_FILE)]
    if not kinds:
        problems.append("no trial met the loss")
    again = len({incident["key"] for incident in json_lines(command.run / INCIDENTS_FILE)})
    happened = f"after {before} trials; {kinds.count(NODE_LOST)} were on it, {again} ran again on the other node"
    return Played(run=run, happened=happened, problems=tuple(problems), left=left, undisturbed=undisturbed)


def replayed_in_process(run: Run, folder: Path) -> Run:
    """The same plan from beginning to end in this process."""
    from evalkit.policy.registry import load_adapter

    again = Run.create(folder, run.info, run.plan)
    crew = InlineCrew(1, lambda name: FakeSimulator(SEVENTHS), lambda: load_adapter("replay").load(None, device="cpu"))
    work(crew, again, Notes())
    return again
