"""The values of a request: each says where it comes from. See ``evalkit.policy.profile`` for the YAML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from evalkit.core.errors import PolicyError, UserError
from evalkit.policy.contract import Observation
from evalkit.policy.conversion import Conversion, References
from evalkit.policy.parts import split
from evalkit.policy.pictures import PictureForm, read_form

KINDS = ("picture", "pictures", "vector", "instruction", "number", "value", "history")
NUMBERS = ("step", "seed", "call", "first")


@dataclass(frozen=True, kw_only=True)
class Moment:
    """What a request may speak of."""

    observation: Observation
    references: References
    seed: int
    """The episode's policy seed."""
    call: int
    """Decisions made in the episode so far."""


class Field(Protocol):
    """One value of a request."""

    @property
    def cameras(self) -> tuple[str, ...]:
        """Cameras it shows."""
        ...

    def value(self, moment: Moment) -> Any:
        """The value to send."""
        ...


@dataclass(frozen=True)
class PictureField:
    """One picture, or several stacked along a new first axis."""

    cameras: tuple[str, ...]
    form: PictureForm
    stacked: bool

    def value(self, moment: Moment) -> Any:
        """See ``Field``."""
        images = moment.observation.images
        missing = [camera for camera in self.cameras if camera not in images]
        if missing:
            raise PolicyError("camera", f"the policy needs {missing[0]}, which wasn't delivered")
        pictures = [self.form.apply(images[camera]) for camera in self.cameras]
        return np.stack(pictures) if self.stacked else pictures[0]


@dataclass(frozen=True)
class VectorField:
    """The robot's state in the policy's representation, or some parts of it."""

    conversion: Conversion
    take: tuple[str, ...]
    dtype: str
    cameras: tuple[str, ...] = ()

    def value(self, moment: Moment) -> Any:
        """See ``Field``."""
        state = robot_vector(moment.observation, self.conversion.robot)
        relative = self.conversion.needs_reference
        encoded = self.conversion.encode(state[None] if relative else state, moment.references)
        encoded = encoded[0] if relative else encoded
        if self.take:
            parts = split(self.conversion.layout, encoded)
            encoded = np.concatenate([parts[name] for name in self.take])
        return encoded.astype(self.dtype)


@dataclass(frozen=True)
class InstructionField:
    """The instruction."""

    as_list: bool
    on_reset: str
    """Written before the first one of an episode."""
    cameras: tuple[str, ...] = ()

    def value(self, moment: Moment) -> Any:
        """See ``Field``."""
        text = (self.on_reset if moment.call == 0 else "") + moment.observation.instruction
        return [text] if self.as_list else text


@dataclass(frozen=True)
class NumberField:
    """A count or a seed."""

    name: str
    cameras: tuple[str, ...] = ()

    def value(self, moment: Moment) -> Any:
        """See ``Field``."""
        return {"step": moment.observation.step, "seed": moment.seed, "call": moment.call, "first": moment.call == 0}[
            self.name
        ]


@dataclass(frozen=True)
class ValueField:
    """A constant."""

    constant: Any
    cameras: tuple[str, ...] = ()

    def value(self, moment: Moment) -> Any:
        """See ``Field``."""
        return self.constant


@dataclass(frozen=True)
class MappingField:
    """Fields in fields."""

    fields: Mapping[str, Field]

    @property
    def cameras(self) -> tuple[str, ...]:
        """See ``Field``."""
        return tuple(camera for field in self.fields.values() for camera in field.cameras)

    def value(self, moment: Moment) -> Any:
        """See ``Field``."""
        return {key: field.value(moment) for key, field in self.fields.items()}


@dataclass(frozen=True)
class HistoryField:
    """A field of each of the last observations, stacked along a new first axis, oldest first."""

    field: Field
    steps: int

    @property
    def cameras(self) -> tuple[str, ...]:
        """See ``Field``."""
        return self.field.cameras

    def value(self, moment: Moment) -> Any:
        """See ``Field``. Where an episode has had fewer observations, its first one is repeated."""
        seen = [*moment.observation.history, moment.observation][-self.steps :]
        rows = [seen[0]] * (self.steps - len(seen)) + seen
        return np.stack([self.field.value(replace(moment, observation=row)) for row in rows])


def robot_vector(observation: Observation, robot: str) -> Any:
    """RoboTwin's own vector of an observation: (14,) for ``qpos``, (16,) for ``ee``.

    Raises:
        PolicyError: the observation has no end effector poses.
    """
    if robot == "qpos":
        return observation.state
    if observation.endpose is None:
        raise PolicyError("endpose", "the policy needs end effector poses, which weren't delivered")
    return observation.endpose


def read_field(values: Any, where: str, folder: Path, history_steps: int = 1) -> Field:
    """A value of a request from YAML.

    Args:
        values: the YAML.
        where: names it, for messages.
        folder: where relative paths start.
        history_steps: observations that the policy declares to see.

    Raises:
        UserError: it names no source, or one wrongly.
    """
    if not isinstance(values, Mapping) or not values:
        raise UserError(f"{where} is {values!r}: give one of {', '.join(KINDS)}")
    kinds = [kind for kind in KINDS if kind in values]
    if not kinds:
        inner = {str(key): read_field(value, f"{where}.{key}", folder, history_steps) for key, value in values.items()}
        return MappingField(inner)
    if len(kinds) > 1:
        raise UserError(f"{where} names two sources: {' and '.join(kinds)}")
    kind, rest = kinds[0], {key: value for key, value in values.items() if key != kinds[0]}
    if kind in ("picture", "pictures"):
        cameras = (values[kind],) if kind == "picture" else tuple(values[kind])
        return PictureField(cameras, read_form(rest, where), kind == "pictures")
    if kind == "vector":
        return _vector(values, rest, where, folder)
    if kind == "history":
        return _history(values[kind], rest, where, folder, history_steps)
    allowed = ("on_reset",) if kind == "instruction" else ()
    unknown = sorted(set(rest) - set(allowed))
    if unknown:
        raise UserError(f"{where} has no setting {unknown[0]!r}")
    if kind == "instruction":
        if values[kind] not in ("text", "list"):
            raise UserError(f"{where}: instruction is {values[kind]!r}: use text or list")
        return InstructionField(values[kind] == "list", str(rest.get("on_reset", "")))
    if kind == "number":
        if values[kind] not in NUMBERS:
            raise UserError(f"{where}: number is {values[kind]!r}: use {', '.join(NUMBERS)}")
        return NumberField(values[kind])
    return ValueField(values[kind])


def _history(values: Any, rest: Mapping[str, Any], where: str, folder: Path, history_steps: int) -> HistoryField:
    if rest:
        raise UserError(f"{where} has no setting {sorted(rest)[0]!r}: settings belong to what history is of")
    if history_steps < 2:
        raise UserError(f"{where} is a history, but robot.history_steps is {history_steps}: say how far it goes back")
    field = read_field(values, f"{where}.history", folder)
    if not isinstance(field, PictureField | VectorField):
        raise UserError(f"{where}: history is of a picture, pictures or a vector")
    return HistoryField(field, history_steps)


def _vector(values: Mapping[str, Any], rest: Mapping[str, Any], where: str, folder: Path) -> VectorField:
    unknown = sorted(set(rest) - {"as", "take", "dtype"})
    if unknown or "as" not in rest:
        wrong = f"has no setting {unknown[0]!r}" if unknown else "lacks as (list of steps, [] for none)"
        raise UserError(f"{where} {wrong}")
    conversion = Conversion(values["vector"], rest["as"], folder=folder)
    take: Sequence[str] = rest.get("take") or ()
    names = [part.name for part in conversion.layout]
    missing = [name for name in take if name not in names]
    if missing:
        raise UserError(f"{where} takes {missing[0]!r}; the vector has {', '.join(names)}")
    dtype = str(rest.get("dtype", "float32"))
    if dtype not in ("float32", "float64"):
        raise UserError(f"{where}: dtype is {dtype!r}: use float32 or float64")
    return VectorField(conversion, tuple(take), dtype)
