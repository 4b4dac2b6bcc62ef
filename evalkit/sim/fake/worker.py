"""The process behind ``FakeProcessSimulator``: reads calls from stdin, writes answers to stdout, ends with its pipe."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from evalkit.core.errors import EvalkitError
from evalkit.sim.fake.process import read_frame, write_frame
from evalkit.sim.fake.simulator import FakeSimulator

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve until the pipe closes. A hang would not notice that, so the kernel kills it with its parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    simulator = FakeSimulator(read_frame(requests))
    if simulator.world.no_start:
        raise RuntimeError(simulator.world.no_start)
    while True:
        try:
            name, arguments, options = read_frame(requests)
        except EOFError:
            return
        if name == "pid":  # asked once, to see that the process is there
            write_frame(answers, (True, os.getpid()))
            continue
        try:
            answer = True, getattr(simulator, name)(*arguments, **options)
        except EvalkitError as error:
            answer = False, error
        write_frame(answers, answer)


if __name__ == "__main__":
    main()
