"""XPolicyLab's transports, from the client's end: websocket frames, and the legacy TCP form."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from evalkit.core.errors import PolicyError
from evalkit.core.trial import ActionType
from evalkit.policy.contract import EpisodeInfo
from evalkit.policy.wire.connection import CALL_S, CONNECT_S, Connection
from evalkit.policy.wire.packing import pack, unpack
from evalkit.policy.wire.xpolicylab_messages import ACTION_NAMES


class XPolicyLabLink(Protocol):
    """One of XPolicyLab's two transports."""

    def open(self) -> None:
        """Connect, if there is no connection."""
        ...

    def reset(self, info: EpisodeInfo) -> None:
        """Start an episode."""
        ...

    def infer(self, observation: Mapping[str, Any], between: Sequence[Mapping[str, Any]] = ()) -> Any:
        """One observation, one answer with actions.

        Args:
            observation: the present one.
            between: those since the last decision, oldest first, for a transport that carries them.
        """
        ...

    def end(self, success: bool | None) -> None:
        """The episode is over."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class WebsocketLink:
    """The websocket transport: one msgpack envelope per frame.

    Args:
        url: address of the server.
        action_type: announced with each reset.
        connect_s: how long to try to connect.
        call_s: how long an answer may take; RoboTwin's own client waits 120 s.
    """

    def __init__(
        self, url: str, action_type: ActionType, *, connect_s: float = CONNECT_S, call_s: float = CALL_S
    ) -> None:
        self._connection = Connection(url, connect_s=connect_s, call_s=call_s)
        self._action_type = action_type
        self._evaluation = f"evalkit-{uuid.uuid4()}"
        self._trial: str | None = None
        self._seed: int | None = None
        self._steps = 0

    def open(self) -> None:
        """See ``XPolicyLabLink``."""
        self._connection.open()

    def hello(self) -> Mapping[str, Any]:
        """What the server says of itself."""
        return self._ask("hello", {}, "hello_ack")

    def reset(self, info: EpisodeInfo) -> None:
        """See ``XPolicyLabLink``."""
        self._trial, self._seed, self._steps = info.session, info.policy_seed, 0
        payload = {
            "trial_id": info.session,
            "seed": info.policy_seed,
            "policy_seed": info.policy_seed,
            "instruction": info.instruction,
            "action_type": ACTION_NAMES[self._action_type],
            "horizon_steps": info.horizon_steps,
        }
        self._ask("reset", payload, "reset_result")

    def infer(self, observation: Mapping[str, Any], between: Sequence[Mapping[str, Any]] = ()) -> Any:
        """See ``XPolicyLabLink``; the server sees the present observation alone."""
        answer = self._ask("infer", {"observation": observation}, "infer_result")
        self._steps += 1
        return answer

    def end(self, success: bool | None) -> None:
        """See ``XPolicyLabLink``; ``success`` is null where there is no verdict."""
        self._ask("trial_end", {"trial_id": self._trial, "seed": self._seed, "success": success}, "trial_end_ack")

    def close(self) -> None:
        """See ``XPolicyLabLink``."""
        self._connection.close()

    def _ask(self, kind: str, payload: Mapping[str, Any], reply: str) -> Mapping[str, Any]:
        identity = str(uuid.uuid4())
        envelope = {
            "message_type": kind,
            "message_id": identity,
            "evaluation_id": self._evaluation,
            "action_case_id": None,
            "trial_id": self._trial,
            "repeat_index": None,
            "step": self._steps,
            "sent_at": datetime.now(UTC).isoformat(),
            "payload": payload,
        }
        raw = self._connection.call(pack(envelope, "msgpack_numpy"))
        while True:
            answer = unpack(raw) if isinstance(raw, bytes) else {}
            if isinstance(answer, dict) and answer.get("message_id") == identity:
                break
            raw = self._connection.receive()  # the answer to a request that was given up, or a text frame
        content = answer.get("payload") or {}
        if answer.get("message_type") == "error":
            what = f"{content.get('code', 'error')}: {content.get('message', '')}"
            raise PolicyError("server_error", f"the policy server at {self._connection.url} reports {what}")
        if answer.get("message_type") != reply:
            raise PolicyError("answer", f"the policy server answered {answer.get('message_type')!r} to {kind}")
        return content if isinstance(content, dict) else {}
