"""``evalkit policy``, ``evalkit serve`` and ``evalkit run --policy FILE`` as a person meets them."""

import json
import re
import signal
import subprocess
import sys

import pytest
import yaml
from policy_folders import CHUNK_POLICY, write_folder

from evalkit.cli import main as command_line
from evalkit.cli.policy_choice import choose_policy
from evalkit.core.errors import UserError
from evalkit.policy.checkpoint import spec_to_json
from evalkit.policy.registry import adapter_names


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_folder(tmp_path, CHUNK_POLICY)
    values = {"adapter": "robotwin_legacy", "policy_folder": "policy/Chunky", "weights": []}
    (tmp_path / "chunky.yaml").write_text(yaml.safe_dump(values))
    return tmp_path


def evalkit(*arguments, capsys):
    code = command_line.run_cli(list(arguments))
    return code, capsys.readouterr()


def test_list_names_every_adapter_and_what_it_takes(here, capsys):
    code, output = evalkit("policy", "list", "--json", capsys=capsys)
    values = json.loads(output.out)
    assert code == 0
    assert set(values["adapters"]) == set(adapter_names())
    assert values["adapters"]["openpi"]["takes"] == "a policy file"
    assert values["adapters"]["house"]["takes"] == "a checkpoint"
    assert {"tau0_wm", "lingbot_va", "x_wam"} <= set(values["profiles"])


def test_check_says_ready_or_what_is_off(here, capsys):
    code, output = evalkit("policy", "check", "noop", "--json", capsys=capsys)
    assert (code, json.loads(output.out)["ready"]) == (0, True)
    code, output = evalkit("policy", "check", "chunky.yaml", capsys=capsys)
    assert (code, output.out.splitlines()[-1].startswith("not ready: ")) == (1, True)  # it goes far away at once
    near = CHUNK_POLICY.replace("np.full(14, 0.25)", "np.array(state)").replace("state[0] + index + 1", "state[0]")
    (here / "policy" / "Chunky" / "deploy_policy.py").write_text(near.replace("= noise", "= state[1]"))
    assert evalkit("policy", "check", "chunky.yaml", capsys=capsys)[0] == 0
    (here / "policy" / "Chunky" / "deploy_policy.py").write_text(CHUNK_POLICY.replace("0.25", "25"))
    code, output = evalkit("policy", "check", "chunky.yaml", capsys=capsys)
    assert code == 1
    assert re.search(r"OFF contract: .*commanded gripper 25", " ".join(output.out.split()))
    assert output.out.endswith("not ready: contract\n")


def test_check_refuses_what_cant_be_loaded(here, capsys):
    (here / "policy" / "Chunky" / "deploy_policy.py").write_text("def get_model(a):\n    return a\n")
    code, output = evalkit("policy", "check", "chunky.yaml", capsys=capsys)
    assert code == 2
    assert "defines no eval" in output.err
    assert evalkit("policy", "check", "nowhere.yaml", capsys=capsys)[1].err.startswith(
        "evalkit: policy file nowhere.yaml"
    )
    assert "takes no policy file" not in evalkit("policy", "check", "replay", capsys=capsys)[1].err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("adapter: noop", "policy noop takes no policy file: name it with --policy noop"),
        ("adapter: opnpi", "unknown policy 'opnpi': did you mean openpi"),
        ("[1, 2]", "isn't a policy file: it needs 'adapter:'"),
        ("adapter: [", "isn't YAML"),
        ("adapter: openpi\ncard: card.json", r"card card\.json doesn't exist"),
    ],
)
def test_policy_files_that_are_none(here, text, message):
    (here / "p.yaml").write_text(text)
    with pytest.raises(UserError, match=message):
        choose_policy("p.yaml", None)


def test_an_interpreter_is_named_in_one_place(here):
    with pytest.raises(UserError, match="in a policy file, say python: PATH"):
        choose_policy("chunky.yaml", None, sys.executable)


def test_the_same_policy_in_another_interpreter_is_the_same_policy(here):
    here_choice = choose_policy("noop", None)
    there = choose_policy("noop", None, sys.executable)
    assert (there.digest, there.spec) == (here_choice.digest, here_choice.spec)
    policy = there.maker()
    assert policy.spec == here_choice.spec
    policy.close()


def test_policies_from_before_the_field_existed_keep_their_digest():
    spec = choose_policy("noop", None).spec
    assert "one_at_a_time" not in spec_to_json(spec)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--policy", "noop", "--protocol", "grpc"), "unknown protocol 'grpc'"),
        (("--policy", "replay"), "is privileged"),
        ((), "nothing to run"),
        (("--policy", "openpi"), "describe its server in a policy file"),
    ],
)
def test_serve_refuses_what_makes_no_sense(here, capsys, arguments, message):
    code, output = evalkit("serve", *arguments, capsys=capsys)
    assert code == 2
    assert message in output.err


def test_serve_says_where_it_listens_and_ends_on_request(here):
    server = subprocess.Popen(
        [sys.executable, "-m", "evalkit.cli.main", "serve", "--policy", "noop", "--protocol", "openpi", "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert server.stdout is not None
    line = server.stdout.readline()
    assert re.search(r"policy noop \([0-9a-f]{12}\) serves openpi at ws://127\.0\.0\.1:\d+", line)
    server.send_signal(signal.SIGINT)
    _, errors = server.communicate(timeout=30)
    assert (server.returncode, errors.strip()) == (0, "stopped")


@pytest.mark.timeout(300)
def test_a_run_of_a_policy_file(here, capsys):
    source = CHUNK_POLICY.replace("action[0] = state[0] + index + 1", "action[0] = state[0]").replace(
        "action[1] = noise", "action[1] = 0.0"
    )
    (here / "policy" / "Chunky" / "deploy_policy.py").write_text(source)
    answer = subprocess.run(
        [sys.executable, "-m", "evalkit.cli.main", "run", "--policy", "chunky.yaml", "--backend", "fake",
         "--mode", "c2c", "--tasks", "click_bell", "--trials", "1", "--workers", "2", "--out", "out"],
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    record = json.loads((here / "out" / "trials.jsonl").read_text().splitlines()[0])
    assert record["outcome"] in ("success", "failure")
    assert record["steps"] == record["policy_calls"] > 10  # it looks after every action
    info = json.loads((here / "out" / "run.json").read_text())
    assert info["policy"]["adapter"] == "chunky"


def test_files_that_change_after_the_run_was_set_up_are_noticed_where_they_are_loaded(here):
    choice = choose_policy("chunky.yaml", None)
    choice.maker().close()
    with (here / "policy" / "Chunky" / "deploy_policy.py").open("a") as stream:
        stream.write("# another version\n")
    with pytest.raises(UserError, match="the files of policy chunky changed since the run was set up"):
        choice.maker()
