"""The commands of the documentation are run, in order, page by page."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from capikit import clusterctl
from realkube import find_binaries

ROOT = Path(__file__).resolve().parents[2]
# Every page that shows commands: none can be forgotten.
PAGES = sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md") if "```console\n" in page.read_text())

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
    # Several tests run at once, and each needs the well-known port: on a loopback address of its own.
    own = f"127.{random.randrange(2, 60)}.{random.randrange(256)}.{random.randrange(1, 255)}"
    text = commands(ROOT / page).replace("https://127.0.0.1:9440", f"https://{own}:9440")
    assert "homeport up" in text
    data = tmp_path / "data"
    folders = [str(Path(sys.executable).parent), kubectl_folder(), os.environ["PATH"]]
    if re.search(r"^clusterctl ", text, re.M):
        folders.insert(0, clusterctl_folder())
    path = os.pathsep.join(folders)
    environment = {
        "CLUSTERCTL_DISABLE_VERSIONCHECK": "true",  # it would ask the network for a newer one
        "PATH": path,
        "HOME": str(tmp_path),
        "HOMEPORT_DATA": str(data),
        "HOMEPORT_ROOT": str(ROOT),
        "HOMEPORT_LISTEN": "127.0.0.1:0",
        "HOMEPORT_SIM_LISTEN": f"{own}:9440",
    }
    try:
        # `!` in front of a command expects it to fail; plain `set -e` would not notice when it does not.
        script = "set -euo pipefail\n" + re.sub(r"^! (.*)$", r"if \1; then exit 9; fi", text, flags=re.M)
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    finally:
        for each in {data, *(found.parent for found in tmp_path.glob("*/kubeconfig"))}:
            down = [sys.executable, "-m", "homeport", "down", "--data", str(each)]
            subprocess.run(down, env=environment, capture_output=True, timeout=60)


def test_every_link_leads_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def test_the_first_commands_of_the_readme_show_what_it_says(tmp_path: Path) -> None:
    block = next(each for each in re.findall(r"^```\n(.*?)^```", (ROOT / "README.md").read_text(), re.S | re.M))
    shown = block.removeprefix("$ make run\n")
    started, _, after = shown.partition("\n\n$ export KUBECONFIG=~/.homeport/kubeconfig\n$ kubectl get namespaces\n")
    assert "homeport up --sim\n" in (ROOT / "Makefile").read_text()
    home = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "HOMEPORT_LISTEN": "127.0.0.1:0",
        "PYTHONUNBUFFERED": "1",
    }
    command = [sys.executable, "-m", "homeport", "up", "--sim"]
    process = subprocess.Popen(command, env=home, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in started.splitlines()]
        assert normal("".join(lines), str(tmp_path)) == normal(started + "\n", "/home/you")
        kubectl = [f"{kubectl_folder()}/kubectl", "--kubeconfig", str(tmp_path / ".homeport" / "kubeconfig")]
        wait = [*kubectl, "wait", "--for=create", "namespace/homeport-system", "--timeout=20s"]
        subprocess.run(wait, check=True, env=home, timeout=60, capture_output=True)
        got = subprocess.run([*kubectl, "get", "namespaces"], env=home, capture_output=True, text=True, timeout=60)
        assert normal(got.stdout, "") == normal(after, "")
    finally:
        process.terminate()
        process.communicate(timeout=30)


def normal(text: str, home: str) -> str:
    """Without what differs from run to run: ports and ages."""
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text.replace(home, "HOME") if home else text)
    return re.sub(r"\b\d+s\b", "AGE", text)
