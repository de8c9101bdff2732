"""The commands of the documentation are run, page by page: the second of several shares."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.commands.page import run_page, share

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(330)]


@pytest.mark.parametrize("page", share(1))
def test_the_commands_of_a_page_work(page: str, tmp_path: Path) -> None:
    run_page(page, tmp_path)
