"""What CUDA itself sees, asked through the driver's library: no torch, no context, no memory on a GPU.

``python -m evalkit.pool.cuda`` prints it as JSON: a list of (UUID, PCI bus id) in CUDA's order.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import uuid
from collections.abc import Mapping

from evalkit.core.errors import UserError
from evalkit.core.gpu import VISIBLE, short_bus_id

LIMIT_S = 60.0
Seen = tuple[str, str]
"""UUID with ``nvidia-smi``'s prefix, PCI bus id."""


def seen_by_cuda() -> tuple[Seen, ...] | None:
    """The GPUs CUDA shows to this process, in its order; None without its library. Fixed at anyone's first call."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    count = ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return ()
    # The second version tells slices of MIG apart; drivers before CUDA 11.4 have the first only.
    ask = getattr(cuda, "cuDeviceGetUuid_v2", None) or cuda.cuDeviceGetUuid
    found = []
    for number in range(count.value):
        device, text, raw = ctypes.c_int(), ctypes.create_string_buffer(32), (ctypes.c_ubyte * 16)()
        if cuda.cuDeviceGet(ctypes.byref(device), number) or ask(ctypes.byref(raw), device):
            continue
        cuda.cuDeviceGetPCIBusId(text, 32, device)
        found.append((f"GPU-{uuid.UUID(bytes=bytes(raw))}", short_bus_id(text.value.decode())))
    return tuple(found)


def asked_elsewhere(environ: Mapping[str, str]) -> tuple[Seen, ...]:
    """All GPUs in CUDA's order, as a process of its own sees them that may use every one.

    Args:
        environ: the environment, of which ``CUDA_VISIBLE_DEVICES`` is left out.

    Raises:
        UserError: no answer.
    """
    without = {name: value for name, value in environ.items() if name != VISIBLE}
    remedy = f"name the GPUs in {VISIBLE} by UUID (nvidia-smi -L shows them), or set CUDA_DEVICE_ORDER=PCI_BUS_ID"
    try:
        answer = subprocess.run(
            [sys.executable, "-m", __name__],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            env=without,
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"CUDA gave no answer within {LIMIT_S:g} s, so a number means nothing: {remedy}") from None
    try:
        return tuple((str(name), str(bus_id)) for name, bus_id in json.loads(answer.stdout) or ())
    except ValueError:
        last = (answer.stderr.strip().splitlines() or ["no message"])[-1]
        raise UserError(f"CUDA's order of the GPUs can't be read ({last}): {remedy}") from None


if __name__ == "__main__":
    print(json.dumps(seen_by_cuda()))
