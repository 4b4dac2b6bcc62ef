"""XPolicyLab's protocol from the server's end: envelopes of the websocket, and methods of the legacy TCP form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from evalkit.core.errors import PolicyError
from evalkit.core.rng import stream_seed
from evalkit.policy.wire.xpolicylab_messages import CAMERAS, action_maps
from evalkit.serve.served import Client, Seen

_ECHOED = ("message_id", "evaluation_id", "action_case_id", "trial_id", "repeat_index", "step")
_ACKNOWLEDGED = {"hello": "hello_ack", "prepare_case": "prepare_case_ack", "trial_end": "trial_end_ack"}


def answer_envelope(client: Client, envelope: Any) -> dict[str, Any] | None:
    """One frame, one answer; None ends the connection."""
    if not isinstance(envelope, Mapping):
        return _reply({}, "error", {"code": "invalid_frame", "message": "a frame is a map", "details": {}})
    kind, payload = envelope.get("message_type"), envelope.get("payload") or {}
    if kind == "close":
        return None
    try:
        if kind == "trial_end":
            success = payload.get("success")
            client.end(None if success is None else bool(success))
        if kind in _ACKNOWLEDGED:
            return _reply(envelope, _ACKNOWLEDGED[kind], {"ok": True, "server": "evalkit"})
        if kind == "heartbeat":
            return _reply(envelope, "heartbeat_ack", {"ok": True})
        if kind == "reset":
            reset(client, payload)
            return _reply(envelope, "reset_result", {"ok": True})
        if kind == "infer":
            return _reply(envelope, "infer_result", infer(client, payload.get("observation")))
    except Exception as error:  # whatever a policy raises is reported in the protocol's way
        code = {"reset": "reset_failed", "infer": "infer_failed"}.get(str(kind), "internal")
        return _reply(envelope, "error", {"code": code, "message": f"{type(error).__name__}: {error}", "details": {}})
    what = f"unsupported request type: {kind}"
    return _reply(envelope, "error", {"code": "unknown_message_type", "message": what, "details": {}})


def reset(client: Client, payload: Mapping[str, Any]) -> None:
    """Start an episode with what the payload of a reset says.

    ``seed`` is the scene's: the policy's own is drawn from it. evalkit's client sends that one, as ``policy_seed``.
    """
    seed = payload.get("policy_seed")
    if seed is None:
        seed = stream_seed(int(payload.get("seed") or 0), "serve")
    client.reset(str(payload.get("instruction", "")), int(seed), payload.get("horizon_steps"))


def infer(client: Client, observation: Any, between: Sequence[Any] = ()) -> dict[str, Any]:
    """Decide on an observation of data format v1.0.

    Args:
        client: the connection.
        observation: the present one.
        between: those since the last decision, oldest first.

    Raises:
        PolicyError: something is missing or has the wrong form.
    """
    seen, earlier = _seen(observation), [_seen(row) for row in between]
    step = (observation.get("additional_info") or {}).get("executed_steps")
    answer = client.act(str(observation.get("instruction", "")), seen, step=step, between=earlier)
    return {"actions": action_maps(answer.actions, client.action_type), "latency_ms": answer.latency_ms}


def _seen(observation: Any) -> Seen:
    if not isinstance(observation, Mapping):
        raise PolicyError("request", "infer payload missing observation")
    state, vision = observation.get("state") or {}, observation.get("vision") or {}
    joints = ("left_arm_joint_state", "left_ee_joint_state", "right_arm_joint_state", "right_ee_joint_state")
    missing = [key for key in joints if key not in state]
    if missing:
        raise PolicyError("request", f"the observation's state lacks {missing[0]}; it has {', '.join(map(str, state))}")
    parts = {key: np.asarray(value, np.float64).reshape(-1) for key, value in state.items()}
    endpose = None
    if "left_ee_pose" in parts and "right_ee_pose" in parts:
        endpose = np.concatenate([parts["left_ee_pose"], parts[joints[1]], parts["right_ee_pose"], parts[joints[3]]])
    images = {camera: vision[name]["color"] for camera, name in CAMERAS.items() if name in vision}
    return Seen(state=np.concatenate([parts[key] for key in joints]), endpose=endpose, images=images)


def _reply(envelope: Mapping[str, Any], kind: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    echoed = {key: envelope.get(key) for key in _ECHOED}
    return {"message_type": kind, **echoed, "sent_at": datetime.now(UTC).isoformat(), "payload": payload}
