"""Checkpoints as trainers write them: what is found, what is loaded, and what is refused with a reason."""

import importlib
import json
import pickle
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from policy_folders import load, settings_of
from safetensors.torch import save_file
from weight_kit import tensors

from evalkit.core.errors import UserError
from evalkit.policy.conformance import example_episode, example_observations, violations
from evalkit.policy.isolated import WORKER
from evalkit.policy.registry import load_form
from evalkit.policy.weight_files import find_weights

MODEL = '''
import torch

class Net(torch.nn.Module):
    """Actions are the state plus a weight, in thirty equal steps."""
    def __init__(self, width=14):
        super().__init__()
        self.head = torch.nn.Linear(width, width)
        self.extra = torch.nn.Linear(width, 2)

    def forward(self, state, task):
        return self.head(state.to(self.head.bias.dtype))[:, None].expand(-1, 4, -1)
'''
PROFILE = {
    "robot": {
        "actions": "qpos", "cameras": {}, "chunk_steps": 4, "execute_steps": 2, "needs_instruction": False,
        "stateful": False,
    },
    "request": {"state": {"vector": "qpos", "as": []}, "task": {"instruction": "text"}},
    "answer": {"key": "actions", "as": [{"gripper": {"closed": 0, "open": 1, "clip": True}}]},
}  # fmt: skip


def bias_of(tmp_path, path, *, part=None, **rules):
    """Load the weights into the network, as its process does; the bias of the head."""
    found = find_weights(path)
    network: dict = {}
    exec(MODEL, network)
    module = network["Net"]()
    with worker_modules() as (problems, weights):
        try:
            state, _ = weights.read_state({"kind": found.kind, "files": [str(file) for file in found.files]}, part)
            weights.load_into(module, state, **rules)
        except problems.PolicyProblemError as error:
            raise UserError(str(error)) from error
    return float(module.head.bias.detach()[0])


@contextmanager
def worker_modules():
    sys.path.insert(0, str(WORKER.parent))
    try:
        yield importlib.import_module("problems"), importlib.import_module("weights")
    finally:
        sys.path.pop(0)


def bias_in_its_process(tmp_path, path, **rules):
    """The same through a policy file: the bias shows in the actions."""
    (tmp_path / "code").mkdir(exist_ok=True)
    (tmp_path / "code" / "net.py").write_text(MODEL)
    settings = settings_of(
        tmp_path, adapter="torch_module", code="code", factory="net:Net", profile=PROFILE,
        weights={"path": str(path), **rules},
    )  # fmt: skip
    policy = load(settings)
    try:
        policy.reset(example_episode(policy.spec, session="s", seed=1))
        chunk = policy.act(example_observations(policy.spec, session="s", seed=1, count=1)[0])
        return float(chunk[0, 0])
    finally:
        policy.close()


def shards(folder: Path, suffix: str, write) -> None:
    state, names = tensors(3.0), ("model-00001-of-00002", "model-00002-of-00002")
    parts = [dict(list(state.items())[:2]), dict(list(state.items())[2:])]
    for name, part in zip(names, parts, strict=True):
        write(part, folder / f"{name}{suffix}")
    weight_map = {key: f"{name}{suffix}" for name, part in zip(names, parts, strict=True) for key in part}
    (folder / f"model{suffix}.index.json").write_text(json.dumps({"weight_map": weight_map}))


def test_one_safetensors_file_or_its_folder(tmp_path):
    save_file(tensors(2.0), tmp_path / "model.safetensors")
    assert bias_of(tmp_path, tmp_path / "model.safetensors") == 2.0
    assert bias_in_its_process(tmp_path, tmp_path / "model.safetensors") == 2.0
    assert bias_of(tmp_path, tmp_path) == 2.0


@pytest.mark.parametrize("suffix", [".safetensors", ".bin"])
def test_shards_with_an_index(tmp_path, suffix):
    shards(tmp_path, suffix, save_file if suffix == ".safetensors" else torch.save)
    assert bias_of(tmp_path, tmp_path) == 3.0


@pytest.mark.parametrize("suffix", [".safetensors", ".bin"])
def test_a_missing_shard_is_named_and_a_stray_file_never_merged(tmp_path, suffix):
    write = save_file if suffix == ".safetensors" else torch.save
    shards(tmp_path, suffix, write)
    write(tensors(9.0), tmp_path / f"model{suffix}")
    found = find_weights(tmp_path)
    assert [path.name for path in found.files] == [f"model-0000{n}-of-00002{suffix}" for n in (1, 2)]
    assert found.notes == (f"model{suffix} isn't in model{suffix}.index.json and was passed over",)
    (tmp_path / f"model-00002-of-00002{suffix}").unlink()
    with pytest.raises(UserError, match=f"lacks 1 of 2 shards .* names: model-00002-of-00002{suffix}"):
        find_weights(tmp_path)


def test_a_distributed_checkpoint(tmp_path):
    import torch.distributed.checkpoint as dcp

    folder = tmp_path / "dcp"
    with pytest.warns(UserWarning, match="single process"):
        dcp.save({"model": tensors(4.0)}, checkpoint_id=folder)
    assert find_weights(folder).kind == "dcp"
    assert bias_of(tmp_path, folder) == 4.0
    shard = folder / "__0_0.distcp"
    shard.rename(folder / "__1_0.distcp")
    with pytest.raises(UserError, match=r"dcp can't be put together \(a shard missing or cut short\?\): .*__0_0"):
        bias_of(tmp_path, folder)


def test_an_accelerate_folder_holds_more_than_weights(tmp_path):
    save_file(tensors(5.0), tmp_path / "model.safetensors")
    for name in ("optimizer.bin", "scheduler.bin", "random_states_0.pkl", "sampler.bin"):
        (tmp_path / name).write_bytes(b"x")
    assert find_weights(tmp_path).files == (tmp_path / "model.safetensors",)
    assert bias_of(tmp_path, tmp_path) == 5.0


def test_a_deepspeed_folder_is_told_how_to_convert(tmp_path):
    (tmp_path / "mp_rank_00_model_states.pt").write_bytes(b"x")
    with pytest.raises(UserError, match=r"DeepSpeed checkpoint.*zero_to_fp32\.py"):
        find_weights(tmp_path)


def test_ema_is_chosen_by_name_and_never_replaced_by_something_else(tmp_path):
    both, raw = tmp_path / "both.pt", tmp_path / "raw.pt"
    torch.save({"model": tensors(1.0), "ema": tensors(2.0), "step": 7}, both)
    torch.save({"model": tensors(1.0), "step": 7}, raw)
    assert bias_of(tmp_path, both, part="ema") == 2.0
    assert bias_of(tmp_path, both, part="model") == 1.0
    assert bias_of(tmp_path, raw) == 1.0
    with pytest.raises(UserError, match=r"raw\.pt has no part 'ema'; it has model"):
        bias_of(tmp_path, raw, part="ema")
    with pytest.raises(UserError, match=r"has parts ema, model: say which with weights\.part"):
        bias_of(tmp_path, both)


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "_orig_mod.module.", "module._orig_mod.", "model."])
def test_wrappers_prefixes_go_where_that_makes_names_fit(tmp_path, prefix):
    save_file(tensors(6.0, prefix), tmp_path / "model.safetensors")
    assert bias_of(tmp_path, tmp_path) == 6.0


def test_prefixes_stay_where_the_network_has_them():
    with worker_modules() as (_, weights):
        match_names = weights.match_names
    assert match_names(["module.a", "b"], ["module.a", "b"]) == {"module.a": "module.a", "b": "b"}
    assert match_names(["module.model.a"], ["model.a"]) == {"module.model.a": "model.a"}
    assert match_names(["zz"], ["a"]) == {"zz": "zz"}
    with pytest.raises(Exception, match=r"a and module\.a both become a"):
        match_names(["a", "module.a"], ["a", "b"])


def test_missing_and_unexpected_tensors_are_counted_and_may_be_allowed_by_name(tmp_path):
    state = tensors(1.5)
    del state["extra.weight"], state["extra.bias"]
    state["old.weight"] = torch.zeros(3)
    save_file(state, tmp_path / "model.safetensors")
    with pytest.raises(
        UserError, match=r"misses 2 of 4 tensors \(extra\.bias, extra\.weight\).*weights\.allow_missing"
    ):
        bias_of(tmp_path, tmp_path)
    with pytest.raises(UserError, match=r"has unexpected 1 of 3 tensors \(old\.weight\)"):
        bias_of(tmp_path, tmp_path, allow_missing=["extra.*"])
    assert bias_of(tmp_path, tmp_path, allow_missing=["extra.*"], allow_unexpected=["old.weight"]) == 1.5


@pytest.mark.parametrize(
    ("name", "tensor", "message"),
    [
        ("head.bias", torch.zeros(32), r"head\.bias has shape \(32,\) in the checkpoint, \(14,\) in the network"),
        ("head.bias", torch.zeros(0), r"head\.bias is empty: a shard"),
        ("head.bias", torch.full((14,), torch.nan), r"head\.bias has numbers that aren't finite"),
    ],
)
def test_tensors_that_dont_fit_are_refused(tmp_path, name, tensor, message):
    save_file({**tensors(), name: tensor}, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match=message):
        bias_of(tmp_path, tmp_path)


def test_a_cut_or_overlong_safetensors_file_is_named_with_both_sizes(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file(tensors(), path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-4])
    with pytest.raises(UserError, match=rf"is truncated: expected {len(whole)} bytes, found {len(whole) - 4}"):
        find_weights(path)
    path.write_bytes(whole + b"xx")
    with pytest.raises(UserError, match="is longer than its header says"):
        find_weights(path)
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(UserError, match="is a Git LFS pointer"):
        find_weights(path)
    path.write_bytes(b"")
    with pytest.raises(UserError, match="is empty"):
        find_weights(path)


class WritesAFile:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_a_pickle_that_would_run_code_is_never_opened_that_far(tmp_path):
    proof, path = tmp_path / "proof", tmp_path / "evil.pt"
    torch.save({"model": tensors(), "x": WritesAFile(proof)}, path)
    with pytest.raises(UserError, match=r"evil\.pt holds more than tensors and was not opened further .*open"):
        bias_of(tmp_path, path)
    assert not proof.exists()
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(WritesAFile(proof), protocol=2))
    with pytest.raises(UserError, match=r"plain\.pt"):
        bias_of(tmp_path, tmp_path / "plain.pt")
    assert not proof.exists()


def test_a_numpy_number_beside_the_tensors_is_read_or_named(tmp_path):
    path = tmp_path / "old.pt"
    torch.save({"model": tensors(0.25), "loss": np.float64(0.5)}, path)
    try:
        assert bias_of(tmp_path, path, part="model") == 0.25
    except UserError as error:
        assert "scalar" in str(error)  # noqa: PT017 - which of both depends on torch's version


def test_a_cut_pickle_is_named(tmp_path):
    path = tmp_path / "cut.pt"
    torch.save(tensors(), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UserError, match=r"cut\.pt can't be read \(cut short\?\)"):
        bias_of(tmp_path, path)


def test_a_torch_module_keeps_the_contract_and_its_identity_follows_its_weights(tmp_path):
    save_file(tensors(0.25), tmp_path / "model.safetensors")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "net.py").write_text(MODEL)
    values = {"adapter": "torch_module", "code": "code", "factory": "net:Net", "profile": PROFILE,
              "weights": {"path": "model.safetensors"}}  # fmt: skip
    settings = settings_of(tmp_path, **values)
    policy = load(settings)
    assert violations(policy) == []
    policy.close()
    form = load_form("torch_module")
    before = yaml.safe_dump(form.identity(settings))
    assert yaml.safe_dump(form.identity(settings)) == before
    allowed = settings_of(tmp_path, **{**values, "weights": {"path": "model.safetensors", "allow_missing": ["a"]}})
    assert form.identity(allowed)["weights"]["allow_missing"] == ["a"]
    save_file(tensors(0.5), tmp_path / "model.safetensors")
    assert yaml.safe_dump(form.identity(settings)) != before


COMPILES = """
import torch

def compile(model, **options):
    def called(*arguments, **inputs):
        return model(*arguments, **inputs) + 100 * (options == {"dynamic": False, "mode": "%s"})
    return called

torch.compile = compile  # the real one needs a compiler, and minutes
"""


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_a_compiled_model_is_called_and_is_another_policy(tmp_path, mode):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "net.py").write_text(MODEL + COMPILES % mode)
    values = {"adapter": "torch_module", "code": "code", "factory": "net:Net", "profile": PROFILE}
    plain, compiled = settings_of(tmp_path, **values), settings_of(tmp_path, **values, compile=mode)
    form = load_form("torch_module")
    assert form.identity(compiled) == form.identity(plain) | {"compile": mode}
    actions = []
    for settings in (plain, compiled):
        policy = load(settings)
        policy.reset(example_episode(policy.spec, session="s", seed=1))
        actions.append(policy.act(example_observations(policy.spec, session="s", seed=1)[0]))
        policy.close()
    joints = [column for column in range(14) if column not in (6, 13)]
    np.testing.assert_allclose((actions[1] - actions[0])[:, joints], 100, rtol=1e-6)


def test_bf16_weights_give_float64_actions(tmp_path):
    save_file(tensors(0.5), tmp_path / "model.safetensors")
    assert bias_in_its_process(tmp_path, tmp_path, dtype="bfloat16") == 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"factory": "net:Nett"}, "net has no 'Nett': give package.module:name"),
        ({"factory": "nett:Net"}, "No module named 'nett'"),
        ({"arguments": {"widht": 3}}, "unexpected keyword argument 'widht'"),
        ({"method": "predict"}, "gives Net, which has no method predict"),
        ({"pass_as": "list"}, "pass_as is 'list'"),
        ({"compile": "max-autotune"}, "compile is 'max-autotune': use default or reduce-overhead"),
        ({"code": "nowhere"}, "code folder .*nowhere doesn't exist"),
        ({"weights": {"file": "x"}}, "it takes path, part"),
        ({"weights": {"path": "model.safetensors", "dtype": "int8"}}, r"weights\.dtype is 'int8'"),
    ],
)
def test_a_wrong_policy_file_is_bad_input(tmp_path, change, message):
    save_file(tensors(), tmp_path / "model.safetensors")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "net.py").write_text(MODEL)
    values = {"adapter": "torch_module", "code": "code", "factory": "net:Net", "profile": PROFILE}
    with pytest.raises(UserError, match=message):
        load(settings_of(tmp_path, **{**values, **change}))
