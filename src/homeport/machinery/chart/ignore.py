"""Rules of .helmignore: which files of a folder are not part of the chart."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from homeport.machinery.chart.error import ChartError
from homeport.machinery.chart.pattern import BadPattern, match

NAME = ".helmignore"
_ALWAYS = "templates/.?*"


@dataclass(frozen=True, slots=True)
class _Rule:
    matches: Callable[[str], bool]
    negated: bool
    folders_only: bool


def without_ignored(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files of a chart's folder that belong to the chart. Archives are taken as they are. Raises ChartError."""
    rules = _rules(files.get(NAME, b""))
    known: dict[str, bool] = {}
    return {path: content for path, content in files.items() if not _ignored(path, rules, known)}


def _ignored(path: str, rules: list[_Rule], known: dict[str, bool]) -> bool:
    """A folder that is ignored takes everything inside with it."""
    folder = posixpath.dirname(path)
    while folder:
        if folder not in known:
            known[folder] = _hit(folder, rules, is_folder=True)
        if known[folder]:
            return True
        folder = posixpath.dirname(folder)
    return _hit(path, rules, is_folder=False)


def _hit(path: str, rules: list[_Rule], *, is_folder: bool) -> bool:
    """A negated rule ignores everything that it does not match: that is how Helm reads it."""
    for rule in rules:
        if rule.negated:
            if (rule.folders_only and not is_folder) or not rule.matches(path):
                return True
        elif (is_folder or not rule.folders_only) and rule.matches(path):
            return True
    return False


def _rules(content: bytes) -> list[_Rule]:
    lines = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").split("\n")
    rules = [_rule(line.strip(), number) for number, line in enumerate(lines, 1) if _counts(line.strip())]
    return [*rules, _rule(_ALWAYS, 0)]


def _counts(line: str) -> bool:
    return bool(line) and not line.startswith("#")


def _rule(line: str, number: int) -> _Rule:
    if "**" in line:
        raise ChartError(f"{NAME} line {number}: {line!r}: ** is not supported; name the folder instead")
    text = line.removeprefix("!")
    folders_only, text = text.endswith("/"), text.removesuffix("/")
    try:
        matches = match(text.removeprefix("/"))
    except BadPattern as error:
        raise ChartError(f"{NAME} line {number}: {line!r} is not a valid pattern: {error}") from None
    if "/" not in text:
        whole = matches
        return _Rule(lambda path: whole(posixpath.basename(path)), line.startswith("!"), folders_only)
    return _Rule(matches, line.startswith("!"), folders_only)
