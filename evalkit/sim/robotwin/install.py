"""RoboTwin's own interpreter: a virtual environment with the task code and exactly the packages it needs.

Its packages (numpy 1, an old SciPy) never meet evalkit's. The folder counts as installed only once ``install.json``
is there, which is written last: an interrupted installation is found incomplete and made anew by the next call.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from evalkit.core.errors import HarnessError, UserError
from evalkit.core.files import write_json
from evalkit.core.hashing import file_digest
from evalkit.core.locations import home
from evalkit.core.lock import FileLock
from evalkit.sim.robotwin.layout import RoboTwinInstall

RUNTIME = "rlinf-robotwin-runtime==0.1.3"
LOCK_FILE = Path(__file__).with_name("requirements.lock")
PYTHONS = ((3, 10), (3, 12))
"""First and last Python version with wheels of mplib 0.2.1."""
_PIP_LIMIT_S = 3600.0
_CHECK_LIMIT_S = 300.0
_LOCK_POLL_S = 0.5
_IMPORTED = "numpy sapien mplib toppra scipy trimesh gymnasium transforms3d yaml PIL imageio h5py cv2"
_IMPORT_CODE = f"""
import importlib, importlib.util
for name in {_IMPORTED!r}.split():
    importlib.import_module(name)
if importlib.util.find_spec("robotwin.envs") is None:
    raise ImportError("robotwin.envs isn't there")
"""
_PACKAGES_CODE = """
import importlib.metadata, json
print(json.dumps({d.metadata["Name"].lower(): d.version for d in importlib.metadata.distributions()}, sort_keys=True))
"""
_VERSION_CODE = "import sys, venv, ensurepip; print(sys.version_info[0], sys.version_info[1])"
Progress = Callable[[str], None]


def folder() -> Path:
    """Where RoboTwin's interpreter is installed."""
    return home() / "robotwin"


def installed() -> RoboTwinInstall | None:
    """The installation, or None if there is none, it is incomplete, or it was made from other requirements."""
    record = read_record()
    if record is None or record["requirements_digest"] != file_digest(LOCK_FILE):
        return None
    python = Path(record["python"])
    if record["code"] != RUNTIME or not python.exists():
        return None
    return RoboTwinInstall(python=python, code=record["code"], layout=record["layout"])


def read_record() -> dict[str, Any] | None:
    """What ``install.json`` says, or None if it isn't there."""
    path = folder() / "install.json"
    if not path.is_file():
        return None
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def install(python: str | None = None, *, force: bool = False, progress: Progress | None = None) -> RoboTwinInstall:
    """Make RoboTwin's interpreter; does nothing if it is there.

    Args:
        python: interpreter to build on, Python 3.10 to 3.12: a path or a name on PATH. By default the running one if
            its version fits, else the first that fits of python3.11, python3.12, python3.10.
        force: make it anew even if it is there.
        progress: called with one line per step.

    Raises:
        UserError: ``python`` doesn't exist or has another version, or a compiler or Python's headers are missing.
        HarnessError: a package couldn't be installed or imported; names the reason and the log file.
    """
    say = progress or (lambda _line: None)
    base = _choose_python(python)
    lock = FileLock(folder() / ".install.lock")
    if not lock.acquire():
        say("another installation is running: waiting for it")
        while not lock.acquire():
            time.sleep(_LOCK_POLL_S)
    try:
        found = installed()
        if found is not None and not force and (python is None or _is_built_on(base)):
            return found
        return _make(base, say)
    finally:
        lock.release()


def list_packages(python: Path) -> dict[str, str]:
    """Name and version of every package in an interpreter.

    Raises:
        HarnessError: the interpreter doesn't run.
    """
    output = _run([str(python), "-I", "-c", _PACKAGES_CODE], _CHECK_LIMIT_S, "list its packages")
    packages: dict[str, str] = json.loads(output.splitlines()[-1])
    return packages


def _make(base: str, say: Progress) -> RoboTwinInstall:
    target = folder()
    (target / "install.json").unlink(missing_ok=True)
    environment = target / "venv"
    if environment.exists():
        shutil.rmtree(environment)
    say(f"making RoboTwin's interpreter in {environment}")
    _run([base, "-I", "-m", "venv", str(environment)], _CHECK_LIMIT_S, "make a virtual environment")
    python = environment / "bin" / "python"
    say("installing SAPIEN, mplib, toppra and what they need (about 500 MB)")
    _pip(python, "-r", str(LOCK_FILE))
    say(f"installing {RUNTIME}")
    # The runtime's own pins name another SAPIEN, torch and open3d, and a narrower range of Python versions.
    _pip(python, "--no-deps", "--ignore-requires-python", RUNTIME)
    say("importing them once")
    _run([str(python), "-I", "-c", _IMPORT_CODE], _CHECK_LIMIT_S, "import RoboTwin's packages")
    record = {
        "schema": 1,
        "python": str(python),
        "built_on": os.path.realpath(base),
        "code": RUNTIME,
        "layout": "pypi",
        "requirements_digest": file_digest(LOCK_FILE),
        "packages": list_packages(python),
    }
    write_json(target / "install.json", record)
    return RoboTwinInstall(python=python, code=RUNTIME, layout="pypi")


def _is_built_on(base: str) -> bool:
    record = read_record()
    return record is not None and record["built_on"] == os.path.realpath(base)


def _choose_python(python: str | None) -> str:
    if python is not None:
        program = shutil.which(python)
        if program is None:
            raise UserError(f"--python {python}: no such program")
        version = _version(program)
        if version is None:
            raise UserError(f"--python {python}: it doesn't run, or lacks the venv module")
        if not _fits(version):
            raise UserError(f"--python {python} is Python {_dotted(version)}; RoboTwin's packages need {_range()}")
        return program
    for name in (getattr(sys, "_base_executable", sys.executable), "python3.11", "python3.12", "python3.10"):
        program = shutil.which(name)
        if program and (version := _version(program)) and _fits(version):
            return program
    raise UserError(f"no Python {_range()} with the venv module found: install one and give its path with --python")


def _version(program: str) -> tuple[int, int] | None:
    answer = subprocess.run([program, "-I", "-c", _VERSION_CODE], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        return None
    major, minor = answer.stdout.split()
    return int(major), int(minor)


def _fits(version: tuple[int, int]) -> bool:
    return PYTHONS[0] <= version <= PYTHONS[1]


def _range() -> str:
    return f"{_dotted(PYTHONS[0])} to {_dotted(PYTHONS[1])}"


def _dotted(version: Iterable[int]) -> str:
    return ".".join(map(str, version))


def _pip(python: Path, *arguments: str) -> None:
    command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-input", *arguments]
    _run(command, _PIP_LIMIT_S, f"install {arguments[-1]}")


def _run(command: list[str], limit_s: float, purpose: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False, env=environment)
    except subprocess.TimeoutExpired as error:
        raise HarnessError(f"RoboTwin's interpreter: couldn't {purpose} within {limit_s:.0f} s") from error
    if answer.returncode == 0:
        return answer.stdout
    log = folder() / "install.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(f"$ {' '.join(command)}\n{answer.stdout}\n{answer.stderr}")
    raise _explain(answer.stdout + answer.stderr, answer.returncode, purpose, log)


def _explain(output: str, code: int, purpose: str, log: Path) -> Exception:
    """The error for a failed command, with its remedy where the cause is known."""
    again = "then run `evalkit robotwin install` again"
    if "Python.h" in output:
        return UserError(f"toppra is built from source and needs Python's headers: install python3-dev, {again}")
    if "toppra" in output and not _has_compiler():
        return UserError(f"toppra is built from source and needs a C++ compiler: install g++, {again}")
    if code < 0:
        return HarnessError(f"RoboTwin's interpreter: couldn't {purpose}: killed by signal {-code} (log: {log})")
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.startswith("WARNING")]
    errors = [line for line in lines if re.match(r"(ERROR: (?!Ignored)|\w*Error\b)", line)]
    reason = (errors or lines or ["no message"])[-1][:300]
    return HarnessError(f"RoboTwin's interpreter: couldn't {purpose}: {reason} (log: {log})")


def _has_compiler() -> bool:
    names = (os.environ.get("CXX"), os.environ.get("CC"), "c++", "g++", "clang++")
    return any(name and shutil.which(name.split()[0]) for name in names)
