"""Messages and documentation use plain, present-day English: phrases that make readers stop do not come back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "homeport"

# Each pattern with what to write instead.
PATTERNS = {
    r"(?<![Tt]here )\b(?:is|are|was|were) no (?!longer\b|more\b)[A-Za-z]": "is not a valid ..., there is no ...",
    r"\b(?:is|are|was|were|be|been) told\b": "is reported, reports",
    r"\bby and by\b": "gradually, one at a time",
    r"\banew\b": "again",
    r"\bshall\b": "must, should, desired",
    r"\bof ours\b": "of Homeport, or nothing",
    r"\b[Nn]obody\b": "no controller, no user, never",
    r"\b[Ww]hoever\b": "the controller that, the user that",
    r"\bany more\b": "no longer",
    r"\bfor ever\b": "forever",
    r", for (?:it|they|then|there|nothing|without|otherwise|machines)\b": "because",
    r"\bis heard\b": "is reported",
    r"(?<![Tt]here )\b(?:is|are) none\b": "is not a valid ...",
    r"\binto its hands\b": "adopts",
    r"\bwith(?:out)? a trace\b": "completely",
    r"\ball the same\b": "still, anyway",
    r"\bof yours\b": "your own",
    r"\bgoes on\b": "continues",
}
# Pages that quote names of tests: text in backticks is not prose there.
QUOTING = ("docs/reference/nutanix-coverage.md",)


def phrases(text: str) -> Iterator[str]:
    for pattern, instead in PATTERNS.items():
        for found in re.finditer(pattern, text):
            around = text[max(0, found.start() - 40) : found.end() + 40].replace("\n", " ")
            yield f"...{around}...: write {instead!r}"


def literals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """String literals that a person may read. Docstrings are for developers, except those that become help texts."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def help_texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The docstrings of functions with a decorator that makes them a command."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any("command" in ast.unparse(d) for d in node.decorator_list):
            yield node.lineno, ast.get_docstring(node) or ""


@pytest.mark.parametrize("package", sorted(path.name for path in SOURCE.iterdir() if path.is_dir()))
def test_messages_of_the_program_are_plain(package: str) -> None:
    found = []
    for path in sorted((SOURCE / package).rglob("*.py")):
        tree = ast.parse(path.read_text())
        texts = [*literals(tree), *(help_texts(tree) if package == "cli" else ())]
        found += [f"{path.relative_to(ROOT)}:{line}: {each}" for line, text in texts for each in phrases(text)]
    assert not found, "\n".join(found)


def pages() -> list[str]:
    found = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")]
    return sorted(str(path.relative_to(ROOT)) for path in found)


@pytest.mark.parametrize("page", pages())
def test_pages_use_plain_language(page: str) -> None:
    text = re.sub(r"`[^`\n]*`", "", (ROOT / page).read_text()) if page in QUOTING else (ROOT / page).read_text()
    assert not list(phrases(text)), "\n".join(phrases(text))


def test_the_patterns_find_what_they_name() -> None:
    for bad in (
        "'x' is no version",
        "errors are told",
        "it is made anew",
        "nobody answers",
        "late, for there is no time",
    ):
        assert list(phrases(bad)), bad
    for good in ("it is no longer served", "there is no version", "look for there", "is not a version"):
        assert not list(phrases(good)), good
