"""The commands of the documentation are run, in order, page by page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from realkube import find_binaries

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    "docs/tutorial/first-steps.md",
    "docs/howto/backup.md",
    "docs/howto/access.md",
    "docs/howto/controller.md",
]

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]


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


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work(page: str, tmp_path: Path) -> None:
    text = commands(ROOT / page)
    assert "homeport up" in text
    data = tmp_path / "data"
    path = os.pathsep.join([str(Path(sys.executable).parent), kubectl_folder(), os.environ["PATH"]])
    environment = {
        "PATH": path,
        "HOME": str(tmp_path),
        "HOMEPORT_DATA": str(data),
        "HOMEPORT_ROOT": str(ROOT),
        "HOMEPORT_LISTEN": "127.0.0.1:0",
    }
    try:
        # `!` in front of a command expects it to fail; plain `set -e` would not notice when it does not.
        script = "set -euo pipefail\n" + re.sub(r"^! (.*)$", r"if \1; then exit 9; fi", text, flags=re.M)
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=150
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    finally:
        subprocess.run([sys.executable, "-m", "homeport", "down"], env=environment, capture_output=True, timeout=60)


def test_every_link_of_the_readme_leads_somewhere() -> None:
    for name in ["README.md", "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / name).read_text()):
            assert (ROOT / target).exists(), f"{name} links to {target}"
