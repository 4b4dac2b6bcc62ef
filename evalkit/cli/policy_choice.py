"""Which policy a command line means: an adapter, a checkpoint or a policy file, and in which interpreter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalkit.core.errors import UserError
from evalkit.core.hashing import digest
from evalkit.policy.checkpoint import Checkpoint, read_checkpoint, resolve, spec_from_json, spec_to_json
from evalkit.policy.contract import Policy, PolicySpec
from evalkit.policy.interpreter import interpreter_of
from evalkit.policy.registry import (
    adapter_digest,
    described_identity,
    described_spec,
    load_adapter,
    load_described,
    load_form,
)
from evalkit.policy.remote import load_remote
from evalkit.policy.settings import SEMANTICS, PolicySettings, is_policy_file, read_settings
from evalkit.provenance.card import TrainingCard, read_card


@dataclass(frozen=True, kw_only=True)
class PolicyMaker:
    """Loads the policy where it runs. Travels to the policy server."""

    adapter: str
    checkpoint: Path | None
    device: str
    settings: PolicySettings | None = None
    """The policy file, if the policy is described by one."""
    python: Path | None = None
    """Interpreter to load it in, if it isn't this one."""
    content: str | None = None
    """Digest of its files when it was chosen; checked where it is loaded, which may be later and elsewhere."""

    def __call__(self) -> Policy:
        """Load it.

        Raises:
            UserError: its files aren't those that were chosen.
        """
        if self.content is not None and self.content_now() != self.content:
            what = f"the files of policy {self.settings.name if self.settings else self.adapter} changed since the run"
            raise UserError(f"{what} was set up (does its checkpoint move?): start the command again")
        if self.python is not None:
            return load_remote(
                self.python, name=self.adapter, device=self.device, adapter=self.adapter, checkpoint=self.checkpoint
            )
        if self.settings is not None:
            return load_described(self.settings, self.checkpoint, device=self.device)
        return load_adapter(self.adapter).load(self.checkpoint, device=self.device)

    def content_now(self) -> str | None:
        """Digest of the files that decide the policy, as they are; None for a policy without any."""
        if self.settings is not None:
            return digest(described_identity(self.settings))
        return read_checkpoint(self.checkpoint).digest if self.checkpoint is not None else None


@dataclass(frozen=True, kw_only=True)
class PolicyChoice:
    """A policy that was found, and what it declares."""

    name: str
    """What tables call it."""
    maker: PolicyMaker
    checkpoint: Checkpoint | None
    card: TrainingCard | None
    spec: PolicySpec
    digest: str


def choose_policy(
    policy: str | None, checkpoint: str | None, python: str | None = None, *, on_cpu: bool = False
) -> PolicyChoice:
    """Find a policy.

    Args:
        policy: an adapter's name or a policy file, or None.
        checkpoint: a checkpoint, or None.
        python: interpreter of an adapter, if it isn't evalkit's own.
        on_cpu: whether it is to leave GPUs alone.

    Raises:
        UserError: there is none, or the parts don't fit together.
    """
    found, adapter, settings = _find(policy, checkpoint)
    if python is not None and settings is not None:
        raise UserError("--policy-python is for adapters; in a policy file, say python: PATH")
    maker = PolicyMaker(
        adapter=adapter,
        checkpoint=found.path if found else None,
        device="cpu" if on_cpu else pick_device(),
        settings=settings,
        python=interpreter_of(python, None, Path()) if python is not None else None,
    )
    spec = _read_spec(found, maker)
    maker = replace(maker, content=found.digest if found else maker.content_now())
    return PolicyChoice(
        name=settings.name if settings else adapter,
        maker=maker,
        checkpoint=found,
        card=_read_card(found, settings),
        spec=spec,
        digest=_digest(maker, found, spec),
    )


def pick_device() -> str:
    """``"cuda"`` if torch sees a GPU, else ``"cpu"``."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _read_card(checkpoint: Checkpoint | None, settings: PolicySettings | None) -> TrainingCard | None:
    if settings is not None:
        return read_card(settings.card) if settings.card else None
    return read_card(checkpoint.path) if checkpoint else None


def _find(policy: str | None, checkpoint: str | None) -> tuple[Checkpoint | None, str, PolicySettings | None]:
    if checkpoint is None and policy is None:
        raise UserError("nothing to run: give --ckpt (a checkpoint) or --policy (an adapter without weights)")
    if checkpoint is not None:
        found = resolve(checkpoint)
        load_adapter(found.adapter)
        if policy not in (None, found.adapter):
            raise UserError(f"{found.path} is a checkpoint of policy {found.adapter}, not {policy}")
        return found, found.adapter, None
    assert policy is not None
    if is_policy_file(policy):
        settings = read_settings(Path(policy))
        load_form(settings.adapter)
        return None, settings.adapter, settings
    if load_adapter(policy).NEEDS_CHECKPOINT:
        raise UserError(f"policy {policy} needs weights: give its checkpoint with --ckpt")
    return None, policy, None


def _read_spec(checkpoint: Checkpoint | None, maker: PolicyMaker) -> PolicySpec:
    if checkpoint is not None:
        try:
            return spec_from_json(checkpoint.spec)
        except (KeyError, TypeError) as error:
            raise UserError(f"{checkpoint.path}: the policy's spec can't be read: {error}") from error
    if maker.settings is not None:
        return described_spec(maker.settings)
    policy = maker()
    try:
        return policy.spec
    finally:
        policy.close()


def _digest(maker: PolicyMaker, checkpoint: Checkpoint | None, spec: PolicySpec) -> str:
    """Everything of a policy that decides its actions; how many of them are executed is a field of its own."""
    options: dict[str, Any] = {}
    if maker.settings is not None:
        options = {"semantics": SEMANTICS, "identity": described_identity(maker.settings)}
    parts = {
        "adapter": maker.adapter,
        "code": adapter_digest(maker.adapter),
        "checkpoint": checkpoint.digest if checkpoint else None,
        "device": maker.device,
        "options": options,
        "spec": spec_to_json(spec),
    }
    return digest(parts)
