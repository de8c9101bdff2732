"""Every command of Homeport that a page names exists, with the options that it names, also where no test runs it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from homeport.cli.main import group

ROOT = Path(__file__).resolve().parents[2]
# cli.md and performance.md speak of all options, and of programs of other versions.
PAGES = [
    str(page.relative_to(ROOT))
    for page in [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/**/*.md"))]
    if page.name not in ("cli.md", "performance.md")
]
_FENCED = re.compile(r"^```(?:console|bash|helm)?\n(.*?)^```", re.S | re.M)
_INDENTED = re.compile(r"^    (homeport .*)$", re.M)
_INLINE = re.compile(r"`(homeport [^`]+)`")
_OWN = re.compile(r"^(?:\$ )?(?:! )?(homeport .*)$", re.M)


def named(text: str) -> Iterator[str]:
    """Commands in blocks and in the text, one line each."""
    for block in _FENCED.findall(text):
        yield from _OWN.findall(block.replace("\\\n", " "))
    plain = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    yield from _INDENTED.findall(plain.replace("\\\n", " "))
    yield from _INLINE.findall(plain)


def trouble(line: str) -> str:
    """What the command line does not know of a command; empty if it knows all of it."""
    own = re.split(r" (?:#|>|\||&&|;)", re.sub(r"\$\([^)]*\)", "VALUE", line))[0]
    words, path = own.split()[1:], ["homeport"]
    command: click.Command = group
    context = click.Context(group, info_name="homeport")
    known: set[str] = {"--help", "-h"}
    for word in words:
        if word == "--":
            break
        if word.startswith("-"):
            known |= {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
            option = re.split(r"[=\[]", word)[0]
            if option not in known:
                return f"{line}: {' '.join(path)} has no option {option}"
        elif isinstance(command, click.Group) and re.fullmatch(r"[a-z][a-z-]*", word):
            below = command.get_command(context, word)
            if below is None:
                return f"{line}: {' '.join(path)} has no command {word}"
            command = below
            path.append(word)
    return ""


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_options_of_a_page_exist(page: str) -> None:
    assert not [text for text in map(trouble, named((ROOT / page).read_text())) if text]


def test_what_does_not_exist_is_found() -> None:
    page = "Run `homeport up --simm`.\n\n    homeport rollout undue\n\n```console\n$ homeport status -o json\n```\n"
    assert [trouble(line) for line in named(page)] == [
        "",
        "homeport rollout undue: homeport rollout has no command undue",
        "homeport up --simm: homeport up has no option --simm",
    ]
