"""Several GPUs without one: a table takes the driver's place, processes are bound to its rows as to real ones."""

import pytest
from gpu_kit import OnGpu, RendersOnGpu, count
from gpu_tables import TABLE, gpus
from pool_kit import Make, essence, open_run, seeds_of, trials

from evalkit.core.errors import UserError
from evalkit.core.outcome import Outcome
from evalkit.pool import health, sim_actors
from evalkit.pool.devices import TABLE_FILE
from evalkit.pool.inline import InlineCrew
from evalkit.pool.placement import Node, place
from evalkit.pool.ray_crew import CrewLostError

TRIALS = 12


@pytest.fixture
def notes(tmp_path, monkeypatch):
    """A folder for what happened, and two GPUs."""
    table = tmp_path / "gpus.csv"
    table.write_text(TABLE)
    monkeypatch.setenv(TABLE_FILE, str(table))
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """What one process does: the seeds and the outcomes."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "notes").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVALKIT_GPU_BUS_ID", "")
        simulators = Make(RendersOnGpu, (folder / "notes",))
        seeds = seeds_of(InlineCrew(1, simulators), folder / "seeds", TRIALS)
        run = open_run(folder / "run", seeds, TRIALS)
        trials(InlineCrew(1, simulators, Make(OnGpu, (folder / "notes",))), run)
    return seeds, essence(run)


@pytest.fixture
def gpu_crew(crew, notes):
    """Makes a crew on two GPUs."""

    def make(workers, policy=None, simulators=None, letters="ab", copies=None, servers_per_gpu=1, **options):
        plan = place([Node(devices=gpus(letters))], workers, copies=copies, servers_per_gpu=servers_per_gpu)
        return crew(
            len(plan.workers),
            Make(RendersOnGpu, (notes,), simulators or {}),
            Make(OnGpu, (notes,), policy or {}),
            placement=plan,
            **options,
        )

    return make


@pytest.fixture
def new_run(tmp_path, reference):
    return lambda name="run": open_run(tmp_path / name, reference[0], TRIALS)


@pytest.mark.parametrize(("letters", "workers"), [("a", 1), ("a", 2), ("ab", 4)])
def test_outcomes_do_not_depend_on_gpus_and_workers(gpu_crew, notes, new_run, reference, letters, workers):
    run = new_run()
    team = gpu_crew(workers, {"full_on": "ab", "most": 2}, letters=letters, max_batch=2)
    assert trials(team, run).complete
    assert essence(run) == reference[1]
    assert {record.outcome for record in run.records().values()} == {Outcome.SUCCESS, Outcome.FAILURE}
    assert count(notes, "load") == dict.fromkeys(letters, 1)
    assert count(notes, "scene").keys() == set(letters)
    assert count(notes, "act").keys() == set(letters)
    assert max(team.batch_sizes) <= 2
    assert run.incidents() == []
    assert team.notices == []


def test_a_server_that_dies_is_renewed_alone(gpu_crew, notes, new_run, reference):
    run = new_run()
    team = gpu_crew(4, {"dies_on": "b", "times": 1})
    trials(team, run)
    assert essence(run) == reference[1]
    assert count(notes, "load") == {"a": 1, "b": 2}
    assert {incident["error"]["kind"] for incident in run.incidents()} == {"policy_server_died"}
    assert team.notices == []


def test_a_gpu_whose_server_dies_again_and_again_is_taken_out_of_use(gpu_crew, notes, new_run, reference, monkeypatch):
    monkeypatch.setattr(health, "TOLERATED", 1)
    run = new_run()
    team = gpu_crew(4, {"dies_on": "b"})
    trials(team, run)
    assert essence(run) == reference[1]
    assert count(notes, "death") == {"b": 2}
    [notice] = team.notices
    assert notice.kind == "gpu_out_of_use"
    assert notice.message.startswith("GPU 1 (NVIDIA H200, GPU-bbbbbbbb")
    assert "2 workers moved to the others: its policy server failed again and again" in notice.message
    assert any(notice.message in incident["error"]["message"] for incident in run.incidents())
    assert {worker.device.uuid[4] for worker in team.placement.workers} == {"a"}


def test_the_last_gpu_ends_the_run_and_it_can_go_on_later(gpu_crew, notes, new_run, reference, monkeypatch):
    monkeypatch.setattr(health, "TOLERATED", 0)
    run = new_run()
    team = gpu_crew(2, {"dies_on": "a", "times": 1}, letters="a")
    session = trials(team, run)
    assert not session.complete
    assert not session.interrupted
    assert session.stop_reason.startswith("no GPU is left: GPU 0 (NVIDIA H200, GPU-aaaaaaaa")
    assert (
        "its policy server failed again and again, at last so: the server of policy queue died" in session.stop_reason
    )
    assert all(record.outcome.is_scored for record in run.records().values())
    trials(gpu_crew(1, {}, letters="a"), run)
    assert essence(run) == reference[1]


def test_a_gpu_that_cannot_be_rendered_on_is_not_used(gpu_crew, notes, new_run, reference, monkeypatch):
    monkeypatch.setattr(sim_actors, "PROBE_GRACE_S", 1.0)
    run = new_run()
    limit_s = 15.0  # a loaded machine takes seconds to start an actor
    team = gpu_crew(3, simulators={"hangs_on": "b", "elsewhere_on": "c"}, letters="abc", probe_limit_s=limit_s)
    said = sorted(notice.message for notice in team.notices)
    assert [message[:5] for message in said] == ["GPU 1", "GPU 2"]
    assert "its render probe gave no answer within 16 s" in said[0]
    assert "worker-2 renders on the GPU at PCI 0000:ff:00 and was bound to 0000:9a:00" in said[1]
    trials(team, run)
    assert essence(run) == reference[1]
    assert count(notes, "scene").keys() == {"a"}


def test_when_no_gpu_renders_where_it_should_the_run_does_not_start(gpu_crew):
    with pytest.raises(CrewLostError, match=r"no GPU can be rendered on: .*PCI 0000:ff:00"):
        gpu_crew(1, simulators={"elsewhere_on": "a"}, letters="a")


def test_a_batch_for_which_memory_is_not_enough_is_made_smaller_from_then_on(gpu_crew, notes, new_run, reference):
    run = new_run()
    team = gpu_crew(4, {"full_on": "a", "most": 1}, letters="a")
    trials(team, run)
    team.close()
    assert essence(run) == reference[1]
    assert count(notes, "full")["a"] <= 2
    assert count(notes, "load") == {"a": 1}
    assert {incident["error"]["kind"] for incident in run.incidents()} == {"policy_out_of_memory"}
    [notice] = team.notices
    assert "--max-batch 1" in notice.message


def test_a_gpu_without_memory_for_one_observation_is_renewed_then_taken_out(
    gpu_crew, notes, new_run, reference, monkeypatch
):
    monkeypatch.setattr(health, "TOLERATED", 1)
    run = new_run()
    team = gpu_crew(2, {"full_on": "b", "most": 0})
    trials(team, run)
    assert essence(run) == reference[1]
    assert "GPU 1" in team.notices[0].message
    assert "ran out of memory with 1 observation" in team.notices[0].message
    assert count(notes, "load") == {"a": 1, "b": 2}


def test_a_gpu_into_which_the_policy_does_not_fit_is_not_used(gpu_crew, notes, new_run, reference):
    run = new_run()
    team = gpu_crew(2, {"full_on": "b", "most": -1})
    assert "the policy doesn't fit into the memory of GPU 1" in team.notices[0].message
    trials(team, run)
    assert essence(run) == reference[1]
    assert count(notes, "act").keys() == {"a"}


def test_a_policy_that_fits_nowhere_is_bad_input(gpu_crew):
    with pytest.raises(UserError, match=r"can't be loaded.*doesn't fit into the memory of GPU"):
        gpu_crew(1, {"full_on": "a", "most": -1}, letters="a")


def test_copies_of_a_policy_that_cannot_tell_episodes_apart(gpu_crew, notes, new_run, reference, monkeypatch):
    monkeypatch.setattr(health, "TOLERATED", 0)
    run = new_run()
    team = gpu_crew(8, {"dies_on": "b"}, copies=2)
    trials(team, run)
    assert essence(run) == reference[1]
    assert team.size == 2
    assert [server.device.uuid[4] for server in team.placement.servers] == ["a", "a"]
    assert len({worker.server for worker in team.placement.workers}) == 2
