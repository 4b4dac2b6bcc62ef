"""Every worked example in the guides to policies runs as it is printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from evalkit.policy.profile import load_profile, profile_names
from evalkit.policy.registry import adapter_names, load_adapter

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted((DOCS / "policies").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = [page for page in PAGES if "## Worked example" in page.read_text()]


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text())


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.stem)
def test_worked_examples_run(page, tmp_path):
    scripts = []
    for language, text in blocks(page):
        first, _, rest = text.partition("\n")
        if first.startswith("# file: "):
            path = tmp_path / first.removeprefix("# file: ")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(rest)
        elif language == "sh":
            scripts.append(text)
    (tmp_path / "bin").mkdir()
    for name, module in (("evalkit", "-m evalkit.cli.main "), ("python", "")):
        program = tmp_path / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {module}"$@"\n')
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    assert scripts
    for script in scripts:
        answer = subprocess.run(
            ["bash", "-emc", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240,
            check=False,
        )  # fmt: skip
        assert answer.returncode == 0, answer.stdout + answer.stderr
        assert "not ready" not in answer.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_yaml_in_the_guides_is_yaml_and_names_what_exists(page):
    for language, text in blocks(page):
        if language != "yaml":
            continue
        values = yaml.safe_load(text)
        if "adapter" in values:
            assert values["adapter"] in adapter_names()
            assert hasattr(load_adapter(values["adapter"]), "identity")
            known = load_adapter(values["adapter"])
            allowed = {"adapter", "name", "card", "ensemble", *known._REQUIRED, *known._OPTIONAL}
            assert set(values) <= allowed
            assert set(known._REQUIRED) <= set(values)
        elif {"robot", "request", "answer"} <= set(values):
            assert load_profile(values, name=page.stem, folder=page.parent).request


def test_every_form_has_a_guide_and_every_profile_is_named():
    text = "".join(page.read_text() for page in PAGES) + (DOCS / "policies.md").read_text()
    forms = [name for name in adapter_names() if hasattr(load_adapter(name), "identity")]
    assert [name for name in forms if f"adapter: {name}" not in text] == []
    assert [name for name in profile_names() if name not in text] == []


def test_the_guide_of_conversions_names_every_step():
    from evalkit.policy.conversion import TRANSFORMS
    from evalkit.policy.pictures import _CHOICES

    text = (DOCS / "policies/conversions.md").read_text()
    choices = [*_CHOICES, *(value for values in _CHOICES.values() for value in values)]
    assert [name for name in choices if f"`{name}`" not in text] == []
    assert [name for name in TRANSFORMS if f"| `{name}` |" not in text] == []
