"""Imports go one way. The table is the architecture; `docs/architecture.md` explains it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

MAY_IMPORT = {
    "core": set(),
    "provenance": {"core"},
    "policy": {"core"},
    "serve": {"core", "policy"},
    "protocol": {"core", "policy", "provenance"},
    "store": {"core"},
    "standin": {"core"},
    "sim": {"core", "standin"},
    "episode": {"core", "policy", "sim"},
    "plan": {"core", "protocol"},
    "data": {"core", "provenance"},
    "pool": {"core", "data", "episode", "plan", "policy", "protocol", "sim", "store"},
    "aggregate": {"core", "protocol", "provenance", "store"},
    "report": {"aggregate", "core", "protocol", "provenance", "store"},
    "drill": {"aggregate", "core", "plan", "policy", "pool", "protocol", "report", "sim", "store"},
    "train": {"core", "data", "policy", "provenance"},
    "policies": {"core", "data", "policy", "train"},
}
"""Package → packages it may import, itself apart. `cli` may import all of them."""


def imported_modules(source: str, module: str) -> set[str]:
    """Absolute names of everything a module imports, at any depth, type-checking blocks included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = ".".join(module.split(".")[: -node.level])
                base = f"{above}.{base}".rstrip(".")
            found.add(base)
            found.update(f"{base}.{name.name}" for name in node.names)
    return found


def package_of(module: str) -> str | None:
    """`core` for `evalkit.core.trial`; None for what isn't ours and for `evalkit` itself."""
    first, *rest = module.split(".")
    if first == "policies":
        return "policies"
    folders = {path.name for path in (ROOT / "evalkit").iterdir() if path.is_dir()}
    return rest[0] if first == "evalkit" and rest and rest[0] in folders else None


def violations(module: str, source: str) -> Iterator[str]:
    own = package_of(module)
    if own is None or own == "cli":
        return
    for name in sorted(imported_modules(source, module)):
        other = package_of(name)
        if other is not None and other != own and other not in MAY_IMPORT[own]:
            yield f"{module} imports {name}"


def modules() -> Iterator[tuple[str, Path]]:
    for folder in ("evalkit", "policies"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def test_every_import_goes_an_allowed_way():
    found = [line for module, path in modules() for line in violations(module, path.read_text())]
    assert not found, "\n".join(found)


def test_every_package_is_in_the_table():
    folders = {path.parent.name for path in (ROOT / "evalkit").glob("*/__init__.py")}
    assert folders == set(MAY_IMPORT) - {"policies"} | {"cli"}


def test_nothing_imports_the_command_line():
    importers = [
        module
        for module, path in modules()
        if package_of(module) != "cli"
        and "cli" in {package_of(name) for name in imported_modules(path.read_text(), module)}
    ]
    assert importers == []


def test_the_worker_is_self_contained():
    folder = ROOT / "evalkit/sim/robotwin/worker"
    found = [
        f"{path.name}: {name}"
        for path in sorted(folder.glob("*.py"))
        for name in imported_modules(path.read_text(), "evalkit.sim.robotwin.worker.x")
        if name.startswith("evalkit") and not name.startswith("evalkit.sim.robotwin.worker")
    ]
    assert found == []


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        ("evalkit.core.x", "import evalkit.sim.contract", ["evalkit.core.x imports evalkit.sim.contract"]),
        ("evalkit.store.x", "def f():\n    from evalkit import pool", ["evalkit.store.x imports evalkit.pool"]),
        ("evalkit.aggregate.x", "from ..sim import fake", ["evalkit.aggregate.x imports evalkit.sim"]),
        ("evalkit.pool.x", "from evalkit.store.run import Run\nimport numpy", []),
    ],
)
def test_the_rule_itself_tells_good_from_bad(module, source, expected):
    assert list(violations(module, source))[: len(expected) or None] == expected


def test_the_policys_process_is_self_contained():
    folder = ROOT / "evalkit/policy/worker"
    found = [
        f"{path.name}: {name}"
        for path in sorted(folder.glob("*.py"))
        for name in imported_modules(path.read_text(), "evalkit.policy.worker.x")
        if name.startswith("evalkit")
    ]
    assert found == []


@pytest.mark.parametrize("packages", [("plan", "store", "aggregate", "report")])
def test_results_are_read_without_simulator_ray_or_torch(packages):
    files = [module for module, path in modules() if package_of(module) in packages and path.name != "__init__.py"] + [
        f"evalkit.{package}" for package in packages
    ]
    code = f"""
import importlib, sys
for name in {files!r}:
    importlib.import_module(name)
print(*sorted({{"sapien", "ray", "torch"}} & set(sys.modules)))
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert answer.stdout.strip() == ""
