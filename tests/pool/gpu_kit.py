"""Policies and simulators that know on which (made-up) GPU they are. Importable by Ray's workers."""

import os
import signal
import time
from pathlib import Path

from pool_kit import Queue50, sleep_for_ever

from evalkit.sim.fake import FakeSimulator


def here():
    """Letter of the GPU that this process is bound to."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "GPU--")[4]


class OutOfMemoryError(RuntimeError):
    """As torch's is called."""


class OnGpu(Queue50):
    """Notes where it is loaded and what it decides; dies or runs out of memory on some GPUs.

    Args:
        notes: folder.
        dies_on: letters of GPUs on which it kills its process, ``times`` times each at most.
        full_on: letters of GPUs on which it has no memory for more than ``most`` observations, 0: not even for weights.
    """

    def __init__(self, notes, *, dies_on="", times=10**6, full_on="", most=1, misses=True):
        super().__init__(misses=misses)
        self._notes, self._dies_on, self._times = Path(notes), dies_on, times
        self._full_on, self._most = full_on, most
        self._note("load")
        if here() in full_on and most < 0:
            raise OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")

    def act(self, observation):
        return self.act_batch([observation])[0]

    def act_batch(self, observations):
        if here() in self._full_on and len(observations) > self._most:
            self._note("full")
            raise OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")
        if here() in self._dies_on and len(list(self._notes.glob(f"death-{here()}-*"))) < self._times:
            self._note("death")
            os.kill(os.getpid(), signal.SIGKILL)
            sleep_for_ever()
        self._note("act")
        time.sleep(0.002)  # long enough for the others to wait, and be a batch
        return [super(OnGpu, self).act(observation) for observation in observations]

    def _note(self, what):
        (self._notes / f"{what}-{here()}-{os.getpid()}-{time.monotonic_ns()}").touch()


class RendersOnGpu(FakeSimulator):
    """Says which GPU it renders on; on some it hangs when asked, on some it says another's.

    Args:
        notes: folder.
        hangs_on: letters.
        elsewhere_on: letters.
    """

    def __init__(self, notes, hangs_on="", elsewhere_on=""):
        super().__init__()
        self._notes, self._hangs_on, self._elsewhere_on = Path(notes), hangs_on, elsewhere_on

    @property
    def render_bus_id(self):
        if here() in self._hangs_on:
            sleep_for_ever()
        return "0000:ff:00" if here() in self._elsewhere_on else os.environ["EVALKIT_GPU_BUS_ID"]

    def reset(self, scene):
        (self._notes / f"scene-{here()}-{os.getpid()}-{time.monotonic_ns()}").touch()
        return super().reset(scene)


def count(notes, what):
    """GPU -> how many notes of a kind there are."""
    found = [path.name.split("-")[1] for path in Path(notes).glob(f"{what}-*")]
    return {letter: found.count(letter) for letter in sorted(set(found))}
