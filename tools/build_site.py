"""Builds the documentation site: `build_site.py [FOLDER]` (default: build/site). A broken link or anchor fails it.

The navigation is docs/index.md: its headings and lists of links, in their order. A page that is not linked there is
added to the section of its folder. Files outside of docs/ that pages link to, such as examples, are copied too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
_SECTIONS = {
    "tutorial": "Tutorials",
    "howto": "How-to guides",
    "reference": "Reference",
    "explanation": "Explanation",
    "decisions": "Decisions",
}
_ROOT_PAGES = (ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md")
_LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)")
_ENTRY = re.compile(r"- \[([^\]]+)\]\(([^)]+\.md)\)")
Entry = dict[str, Any]


def navigation(index: str) -> list[Entry]:
    """Sections of the site in the order of the index, with the pages that it does not name at the end of theirs."""
    sections: dict[str, list[Entry]] = {}
    below: list[Entry] = []
    for line in index.splitlines():
        if line.startswith("## "):
            below = sections.setdefault(line.removeprefix("## "), [])
            top = below
        elif line.startswith("### "):
            below = []
            top.append({line.removeprefix("### "): below})
        elif entry := _ENTRY.fullmatch(line):
            below.append({entry[1]: entry[2]})
    for page in sorted(DOCS.glob("*/*.md")):
        name = str(page.relative_to(DOCS))
        if f"]({name})" not in index:
            sections[_SECTIONS[page.parent.name]].append({title(page): name})
    sections["Project"] = [{title(page): page.name} for page in _ROOT_PAGES]
    return [{"Home": "index.md"}, *({name: pages} for name, pages in sections.items())]


def title(page: Path) -> str:
    return page.read_text().partition("\n")[0].removeprefix("# ")


def stage(folder: Path) -> None:
    """A copy of docs/ in which links to other files of the repository lead to copies of these files."""
    for source in [*sorted(DOCS.rglob("*")), *_ROOT_PAGES]:
        if source.is_file():
            _copy(source, folder)


def place(source: Path) -> Path:
    """Where a file of the repository is in the site."""
    if source.is_relative_to(DOCS):
        return source.relative_to(DOCS)
    return Path(source.name) if source in _ROOT_PAGES else Path("files", source.relative_to(ROOT))


def _copy(source: Path, folder: Path) -> None:
    target = folder / place(source)
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix == ".md":
        target.write_text(_LINK.sub(partial(_relinked, page=source, folder=folder), source.read_text()))
    else:
        shutil.copyfile(source, target)


def _relinked(link: re.Match[str], page: Path, folder: Path) -> str:
    wanted = (page.parent / link[1]).resolve()
    if not wanted.is_file():
        return link[0]
    if place(wanted).parts[0] == "files":
        _copy(wanted, folder)
    return f"]({os.path.relpath(place(wanted), place(page).parent)}{link[2] or ''})"


def build(site: Path) -> int:
    work = site.parent / f"{site.name}-source"
    for each in (site, work):
        shutil.rmtree(each, ignore_errors=True)
    stage(work / "docs")
    settings: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    settings |= {"docs_dir": "docs", "site_dir": "site", "nav": navigation((DOCS / "index.md").read_text())}
    (work / "mkdocs.yml").write_text(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
    zensical = [str(Path(sys.executable).with_name("zensical")), "build", "--strict", "--clean", "-f", "mkdocs.yml"]
    code = subprocess.run(zensical, cwd=work).returncode
    if code == 0:
        (work / "site").rename(site)
    return code


def main() -> int:
    site = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/site").resolve()
    code = build(site)
    if code == 0:
        print(f"the site is in {site}: open {site / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
