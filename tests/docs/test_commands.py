"""The commands of the documentation are run, in order, page by page."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from capikit import clusterctl
from docs.alone import LEFT_BEHIND
from docs.reader import ROOT, Reader
from realkube import find_binaries

# Every page that shows commands: none can be forgotten.
PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    if "```console\n" in page.read_text()
)

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(330)]


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


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work(page: str, tmp_path: Path) -> None:
    text = commands(ROOT / page)
    assert text.startswith("source .venv/bin/activate\n"), "the reader needs homeport on the PATH first"
    assert "homeport up" in text
    programs = [Path(kubectl_folder()) / "kubectl"]
    if re.search(r"^clusterctl ", text, re.M):
        programs.append(Path(clusterctl_folder()) / "clusterctl")
    reader = Reader.make(tmp_path, programs)
    # `!` in front of a command expects it to fail; plain `set -e` would not notice when it does not.
    done = reader.run(re.sub(r"^! (.*)$", r"if \1; then exit 9; fi", text, flags=re.M))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert reader.simulated_machines() == [], "the page leaves a cluster behind"


def test_a_page_that_leaves_a_plane_running_fails(tmp_path: Path) -> None:
    reader = Reader.make(tmp_path, [])
    done = reader.run("source .venv/bin/activate\nhomeport up --detach\n")
    assert done.returncode == LEFT_BEHIND, done.stdout + done.stderr
    assert "left running: " in done.stderr
    assert "homeport up" in done.stderr


def test_a_page_that_needs_a_variable_of_the_tests_fails(tmp_path: Path) -> None:
    done = Reader.make(tmp_path, []).run("echo $HOMEPORT_DATA\n")
    assert done.returncode != 0
    assert "HOMEPORT_DATA: unbound variable" in done.stderr


def test_no_page_names_what_only_tests_export() -> None:
    for page in PAGES:
        assert not re.search(r"\$HOMEPORT_\w+", (ROOT / page).read_text()), page


def test_the_recording_of_the_readme_shows_what_the_program_prints() -> None:
    kubectl_folder()
    tool = [sys.executable, str(ROOT / "tools/record_session.py"), "--check"]
    done = subprocess.run(tool, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
