import subprocess
import sys

import pytest
from gpu_tables import TABLE, UUIDS, gpus

from evalkit.core.errors import HarnessError, UserError
from evalkit.core.gpu import bound_bus_id, short_bus_id
from evalkit.pool import cuda, devices
from evalkit.pool.bound import check_bound
from evalkit.pool.devices import TABLE_FILE, parse_slices, parse_table, read_devices, visible, with_slices

SPLIT = TABLE.replace("143000, Disabled", "143000, Enabled", 1)
LIST = f"""GPU 0: NVIDIA H200 (UUID: {UUIDS["a"]})
  MIG 3g.71gb     Device  0: (UUID: MIG-11111111-0000-1111-2222-333333333333)
  MIG 1g.18gb     Device  1: (UUID: MIG-22222222-0000-1111-2222-333333333333)
GPU 1: NVIDIA H200 (UUID: {UUIDS["b"]})
"""
IN_BUS_ORDER = tuple(device.bus_id for device in gpus())
PERMUTED = (IN_BUS_ORDER[2], IN_BUS_ORDER[0], IN_BUS_ORDER[3], IN_BUS_ORDER[1])


def letters(found):
    return "".join(device.uuid[4] for device in found)


def test_the_table_says_which_gpus_there_are():
    first, *_, last = (device for device, _ in parse_table(TABLE))
    assert (first.index, first.uuid, first.bus_id) == (0, UUIDS["a"], "0000:1b:00")
    assert (last.index, last.bus_id, last.name) == (3, "0000:db:00", "NVIDIA H200")
    assert first.memory_total_bytes == 143771 << 20
    assert first.environment == {"CUDA_VISIBLE_DEVICES": UUIDS["a"], "EVALKIT_GPU_BUS_ID": "0000:1b:00"}


def test_memory_that_the_driver_does_not_tell_is_unknown():
    [(device, _)] = parse_table("0, GPU-1, 0000:01:00.0, NVIDIA GB10, [N/A], [N/A], [N/A]")
    assert (device.memory_total_bytes, device.memory_free_bytes) == (0, 0)


def test_a_row_that_cannot_be_read_is_named():
    with pytest.raises(UserError, match="row 'Unable to determine the device handle'"):
        parse_table("Unable to determine the device handle")


@pytest.mark.parametrize("text", ["00000000:3B:00.0", "0000:3b:00.0", "0000:3b:00", "3b:00.0"])
def test_a_bus_id_has_one_spelling(text):
    assert short_bus_id(text) == "0000:3b:00"


def test_a_split_gpu_is_replaced_by_its_slices_which_have_no_vulkan():
    found = with_slices(parse_table(SPLIT), parse_slices(LIST))
    assert [device.uuid[:12] for device in found] == [
        "MIG-11111111",
        "MIG-22222222",
        "GPU-bbbbbbbb",
        "GPU-cccccccc",
        "GPU-dddddddd",
    ]
    assert [device.can_render for device in found] == [False, False, True, True, True]
    assert found[1].memory_total_bytes == 18 << 30
    assert found[0].environment["EVALKIT_GPU_BUS_ID"] == ""
    assert bound_bus_id(found[0].environment) is None


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (None, "abcd"),
        ("", ""),
        ("-1", ""),
        ("NoDevFiles", ""),
        ("0", "a"),
        ("2,0", "ca"),
        ("1,-1,3", "b"),
        (UUIDS["c"], "c"),
        (f"{UUIDS['d']},{UUIDS['a']}", "da"),
        ("GPU-cccc", "c"),
        ("GPU-CCCC", "c"),
    ],
)
def test_what_cuda_visible_devices_leaves(setting, expected):
    assert letters(visible(gpus(), setting, lambda: IN_BUS_ORDER)) == expected


def test_a_number_counts_in_cudas_order():
    assert letters(visible(gpus(), "0,1", lambda: PERMUTED)) == "ca"
    assert letters(visible(gpus(), "3", lambda: PERMUTED)) == "b"


def test_a_slice_is_named_by_its_uuid():
    found = with_slices(parse_table(SPLIT), parse_slices(LIST))
    [only] = visible(found, "MIG-22222222-0000-1111-2222-333333333333", lambda: IN_BUS_ORDER)
    assert only.is_slice


def test_cudas_order_is_asked_only_where_a_number_needs_it():
    def never():
        raise AssertionError("asked")

    assert letters(visible(gpus(), UUIDS["b"], never)) == "b"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("4", "there is no GPU 4 here"),
        ("GPU-9", "there is no GPU GPU-9 here"),
        ("GPU-", "there is no GPU GPU- here"),
        ("0,0", "twice"),
        ("0,GPU-aaaa", "twice"),
        ("first", "there is no GPU first here"),
    ],
)
def test_a_setting_that_names_nothing_is_an_error(setting, message):
    with pytest.raises(UserError, match=message):
        visible(gpus(), setting, lambda: IN_BUS_ORDER)


def test_a_file_can_take_the_drivers_place(tmp_path):
    table = tmp_path / "gpus.csv"
    table.write_text(TABLE)
    assert letters(read_devices({TABLE_FILE: str(table)})) == "abcd"
    assert letters(read_devices({TABLE_FILE: str(table), "CUDA_VISIBLE_DEVICES": "3,1"})) == "db"
    with pytest.raises(UserError, match=r"names .*nowhere.csv, which can't be read"):
        read_devices({TABLE_FILE: str(tmp_path / "nowhere.csv")})


def program(folder, text):
    path = folder / "nvidia-smi"
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)


def test_nvidia_smi_is_asked_and_cuda_for_its_order(tmp_path, monkeypatch):
    program(tmp_path, f"import sys\nprint({LIST!r} if '-L' in sys.argv else {TABLE!r})")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert letters(read_devices({})) == "abcd"
    monkeypatch.setattr(devices, "asked_elsewhere", lambda environ: [("GPU", bus_id) for bus_id in PERMUTED])
    assert letters(read_devices({"CUDA_VISIBLE_DEVICES": "0"})) == "c"
    assert letters(read_devices({"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})) == "a"


def test_a_driver_that_hangs_is_left_at_a_deadline(tmp_path, monkeypatch):
    program(tmp_path, "import time\ntime.sleep(60)")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(devices, "LIMIT_S", 0.3)
    with pytest.raises(UserError, match=r"nvidia-smi gave no answer within 0.3 s.*--gpus 0"):
        read_devices({})


def test_without_a_driver_there_is_no_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_devices({}) == ()


def test_cuda_is_asked_in_a_process_of_its_own(monkeypatch):
    """Here without a driver: it sees nothing, and says so."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    answer = subprocess.run([sys.executable, "-m", "evalkit.pool.cuda"], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "null" or answer.stdout.startswith("[")
    assert list(cuda.asked_elsewhere({"CUDA_VISIBLE_DEVICES": "7"})) == list(cuda.seen_by_cuda() or ())


def test_an_answer_of_cuda_that_is_none_names_the_remedy(monkeypatch):
    broken = subprocess.CompletedProcess([], 1, stdout="", stderr="ImportError: no module")
    monkeypatch.setattr(cuda.subprocess, "run", lambda *arguments, **options: broken)
    with pytest.raises(UserError, match=r"ImportError.*by UUID"):
        cuda.asked_elsewhere({})


def test_a_server_must_see_its_device_and_no_other():
    device = gpus("b")[0]
    check_bound(device, ((UUIDS["b"].upper().replace("GPU-", "GPU-"), device.bus_id),))
    with pytest.raises(HarnessError, match=r"bound to GPU 1 .* CUDA shows it GPU-aaaaaaaa"):
        check_bound(device, ((UUIDS["a"], "0000:1b:00"),))
    with pytest.raises(HarnessError, match="CUDA shows it no GPU"):
        check_bound(device, ())
    with pytest.raises(HarnessError, match=r"GPU-bbbbbbbb.*, GPU-aaaaaaaa"):
        check_bound(device, ((UUIDS["b"], device.bus_id), (UUIDS["a"], "0000:1b:00")))


def test_a_slice_is_recognised_without_its_prefix():
    device = with_slices(parse_table(SPLIT), parse_slices(LIST))[0]
    check_bound(device, (("GPU-11111111-0000-1111-2222-333333333333", device.bus_id),))
