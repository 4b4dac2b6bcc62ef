"""``evalkit policy check``: what is wrong with a policy, before a run finds out."""

from __future__ import annotations

import json
import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from evalkit.cli.policy_choice import PolicyChoice
    from evalkit.policy.contract import Policy
    from evalkit.policy.findings import Finding
    from evalkit.policy.golden import Moment
    from evalkit.policy.profile import Profile

EXIT_NOT_READY = 1
DEMONSTRATION_STEPS = 8
"""Moments of a demonstration that the policy is asked about."""
NEXT_STEPS = 16
"""Actions of the expert that its answers are compared with."""


def check_command(
    policy: Annotated[str | None, typer.Argument(help="Adapter without weights, or a policy file.")] = None,
    ckpt: Annotated[str | None, typer.Option(help="Checkpoint: a folder, or a name such as step_30000.")] = None,
    demonstration: Annotated[
        Path | None,
        typer.Option(help="An episode file in RoboTwin's layout, to ask about and to convert, in place of our own."),
    ] = None,
    mode: Annotated[str, typer.Option(help="Configurations it must fit: c2c, c2r, all.")] = "all",
    policy_python: Annotated[str | None, typer.Option(help="The policy's own interpreter or environment.")] = None,
    write_golden: Annotated[
        bool, typer.Option("--write-golden", help="Keep its answers beside it: where it is known to be right.")
    ] = False,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Replay a demonstration through its conversions, and run one trial.")
    ] = False,
    task: Annotated[str, typer.Option(help="The task of --simulate.")] = "click_bell",
    backend: Annotated[str, typer.Option(help="The simulator of --simulate: robotwin or fake.")] = "robotwin",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Load a policy and find out what is wrong with it before a run does.

    Checks its declaration against the configurations, the contract (shapes,
    determinism, reset, sessions, batches), ranges, first actions and what the
    expert did next at moments of real demonstrations, its conversions, and the
    golden actions kept with it.

    Exit codes: 0 ready, 1 something is off, 2 bad input.

    Example: evalkit policy check --ckpt step_30000
    """
    from evalkit.cli.policy_choice import choose_policy
    from evalkit.core.errors import UserError
    from evalkit.policy.check import check_policy
    from evalkit.policy.golden import read_actions
    from evalkit.protocol.compatibility import check
    from evalkit.protocol.config import load_config
    from evalkit.protocol.modes import configs_of

    choice = choose_policy(policy, ckpt, policy_python)
    configs = configs_of(mode)
    for name in configs:
        check(choice.spec, load_config(name))
    if write_golden and demonstration is not None:
        raise UserError("--write-golden answers evalkit's own observations: leave --demonstration out")
    moments = _moments(choice, demonstration)
    place = _golden_place(choice, policy)
    profile = _profile(choice)
    found = _conversion(profile, demonstration)
    loaded = choice.maker()
    try:
        if write_golden:
            _write_golden(choice, loaded, moments, place)
        golden = read_actions(place) if place is not None and demonstration is None and moments else None
        found += check_policy(
            loaded, moments, golden=golden, device=choice.maker.device.split(":")[0], numbers=_numbers(choice)
        )
        if simulate and all(finding.ok for finding in found):
            from evalkit.cli.policy_simulate import simulated

            found += simulated(loaded, profile, task=task, config=configs[0], backend=backend)
    finally:
        loaded.close()
    _print(choice, configs, found, as_json)
    if not all(finding.ok for finding in found):
        raise typer.Exit(EXIT_NOT_READY)


def wrapped(head: str, text: str, indent: int | None = None) -> str:
    """Text after a head, broken at the terminal's width and indented under its own beginning."""
    width = max(60, shutil.get_terminal_size().columns)
    under = " " * (len(head) if indent is None else indent)
    return textwrap.fill(text, width, initial_indent=head, subsequent_indent=under, break_on_hyphens=False)


def _profile(choice: PolicyChoice) -> Profile | None:
    """The profile of a policy that has one."""
    from evalkit.policy.profile import load_profile, profile_names

    settings = choice.maker.settings
    if settings is None:
        return None
    named = settings.options.get("profile", settings.adapter if settings.adapter in profile_names() else None)
    if named is None:
        return None
    return load_profile(named, name=settings.name, folder=settings.folder, answers=settings.options.get("answers"))


def _conversion(profile: Profile | None, demonstration: Path | None) -> list[Finding]:
    """A demonstration through the conversion and back: the one given, or those that travel with evalkit."""
    from evalkit.policy.check import check_conversion
    from evalkit.policy.golden import golden_trajectory

    if profile is None:
        return []
    kind = profile.spec.action_type
    trajectory = golden_trajectory(kind) if demonstration is None else _trajectory(demonstration, kind)
    return [check_conversion(profile.actions, trajectory)]


def _trajectory(path: Path, action_type: str) -> Any:
    from evalkit.data.episode_file import read_episode

    episode = read_episode(path)
    return episode.state if action_type == "qpos" else episode.endpose


def _golden_place(choice: PolicyChoice, policy: str | None) -> Path | None:
    """Where golden actions of a policy lie; None for an adapter without weights."""
    if choice.checkpoint is not None:
        return choice.checkpoint.path / "golden_actions.json"
    return Path(policy).with_suffix(".golden.json") if choice.maker.settings is not None and policy else None


def _write_golden(choice: PolicyChoice, loaded: Policy, moments: list[Moment], place: Path | None) -> None:
    from evalkit.core.errors import UserError
    from evalkit.policy.check import golden_chunks
    from evalkit.policy.golden import GoldenActions, observations_digest, write_actions

    if place is None or not moments or choice.spec.drive != "act":
        why = "it has no weights" if place is None else "it isn't asked" if moments else "it wants other pictures"
        raise UserError(f"policy {choice.name} can't have golden actions: {why}; leave --write-golden out")
    write_actions(
        place,
        GoldenActions(
            policy=choice.digest,
            observations=observations_digest(),
            device=choice.maker.device.split(":")[0],
            numbers=_numbers(choice),
            chunks=tuple(golden_chunks(loaded, moments)),
        ),
    )
    typer.echo(f"wrote {place}", err=True)


def _numbers(choice: PolicyChoice) -> str:
    weights = choice.maker.settings.options.get("weights") if choice.maker.settings is not None else None
    return str((weights.get("dtype") if isinstance(weights, dict) else None) or "float32")


def _moments(choice: PolicyChoice, path: Path | None) -> list[Moment]:
    """Moments of a demonstration, evenly spaced, as a policy would see them; those of evalkit's own by default."""
    from evalkit.policy.golden import Moment, golden_moments

    if path is None:
        return golden_moments(choice.spec)
    from evalkit.data.episode_file import read_episode
    from evalkit.data.jpeg import decode_rgb
    from evalkit.policy.contract import Observation

    episode = read_episode(path)
    last = len(episode.state) - 1
    frames = sorted({round(share * last / DEMONSTRATION_STEPS) for share in range(DEMONSTRATION_STEPS)})
    return [
        Moment(
            name=f"{path.name} frame {frame}",
            observation=Observation(
                session="check",
                step=0,
                instruction="Do the task.",
                state=episode.state[frame],
                endpose=episode.endpose[frame],
                images={camera.name: decode_rgb(episode.images[camera.name][frame]) for camera in choice.spec.cameras},
            ),
            then_state=episode.state[frame + 1 : frame + 1 + NEXT_STEPS],
            then_endpose=episode.endpose[frame + 1 : frame + 1 + NEXT_STEPS],
        )
        for frame in frames
    ]


def _print(choice: PolicyChoice, configs: tuple[str, ...], found: list[Finding], as_json: bool) -> None:
    from dataclasses import asdict

    from evalkit.policy.checkpoint import spec_to_json

    ready = all(finding.ok for finding in found)
    if as_json:
        values = {"policy": choice.name, "digest": choice.digest, "spec": spec_to_json(choice.spec), "ready": ready}
        print(json.dumps({**values, "configs": list(configs), "findings": [asdict(item) for item in found]}, indent=1))
        return
    spec = choice.spec
    cameras = ", ".join(f"{camera.name} {camera.height_px}x{camera.width_px}" for camera in spec.cameras) or "none"
    print(f"policy {choice.name}  {choice.digest[:12]}")
    print(wrapped("  cameras ", cameras))
    seen = f"; sees the last {spec.history_steps} observations" if spec.history_steps > 1 else ""
    print(wrapped("  actions ", f"{spec.action_type}, {spec.execute_steps} of {spec.chunk_steps} executed{seen}"))
    print(f"  fits    {', '.join(configs)}")
    for finding in found:
        word = "OFF " if not finding.ok else "note" if finding.note else "ok  "
        print(wrapped(f"  {word}  {finding.name}: ", finding.detail, indent=8))
    off = [finding.name for finding in found if not finding.ok]
    notes = [finding.name for finding in found if finding.ok and finding.note]
    worth = f"; worth a look: {', '.join(notes)}" if notes else ""
    print(f"ready{worth}" if ready else f"not ready: {', '.join(off)}{worth}")
