"""The worker's loop: read a request, do it, answer. Started by ``evalkit.sim.robotwin.host``."""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from typing import Any, Dict, List, Mapping, Tuple

import gpu
import numpy as np
import stopwatch
import wire
import world as robotwin_world

Reply = Tuple[Dict[str, Any], Dict[str, np.ndarray]]


class Worker:
    """Requests by name; each method takes the request's header and arrays."""

    def __init__(self) -> None:
        self.world: Any = None
        self.shared: Any = None

    def hello(self, request: Mapping[str, Any], arrays: wire.Arrays) -> Reply:
        """Import RoboTwin and say what there is."""
        if request["shared_path"]:
            self.shared = wire.SharedBuffer(request["shared_path"], request["shared_bytes"], create=False)
        self.world = robotwin_world.World(request["settings"])
        device = self.world.render_device
        name = _render_device() if device.is_cpu() else device.name
        return {"versions": _versions(), "render_device": name, "render_bus_id": gpu.bus_of(device)}, {}

    def reset(self, request: Mapping[str, Any], arrays: wire.Arrays) -> Reply:
        """Build a scene."""
        return self.world.reset(request["scene"]), {}

    def observe(self, request: Mapping[str, Any], arrays: wire.Arrays) -> Reply:
        """State and pictures."""
        images, render_s = self.world.pictures(request["cameras"])
        named = {"image:" + name: image for name, image in images.items()}
        return {"render_s": render_s}, {"state": self.world.state(), "endpose": self.world.endpose(), **named}

    def apply(self, request: Mapping[str, Any], arrays: wire.Arrays) -> Reply:
        """Execute actions."""
        return self.world.apply(arrays["actions"], request["action_type"]), {}

    def expert(self, request: Mapping[str, Any], arrays: wire.Arrays) -> Reply:
        """Run the expert."""
        reply: Reply = self.world.expert(request["record_every"], request["cameras"], request["jpeg_quality"])
        return reply

    def instructions(self, request: Mapping[str, Any], arrays: wire.Arrays) -> Reply:
        """Instruction sentences."""
        wanted = ("task", "info", "split", "seed", "limit")
        sentences: List[str] = self.world.source.sentences(*(request[name] for name in wanted))
        return {"sentences": sentences}, {}

    def state_digest(self, request: Mapping[str, Any], arrays: wire.Arrays) -> Reply:
        """Digest of the scene's state."""
        return {"state_digest": self.world.state_digest()}, {}

    def poses(self, request: Mapping[str, Any], arrays: wire.Arrays) -> Reply:
        """Joint positions and poses as numbers."""
        return {"poses": self.world.poses()}, {}

    def profile(self, request: Mapping[str, Any], arrays: wire.Arrays) -> Reply:
        """Seconds by phase since this was last asked for; asked for the first time, begin with the next scene."""
        if self.world.stopwatch is None:
            watch = self.world.stopwatch = stopwatch.Stopwatch()
            phases = {"reset": stopwatch.SETUP, "expert": "expert", "observe": stopwatch.OBSERVATION}
            for name, phase in phases.items():
                setattr(self, name, watch.wrap(phase, getattr(self, name), whole=True))
        seconds = dict(self.world.stopwatch.seconds)
        self.world.stopwatch.seconds.clear()
        return {"seconds": seconds}, {}


def main() -> None:
    """Answer requests until the pipe closes."""
    requests, replies = _claim_pipes()
    _die_with_parent()
    worker = Worker()
    while True:
        try:
            request, arrays = wire.receive(requests, worker.shared)
        except wire.ClosedError:
            os._exit(0)  # SAPIEN's teardown can crash; nothing is left to save
        try:
            header, answer = getattr(worker, request["op"])(request, arrays)
            header = {"ok": True, **header}
        except robotwin_world.UnstableError as error:
            header, answer = {"ok": False, "kind": "unstable", "message": str(error), "traceback": ""}, {}
        except (Exception, SystemExit) as error:
            message = "{}: {}".format(type(error).__name__, error).splitlines()[0]
            header = {"ok": False, "kind": "task_code", "message": message, "traceback": traceback.format_exc()[-4000:]}
            answer = {}
        try:
            wire.send(replies, header, answer, worker.shared)
        except wire.ClosedError:
            os._exit(0)


def _claim_pipes() -> Tuple[int, int]:
    """Keep the pipes for messages; what RoboTwin prints goes to the log, and nothing can be read from stdin."""
    requests, replies = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    sys.stdout = sys.stderr
    return requests, replies


def _die_with_parent() -> None:
    """End when evalkit does, even in the middle of a long request."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def _versions() -> Dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": sys.version.split()[0]}
    names = (
        "sapien",
        "numpy",
        "scipy",
        "mplib",
        "toppra",
        "rlinf-robotwin-runtime",
        "torch",
        "nvidia_curobo",
        "warp-lang",
    )
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _render_device() -> str:
    import sapien.render

    for line in sapien.render.get_device_summary().splitlines():
        if line.strip().startswith("GPU:"):
            name: str = line.split(":", 1)[1].strip()
            return name
    return "none"


if __name__ == "__main__":
    main()
