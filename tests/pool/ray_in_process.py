"""As much of Ray as the crew uses, in this process: calls happen at once, nothing dies by itself."""

import asyncio
import inspect
from types import SimpleNamespace

from ray import exceptions

from evalkit.pool import policy_server, policy_servers, ray_crew, sim_actors

PLACES = (policy_server, policy_servers, ray_crew, sim_actors)


class Reference:
    def __init__(self, value, error=None):
        self.value, self.error = value, error


class Handle:
    """An actor. After ``kill`` every call fails as Ray's do."""

    def __init__(self, kind, arguments):
        self._actor, self.is_dead = kind(*arguments), False

    def __getattr__(self, name):
        return SimpleNamespace(remote=lambda *arguments: self._call(name, arguments))

    def hang_up(self):
        """What the end of a process does by itself."""
        if hasattr(self._actor, "close"):
            self._actor.close()

    def _call(self, name, arguments):
        if self.is_dead:
            return Reference(None, exceptions.ActorDiedError())
        result = getattr(self._actor, name)(*arguments)
        return Reference(asyncio.run(result) if inspect.iscoroutine(result) else result)


class RayInProcess:
    exceptions = exceptions

    def remote(self, **options):
        return lambda kind: SimpleNamespace(remote=lambda *arguments: Handle(kind, arguments))

    def get(self, reference, timeout=None):
        if reference.error is not None:
            raise reference.error
        return reference.value

    def wait(self, references, num_returns=1, timeout=None):
        return references[:num_returns], references[num_returns:]

    def kill(self, handle):
        handle.is_dead = True
        handle.hang_up()


def put_in_place(monkeypatch):
    """Let crews made from now on use it."""
    for module in PLACES:
        monkeypatch.setattr(module, "ray", RayInProcess())
