"""The documentation site builds without a broken link, has every page in its navigation, and loads nothing from elsewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
_LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)")


def build(clone: Path, site: Path) -> subprocess.CompletedProcess[str]:
    tool = [sys.executable, str(clone / "tools/build_site.py"), str(site)]
    return subprocess.run(tool, capture_output=True, text=True, timeout=280)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_in_the_site_and_in_its_navigation(site: Path) -> None:
    home = (site / "index.html").read_text()
    for page in ROOT.glob("docs/*/*.md"):
        name = str(page.relative_to(ROOT / "docs").with_suffix(".html"))
        assert (site / name).is_file(), name
        assert f'href="./{name}"' in home, f"{name} is not in the navigation"


def test_examples_that_pages_link_to_are_in_the_site(site: Path) -> None:
    assert (site / "files/examples/02-cluster/cluster.yaml").is_file()
    page = (site / "tutorial/first-cluster.html").read_text()
    assert 'href="../files/examples/02-cluster/cluster.yaml"' in page


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    loaded = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*(?:src|href)=["']?((?:https?:)?//[^"'> ]+)""")
    found = {(page.name, each) for page in site.rglob("*.html") for each in loaded.findall(page.read_text())}
    assert not found


@pytest.mark.parametrize(
    ("good", "bad"),
    [("../howto/heal-a-cluster.md", "../howto/cure-a-cluster.md"), ("#with-a-real-prism-central", "#with-a-toy")],
)
def test_a_broken_link_fails_the_build(tmp_path: Path, good: str, bad: str) -> None:
    for part in ("docs", "examples", "config/chart", "config/systemd", "config/observability"):
        shutil.copytree(ROOT / part, tmp_path / part)
    (tmp_path / "tools").mkdir()
    for part in ("mkdocs.yml", "CHANGELOG.md", "CONTRIBUTING.md", "Containerfile", "tools/build_site.py"):
        shutil.copyfile(ROOT / part, tmp_path / part)
    page = tmp_path / "docs/tutorial/first-cluster.md"
    assert good in page.read_text()
    page.write_text(page.read_text().replace(good, bad))
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert "first-cluster.md" in done.stdout + done.stderr


def anchors(page: Path) -> set[str]:
    """As forges and the site derive them from headings; code blocks have none."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    headings = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", each) for each in re.findall(r"^#+ (.*)$", text, re.M)]
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_and_anchor_leads_somewhere(page: Path) -> None:
    """Also for readers in a forge or an editor, without the site."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    for target, anchor in _LINK.findall(re.sub(r"`[^`\n]*`", "", text)):
        wanted = page.parent / target if target else page
        assert wanted.exists(), f"no file {target}"
        if anchor:
            assert anchor in anchors(wanted), f"no heading for {target}#{anchor}"
