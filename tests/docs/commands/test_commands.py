"""What holds for the commands of all pages, and how their tests fail."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.alone import LEFT_BEHIND
from docs.commands import test_commands_first, test_commands_second, test_commands_third
from docs.commands.page import PAGES, kubectl_folder
from docs.reader import ROOT, Reader

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(330)]


def test_every_page_is_run() -> None:
    modules = (test_commands_first, test_commands_second, test_commands_third)
    shares = [each.test_the_commands_of_a_page_work.pytestmark[0].args[1] for each in modules]
    assert sorted(page for pages in shares for page in pages) == PAGES


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
