"""Profiles: what a policy is sent, and what its answer means, as data.

    robot:      actions (qpos | ee), cameras, chunk_steps, execute_steps, needs_instruction, stateful, one_at_a_time,
                history_steps
    request:    key of the message -> where its value comes from
    answer:     key of the actions, and the steps that make them from RoboTwin's
    asks:       name -> question: what nobody but the user can know; the policy file answers under ``answers``

A value of the request is one of
    {picture: head_camera, ...}        one camera; the rest as in ``evalkit.policy.pictures``
    {pictures: [head_camera, ...], ...}  several, stacked along a new first axis
    {vector: qpos | ee, as: [steps], take: [parts], dtype: float32}   the robot's state
    {instruction: text | list, on_reset: <prefix>}
    {number: step | seed | call | first}  actions executed so far; the episode's policy seed; decisions so far; is it
                                       the first decision
    {value: anything}                  sent as it is
    {history: {picture: ...}}          the value of each of the last history_steps observations, oldest first, stacked
                                       along a new first axis; the first one repeated where there aren't so many yet
    or a mapping of such values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from evalkit.core.errors import UnknownNameError, UserError
from evalkit.core.locations import bundled
from evalkit.policy.contract import CameraSpec, PolicySpec
from evalkit.policy.conversion import Conversion
from evalkit.policy.fields import Field, read_field

CAMERAS = ("head_camera", "left_camera", "right_camera", "front_camera")
_SECTIONS = ("profile", "about", "sources", "robot", "request", "answer", "asks", "options")
_ROBOT = ("actions", "cameras", "chunk_steps", "execute_steps", "needs_instruction", "stateful")
_ROBOT_OPTIONAL = ("one_at_a_time", "history_steps")


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A profile whose every name was found and whose parts fit together."""

    name: str
    spec: PolicySpec
    request: Mapping[str, Field]
    answer_key: str
    actions: Conversion
    content: Mapping[str, Any]
    """The profile as data, questions answered: what identifies it."""
    home: Path
    """Where its relative paths start."""


def profile_names() -> tuple[str, ...]:
    """Names of the profiles that travel with evalkit, sorted."""
    return tuple(sorted(path.stem for path in (bundled("policies") / "profiles").glob("*.yaml")))


def load_profile(
    profile: str | Mapping[str, Any], *, name: str, folder: Path, answers: Mapping[str, Any] | None = None
) -> Profile:
    """Read a profile.

    Args:
        profile: name of one that travels with evalkit, path of a YAML file, or the content itself.
        name: what the policy is called.
        folder: where relative paths start.
        answers: what the profile asks.

    Raises:
        UserError: the first thing that is wrong with it, or a question without an answer.
    """
    content, home = _content(profile, folder)
    where = f"profile {content.get('profile', name)}"
    unknown = sorted(set(content) - set(_SECTIONS))
    if unknown:
        raise UserError(f"{where} has no section {unknown[0]!r}: use {', '.join(_SECTIONS)}")
    missing = [section for section in ("robot", "request", "answer") if not isinstance(content.get(section), Mapping)]
    if missing:
        raise UserError(f"{where} lacks section {missing[0]}")
    content = _answered(content, answers or {}, where)
    spec = read_robot(content["robot"], name, where)
    request = {
        str(key): read_field(value, f"{where}, request {key}", home, spec.history_steps)
        for key, value in content["request"].items()
    }
    cameras = {camera for field in request.values() for camera in field.cameras}
    unnamed = sorted(cameras - {camera.name for camera in spec.cameras})
    if unnamed:
        raise UserError(f"{where} sends {unnamed[0]}, which isn't among robot.cameras")
    answer = content["answer"]
    if set(answer) - {"key", "as"} or "key" not in answer or "as" not in answer:
        raise UserError(f"{where}: answer takes key (where the actions are) and as (list of steps, [] for none)")
    actions = Conversion(spec.action_type, answer["as"], folder=home)
    return Profile(
        name=name,
        spec=spec,
        request=request,
        answer_key=str(answer["key"]),
        actions=actions,
        content=content,
        home=home,
    )


def refuse_mixed_episodes(profile: Profile) -> None:
    """For policies whose own side isn't told which episode it is asked about: one with a state has one at a time.

    Raises:
        UserError: it declares a state and several episodes at once.
    """
    spec = profile.spec
    if spec.stateful and not spec.one_at_a_time:
        what = "stateful, and its model isn't told which episode it is asked about"
        raise UserError(f"policy {spec.name} is {what}: say one_at_a_time: true (--policy-copies runs several of it)")


def _content(profile: str | Mapping[str, Any], folder: Path) -> tuple[dict[str, Any], Path]:
    if isinstance(profile, Mapping):
        return dict(profile), folder
    path = bundled("policies") / "profiles" / f"{profile}.yaml"
    if not path.is_file():
        path = folder / profile
    if not path.is_file():
        raise UnknownNameError("profile", profile, profile_names())
    try:
        values = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise UserError(f"{path} isn't YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict):
        raise UserError(f"{path} isn't a profile: it holds {type(values).__name__}, not a mapping")
    return values, path.parent


def _answered(content: dict[str, Any], answers: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The content with each ``{ask: name}`` replaced by its answer."""
    asks = content.get("asks") or {}
    for name, question in asks.items():
        if name not in answers:
            raise UserError(
                f"{where} can't know {name}; say it in the policy file under answers: {' '.join(question.split())}"
            )
    unknown = sorted(set(answers) - set(asks))
    if unknown:
        raise UserError(f"{where} doesn't ask {unknown[0]!r}; it asks {', '.join(asks) or 'nothing'}")

    def fill(value: Any) -> Any:
        if isinstance(value, Mapping):
            if set(value) == {"ask"}:
                if value["ask"] not in asks:
                    raise UserError(f"{where} uses ask: {value['ask']}, which isn't among its asks")
                return answers[value["ask"]]
            return {key: fill(inner) for key, inner in value.items()}
        return [fill(inner) for inner in value] if isinstance(value, list) else value

    return {key: value if key == "asks" else fill(value) for key, value in content.items()}


def read_robot(robot: Mapping[str, Any], name: str, where: str) -> PolicySpec:
    """A policy's declaration from the section ``robot`` of a profile or a policy file.

    Raises:
        UserError: the first thing that is wrong with it.
    """
    unknown = sorted(set(robot) - {*_ROBOT, *_ROBOT_OPTIONAL})
    missing = [key for key in _ROBOT if key not in robot]
    if unknown or missing:
        wrong = f"has no setting {unknown[0]!r}" if unknown else f"lacks {missing[0]}"
        raise UserError(f"{where}: robot {wrong}; it takes {', '.join([*_ROBOT, *_ROBOT_OPTIONAL])}")
    if robot["actions"] not in ("qpos", "ee"):
        raise UserError(f"{where}: robot.actions is {robot['actions']!r}: use qpos or ee")
    cameras = robot["cameras"]
    if not isinstance(cameras, Mapping) or set(cameras) - set(CAMERAS):
        raise UserError(f"{where}: robot.cameras maps names to [height, width]; names are {', '.join(CAMERAS)}")
    for key in ("chunk_steps", "execute_steps"):
        if not isinstance(robot[key], int) or robot[key] < 1:
            raise UserError(f"{where}: robot.{key} is {robot[key]!r}: give a number of actions")
    history_steps = robot.get("history_steps", 1)
    if not isinstance(history_steps, int) or isinstance(history_steps, bool) or history_steps < 1:
        raise UserError(f"{where}: robot.history_steps is {history_steps!r}: give a number of observations, 1 or more")
    if robot["execute_steps"] > robot["chunk_steps"]:
        raise UserError(
            f"{where}: robot.execute_steps {robot['execute_steps']} exceeds chunk_steps {robot['chunk_steps']}"
        )
    return PolicySpec(
        name=name,
        cameras=tuple(
            CameraSpec(name=camera, height_px=int(size[0]), width_px=int(size[1])) for camera, size in cameras.items()
        ),
        action_type=robot["actions"],
        chunk_steps=robot["chunk_steps"],
        execute_steps=robot["execute_steps"],
        needs_instruction=bool(robot["needs_instruction"]),
        stateful=bool(robot["stateful"]),
        one_at_a_time=bool(robot.get("one_at_a_time", False)),
        history_steps=history_steps,
    )
