"""A policy behind an XPolicyLab server: the websocket transport, or the legacy TCP one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evalkit.core.errors import UserError
from evalkit.policy.contract import ActionChunk, EpisodeInfo, Observation, PolicySpec
from evalkit.policy.converted import Episodes
from evalkit.policy.profile import read_robot
from evalkit.policy.settings import PolicySettings, number
from evalkit.policy.wire.connection import CALL_S, CONNECT_S
from evalkit.policy.wire.tcp import TcpLink
from evalkit.policy.wire.xpolicylab import WebsocketLink, XPolicyLabLink
from evalkit.policy.wire.xpolicylab_messages import observation_message, read_actions

NEEDS_CHECKPOINT = False
_REQUIRED = ("url", "serves", "robot")
_OPTIONAL = ("connect_s", "call_s", "state_dtype")


class XPolicyLabPolicy:
    """Sends what RoboTwin's own client sends: one observation per chunk, over TCP also those between two chunks.

    Args:
        spec: what the policy needs and gives.
        link: the way to the server.
        state_dtype: of the robot's state on the wire.
    """

    def __init__(self, spec: PolicySpec, link: XPolicyLabLink, state_dtype: str) -> None:
        self.spec = spec
        self._link, self._state_dtype = link, state_dtype
        self._episodes = Episodes(spec)

    def reset(self, info: EpisodeInfo) -> None:
        """Reset the server's model: it keeps one episode's state."""
        self._episodes.start(info)
        self._link.reset(info)

    def act(self, observation: Observation) -> ActionChunk:
        """Ask for a chunk. Returns as many actions as the server gives, at most ``chunk_steps``."""
        episode = self._episodes.current(observation)
        between = [row for row in observation.history if row.step > episode.sent]
        *earlier, present = [observation_message(row, self._state_dtype) for row in (*between, observation)]
        answer = self._link.infer(present, earlier)
        episode.sent = observation.step
        return read_actions(answer, self.spec.action_type, observation)[: self.spec.chunk_steps]

    def end(self, session: str, success: bool | None) -> None:
        """``trial_end``: the server's ``on_trial_end``."""
        if self._episodes.end(session):
            self._link.end(success)

    def close(self) -> None:
        """End the connection."""
        self._link.close()


def load(checkpoint: Path | None, *, device: str, settings: PolicySettings | None = None) -> XPolicyLabPolicy:
    """The policy; connects to its server.

    Raises:
        UserError: no policy file, or something wrong with it.
        PolicyLostError: no server there.
    """
    if settings is None or checkpoint is not None:
        raise UserError("policy xpolicylab runs elsewhere: describe its server in a policy file, give that to --policy")
    declared, dtype = spec(settings), str(settings.options.get("state_dtype", "float32"))
    connect_s, call_s = number(settings.options, "connect_s", CONNECT_S), number(settings.options, "call_s", CALL_S)
    url = urlsplit(str(settings.options["url"]))
    link: XPolicyLabLink
    if url.scheme == "tcp":
        if url.hostname is None or url.port is None:
            raise UserError(f"server address {settings.options['url']!r}: give tcp://HOST:PORT")
        link = TcpLink(url.hostname, url.port, connect_s=connect_s, call_s=call_s)
    else:
        link = WebsocketLink(settings.options["url"], declared.action_type, connect_s=connect_s, call_s=call_s)
    link.open()
    return XPolicyLabPolicy(declared, link, dtype)


def spec(settings: PolicySettings) -> PolicySpec:
    """The policy's declaration, from the section ``robot`` of its policy file."""
    settings.check(_REQUIRED, _OPTIONAL)
    if settings.options.get("state_dtype", "float32") not in ("float32", "float64"):
        raise UserError(f"state_dtype is {settings.options['state_dtype']!r}: use float32 (RoboTwin's) or float64")
    robot = {"needs_instruction": True, "stateful": True, "one_at_a_time": True, **settings.options["robot"]}
    where, tcp = f"policy {settings.name}", str(settings.options["url"]).startswith("tcp:")
    if tcp and "history_steps" not in robot:
        what = "over tcp RoboTwin's own client sends every observation: say history_steps under robot"
        raise UserError(f"{where}: {what}, as many as execute_steps, or 1 if its model looks at the present one alone")
    declared = read_robot(robot, settings.name, where)
    if declared.history_steps > 1 and not tcp:
        what = "the websocket carries one observation a decision"
        raise UserError(f"{where}: history_steps is {declared.history_steps}, but {what}: leave it out, or use tcp:")
    if declared.history_steps > 1 and not declared.one_at_a_time:
        raise UserError(f"{where}: a server with a history keeps one episode's: leave one_at_a_time out, or say true")
    return declared


def identity(settings: PolicySettings) -> Mapping[str, Any]:
    """What decides the actions. ``serves`` stands for the weights, which this end can't see."""
    spec(settings)
    tcp = str(settings.options["url"]).startswith("tcp:")
    dtype = settings.options.get("state_dtype", "float32")
    return {"serves": settings.options["serves"], "robot": settings.options["robot"], "tcp": tcp, "state_dtype": dtype}
