"""Runs the commands of one page of the documentation, in order, as a reader would."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from capikit import clusterctl
from docs.reader import ROOT, Reader
from realkube import find_binaries

# Every page that shows commands: none can be forgotten.
PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    if "```console\n" in page.read_text()
)
_MODULES = 3


def share(number: int) -> list[str]:
    """The pages of one test module. There are several, because the tests of a module run one after the other."""
    return PAGES[number::_MODULES]


def commands(page: Path) -> str:
    """The text of the console blocks: `$ ` starts a command, other lines continue it."""
    lines: list[str] = []
    for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.S | re.M):
        lines += [line.removeprefix("$ ") for line in block.splitlines()]
    return "\n".join(lines) + "\n"


def kubectl_folder() -> str:
    found = find_binaries()
    if not isinstance(found, str):
        return str(found["kubectl"].parent)
    there = shutil.which("kubectl")
    if there is None:
        pytest.skip(f"no kubectl on PATH, and {found}")
    return str(Path(there).parent)


def clusterctl_folder() -> str:
    found = clusterctl.find()
    if isinstance(found, str):
        pytest.skip(found)
    return str(found.parent)


def run_page(page: str, folder: Path) -> None:
    text = commands(ROOT / page)
    assert text.startswith("source .venv/bin/activate\n"), "the reader needs homeport on the PATH first"
    assert "homeport up" in text
    programs = [Path(kubectl_folder()) / "kubectl"]
    if re.search(r"^clusterctl ", text, re.M):
        programs.append(Path(clusterctl_folder()) / "clusterctl")
    reader = Reader.make(folder, programs)
    # `!` in front of a command expects it to fail; plain `set -e` would not notice when it does not.
    done = reader.run(re.sub(r"^! (.*)$", r"if \1; then exit 9; fi", text, flags=re.M))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert reader.simulated_machines() == [], "the page leaves a cluster behind"
