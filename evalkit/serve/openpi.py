"""The keys of evalkit's openpi server. ``docs/policies/serving.md`` lists them for people who write a client.

observation/<camera>    uint8 (height, width, 3), RGB
observation/state       (14,) joints and grippers
observation/endpose     (16,) end effector poses, for policies of such actions
prompt                  the instruction
reset, seed, horizon_steps   true starts an episode (with the first message one starts anyway); its policy seed
end, success            true ends the episode, with the verdict if there is one; the answer is empty
step                    actions executed so far, if not every chunk is executed whole
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalkit.core.errors import PolicyError
from evalkit.serve.served import Client, Seen

_PREFIX = "observation/"


def answer_openpi(client: Client, request: Any) -> dict[str, Any]:
    """One request, one answer: ``actions`` (steps, 14 or 16) float64 and ``server_timing``.

    A request with ``reset`` and no ``observation/state`` only starts an episode; its answer is empty.

    Raises:
        PolicyError: something is missing or has the wrong form.
    """
    if not isinstance(request, Mapping):
        raise PolicyError("request", f"a request is a map, this one is {type(request).__name__}")
    if request.get("end"):
        client.end(_verdict(request.get("success")))
        return {}
    prompt = str(request.get("prompt", ""))
    if request.get("reset"):
        client.reset(prompt, int(request.get("seed", 0)), request.get("horizon_steps"))
        if f"{_PREFIX}state" not in request:
            return {}
    if f"{_PREFIX}state" not in request:
        raise PolicyError("request", f"a request needs {_PREFIX}state; this one has {', '.join(map(str, request))}")
    images = {
        key.removeprefix(_PREFIX): value
        for key, value in request.items()
        if key.startswith(_PREFIX) and key.endswith("_camera")
    }
    seen = Seen(state=request[f"{_PREFIX}state"], endpose=request.get(f"{_PREFIX}endpose"), images=images)
    answer = client.act(prompt, seen, step=request.get("step"))
    return {"actions": answer.actions, "server_timing": {"infer_ms": answer.latency_ms}}


def _verdict(value: Any) -> bool | None:
    return None if value is None else bool(value)
