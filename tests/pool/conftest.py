import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
from pool_kit import fake
from variant_kit import repeat_in

from evalkit.cli.stopping import StopRequest
from evalkit.pool import ray_crew, ray_session
from evalkit.pool.inline import InlineCrew
from evalkit.protocol import protocols
from evalkit.sim.fake.world import SEVENTHS


@pytest.fixture(scope="session")
def ray_here():
    """One Ray for all tests of the session; its workers can import what lies beside this file."""
    from evalkit.pool.ray_session import ray_session

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        with ray_session(6):
            yield


@pytest.fixture
def crew(ray_here):
    """Makes crews and closes them."""
    from evalkit.pool.ray_crew import RayCrew

    made = []

    def make(*arguments, **options):
        made.append(RayCrew(*arguments, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def inline(monkeypatch, tmp_path):
    """Puts the pool into this process, in an empty folder; returns what can be set about it, and what happened.

    ``broken``: adapters that can't be loaded. ``policies``: how many of each crew's there were.
    """
    settings = {"newest_first": False, "world": SEVENTHS, "made": 0, "broken": set(), "policies": []}

    def broken():
        raise RuntimeError("out of memory")

    def make_crew(workers, make_simulator, make_policy=None, *, failed=None, **placement):
        settings["made"] += 1
        settings["policies"].append(len(make_policy))
        makers = {
            digest: broken if getattr(maker, "adapter", "") in settings["broken"] else maker
            for digest, maker in make_policy.items()
        }
        newest_first = settings["newest_first"]
        return InlineCrew(workers, fake(settings["world"]), makers, newest_first=newest_first, failed=failed)

    monkeypatch.setattr(ray_crew, "RayCrew", make_crew)
    monkeypatch.setattr(ray_session, "ray_session", lambda *arguments, **options: contextlib.nullcontext())
    monkeypatch.setattr(StopRequest, "install", lambda self: None)
    monkeypatch.chdir(tmp_path)
    return settings


@pytest.fixture
def repeat(tmp_path):
    """Runs a policy under a protocol."""
    return repeat_in(tmp_path)


@pytest.fixture
def with_rules(monkeypatch):
    """Gives robotwin-2026-08 other rules."""

    def change(**changes):
        protocol = protocols.load_protocol("robotwin-2026-08")
        changed = replace(protocol, rules=replace(protocol.rules, **changes))
        load = protocols.load_protocol
        for module in (
            "evalkit.cli.run_setup",
            "evalkit.aggregate.summary",
            "evalkit.aggregate.terms",
            "evalkit.pool.error_rule",
        ):
            monkeypatch.setattr(
                f"{module}.load_protocol", lambda name: changed if name == "robotwin-2026-08" else load(name)
            )

    return change
