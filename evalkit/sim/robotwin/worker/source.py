"""Where RoboTwin's task code comes from: the packaged runtime, or a checkout of one of its branches.

Everything that differs between them is here; the rest of the worker asks for a module, a configuration, a sentence.
No file of an installation is edited, and nothing is written into it.
"""

from __future__ import annotations

import copy
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import sys
from typing import Any, Callable, Dict, List, Mapping, Optional

CONFIG_FOLDERS = {"stable_2.0": "task_config", "main": os.path.join("env_cfg", "task_config")}
SCENE_PARTS = ("cameras", "robot", "scene", "renderer", "engine")


class Source:
    """RoboTwin's code, ready to be imported.

    Args:
        layout: ``pypi``, ``stable_2.0`` or ``main``.
        code_root: the checkout; not used by ``pypi``.
        assets_root: folder that holds ``assets/``; a checkout's own.
    """

    def __init__(self, layout: str, code_root: Optional[str], assets_root: str) -> None:
        self.is_package = layout == "pypi"
        self.assets_root = assets_root
        self._package = "robotwin.envs" if self.is_package else "envs"
        self._root = "" if self.is_package else str(code_root)
        self._configs = "" if self.is_package else os.path.join(self._root, CONFIG_FOLDERS[layout])
        self._describe: Any = None
        self._clutter_defaults: Any = None
        if self.is_package:
            os.environ["ASSETS_PATH"] = os.environ["ROBOTWIN_ASSETS_ROOT"] = assets_root
            os.chdir(assets_root)
        else:
            # A checkout reads ./assets relative to its root, and already at import; ASSETS_PATH is no part of it.
            os.chdir(self._root)
            sys.path.insert(0, self._root)

    def name(self, module: str) -> str:
        """Full name of a module of the task code, e.g. ``_base_task``, ``robot.planner``."""
        return self._package + "." + module

    def module(self, name: str) -> Any:
        """Import a module of the task code."""
        return importlib.import_module(self.name(name))

    def task_class(self, task: str) -> Any:
        """The class of a task."""
        return getattr(self.module(task), task)

    def unstable_error(self) -> Any:
        """The exception of the stability test."""
        return self.module("utils.create_actor").UnStableError

    def config(self, name: str) -> Dict[str, Any]:
        """A shared configuration, e.g. ``_camera_config``."""
        if self.is_package:
            from robotwin.config import load_task_config

            content: Dict[str, Any] = load_task_config(name)
            return content
        return load_yaml(os.path.join(self._configs, name + ".yml"))

    def robot_folder(self, embodiment: str) -> str:
        """Absolute folder of a robot."""
        return os.path.join(self.assets_root, self.config("_embodiment_config")[embodiment]["file_path"])

    def sentences(self, task: str, info: Mapping[str, str], split: str, seed: int, limit: int) -> List[str]:
        """RoboTwin's sentences for a task and its placeholders' values; empty if no template fits.

        A pure function of its arguments: the package seeds a generator of its own, a checkout draws from ``random``,
        which is seeded for the call and put back. The same templates give the same sentences either way.

        Raises:
            ValueError: a description is missing, where a checkout calls ``exit()``.
        """
        if self.is_package:
            from robotwin.description import generate_episode_descriptions

            described = generate_episode_descriptions(task, [dict(info)], limit, seed)
        else:
            before = random.getstate()
            random.seed(seed)
            try:
                described = self._generator().generate_episode_descriptions(task, [dict(info)], limit)
            except SystemExit as error:
                values = ", ".join(sorted(str(value) for value in info.values() if "/" in str(value)))
                message = "the instruction of {} needs a description that isn't there: {}".format(task, values)
                raise ValueError(message) from error
            finally:
                random.setstate(before)
        return list(described[0][split]) if described else []

    def _generator(self) -> Any:
        # By path: its folder also holds modules with names like ``agent``, which mustn't become importable.
        if self._describe is None:
            path = os.path.join(self._root, "description", "utils", "generate_episode_instructions.py")
            self._describe = load_file("robotwin_instructions", path)
        return self._describe

    def reset_process_state(self, seed: int) -> None:
        """Undo what earlier scenes left in the process, so that a scene depends on its seed alone.

        RoboTwin seeds numpy but not ``random``, and the clutter generator shifts its own default argument in place at
        every reset of the two tasks whose table isn't centred. What a fresh process does is done each time.
        """
        import numpy as np

        random.seed(seed)
        np.random.seed(seed)
        clutter = self.module("_base_task").Base_Task.get_cluttered_table
        if self._clutter_defaults is None:
            self._clutter_defaults = copy.deepcopy(clutter.__defaults__)
        clutter.__defaults__ = copy.deepcopy(self._clutter_defaults)

    def close(self, env: Any) -> None:
        """Drop a scene. A checkout's ``close_env`` keeps all of it, some 90 MB each."""
        env.close_env()
        if not self.is_package:
            for part in SCENE_PARTS:
                if hasattr(env, part):
                    setattr(env, part, None)


def use_planner(source: Source, planner: Optional[type]) -> None:
    """Decide which class RoboTwin's robot finds under the name ``CuroboPlanner``.

    A checkout's robot can't be imported where cuRobo can't, so the name has to be there as soon as its module is.

    Args:
        source: the task code.
        planner: the class to use; None: cuRobo's own.
    """

    def change(module: Any) -> None:
        found = getattr(module, "CuroboPlanner", None)
        if planner is not None:
            module.CuroboPlanner = planner
        elif found is None:
            raise ImportError("cuRobo can't be imported; the reason is in the log above")

    _after_import(source.name("robot.planner"), change)


def on_demand(planner: Any) -> type:
    """A subclass of a planner that is made when it is first used, not when it is asked for.

    cuRobo compiles and warms up for many seconds; a policy whose actions are joint positions never plans a path.
    """

    class OnDemand(planner):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.__dict__["_ordered"] = (args, kwargs)

        def __getattr__(self, name: str) -> Any:
            # Called for what the object doesn't have: at first, everything that its making puts there.
            ordered = self.__dict__.pop("_ordered", None)
            if ordered is None:
                raise AttributeError("{!r} object has no attribute {!r}".format(type(self).__name__, name))
            try:
                super().__init__(*ordered[0], **ordered[1])
            except BaseException:
                self.__dict__["_ordered"] = ordered
                raise
            self._begin_scene()
            return getattr(self, name)

        def _begin_scene(self) -> None:
            """Called when it has been made."""

    OnDemand.__name__ = planner.__name__
    return OnDemand


def kept(planner: Any) -> type:
    """A subclass of cuRobo's planner, ``on_demand``, whose objects are made once for the same arguments.

    Making one compiles and warms up for many seconds. RoboTwin keeps them for a process' life and lets their sampler
    run on from trial to trial; here the sampler starts anew with each scene, so that a plan doesn't depend on history.
    """
    made: Dict[str, Any] = {}

    class Kept(on_demand(planner)):  # type: ignore[misc]
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            key = repr([_plain(value) for value in args]) + repr(sorted((k, _plain(v)) for k, v in kwargs.items()))
            if key not in made:
                made[key] = object.__new__(cls)
            return made[key]

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            if "is_ordered" in self.__dict__:
                self._begin_scene()
            else:
                self.is_ordered = True
                super().__init__(*args, **kwargs)

        def _begin_scene(self) -> None:
            for name in ("motion_gen", "motion_gen_batch"):
                if name in self.__dict__:
                    self.__dict__[name].reset(reset_seed=True)

    Kept.__name__ = planner.__name__
    return Kept


def _plain(value: Any) -> Any:
    """A value's text without memory addresses: poses by their numbers."""
    if hasattr(value, "p") and hasattr(value, "q"):
        return [float(number) for number in [*value.p, *value.q]]
    return value


def standin_planner(path: str, class_name: str) -> type:
    """The stand-in planner, taking a checkout's ``yml_path`` as well as the package's ``robot_config``."""
    module = load_file("evalkit_planner", path)
    planner: Any = getattr(module, class_name)

    class Planner(planner):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            yml_path = kwargs.pop("yml_path", None)
            if yml_path is not None:
                kwargs["robot_config"] = _fill_in(load_yaml(yml_path), os.path.abspath(os.path.dirname(yml_path)))
            super().__init__(*args, **kwargs)

    Planner.__name__ = class_name
    return Planner


def _fill_in(config: Dict[str, Any], robot_folder: str) -> Dict[str, Any]:
    """Put the assets' root in the place of ``${ASSETS_PATH}``."""
    root = os.path.abspath(os.path.join(robot_folder, "..", "..", ".."))
    kinematics = config["robot_cfg"]["kinematics"]
    kinematics["urdf_path"] = str(kinematics["urdf_path"]).replace("${ASSETS_PATH}", root)
    return config


def load_yaml(path: str) -> Dict[str, Any]:
    """Content of a YAML file."""
    import yaml

    with open(path, encoding="utf-8") as stream:
        values: Dict[str, Any] = yaml.safe_load(stream)
    return values


def load_file(name: str, path: str) -> Any:
    """Import a file under a name of its own."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not os.path.isfile(path):
        raise ImportError("no module at {}".format(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _after_import(name: str, change: Callable[[Any], None]) -> None:
    """Call ``change`` with a module as soon as it has run, before anybody imports a name from it."""
    sys.meta_path.insert(0, _Finder(name, change))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, change: Callable[[Any], None]) -> None:
        self._name, self._change = name, change

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname != self._name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return None
        run, change = spec.loader.exec_module, self._change

        def run_and_change(module: Any) -> None:
            run(module)
            change(module)

        spec.loader.exec_module = run_and_change  # type: ignore[method-assign]
        return spec
