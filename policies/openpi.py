"""A policy behind a websocket server of openpi's protocol. What it is sent and what it answers is its profile's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalkit.core.errors import UserError
from evalkit.policy.contract import PolicySpec
from evalkit.policy.converted import ConvertedPolicy
from evalkit.policy.profile import Profile, load_profile
from evalkit.policy.settings import PolicySettings, number
from evalkit.policy.wire.connection import CALL_S, CONNECT_S
from evalkit.policy.wire.openpi import OpenpiChannel

NEEDS_CHECKPOINT = False
_REQUIRED = ("url", "serves", "profile")
_OPTIONAL = ("answers", "api_key", "connect_s", "call_s", "reconnect", "reset_message", "end_message")


def load(checkpoint: Path | None, *, device: str, settings: PolicySettings | None = None) -> ConvertedPolicy:
    """The policy; connects to its server.

    Raises:
        UserError: no policy file, or something wrong with it.
        PolicyLostError: no server there.
    """
    settings = _checked(checkpoint, settings)
    options = settings.options
    channel = OpenpiChannel(
        options["url"],
        connect_s=number(options, "connect_s", CONNECT_S),
        call_s=number(options, "call_s", CALL_S),
        api_key=options.get("api_key"),
        reconnect=bool(options.get("reconnect", False)),
        reset_message=options.get("reset_message"),
        end_message=options.get("end_message"),
    )
    profile = _profile(settings)
    channel.open()
    return ConvertedPolicy(profile, channel)


def spec(settings: PolicySettings) -> PolicySpec:
    """The policy's declaration: its profile's."""
    return _profile(_checked(None, settings)).spec


def identity(settings: PolicySettings) -> Mapping[str, Any]:
    """What decides the actions. ``serves`` stands for the weights, which this end can't see."""
    options = _checked(None, settings).options
    kept = {key: options.get(key) for key in ("reconnect", "reset_message")}
    return {"serves": options["serves"], "profile": _profile(settings).content, **kept}


def _checked(checkpoint: Path | None, settings: PolicySettings | None) -> PolicySettings:
    if settings is None or checkpoint is not None:
        raise UserError("policy openpi runs elsewhere: describe its server in a policy file and give that to --policy")
    settings.check(_REQUIRED, _OPTIONAL)
    return settings


def _profile(settings: PolicySettings) -> Profile:
    options = settings.options
    return load_profile(options["profile"], name=settings.name, folder=settings.folder, answers=options.get("answers"))
