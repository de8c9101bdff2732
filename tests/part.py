"""The two parts into which `tools/suite` divides all test modules, by what they import.

Modules that need programs which tools/*/build makes wait until these are built, and then mostly for the programs. All others
need only Python, and mostly compute.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
PROGRAMS: Final = "programs"
ALONE: Final = "alone"

_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([\w.]+))", re.M)
_MAKES = re.compile(r"""tools/\w+/(?:build|install)|["']tools["'] / ["']\w+["'] / ["'](?:build|install)["']""")


def part_of(module: Path) -> str:
    """The programs that a conftest.py looks for are needed by all modules below it."""
    conftests = (folder / "conftest.py" for folder in module.parents if HERE in (folder, *folder.parents))
    return PROGRAMS if any(_reaches(each) for each in (module, *conftests) if each.exists()) else ALONE


@functools.cache
def _reaches(module: Path) -> bool:
    """Whether the module, or one that it imports, looks for a program."""
    seen: set[Path] = set()
    ahead = [module]
    while ahead:
        file = ahead.pop()
        if file in seen:
            continue
        seen.add(file)
        text = file.read_text()
        if _MAKES.search(text):
            return True
        ahead += _imported(text)
    return False


def _imported(text: str) -> Iterator[Path]:
    """Modules of the tests alone: the package itself looks for no such program."""
    for found in _IMPORT.finditer(text):
        package, names, plain = found.groups()
        start = HERE.joinpath(*(package or plain).split("."))
        members = [start / name for name in re.findall(r"\w+", names or "")]
        for path in (start, *members):
            yield from (file for file in (path.with_suffix(".py"), path / "__init__.py") if file.exists())
