"""Writes pages of docs/reference: cli.md with the help of every command, and fields-GROUP.md with every kind and field.

With --check nothing is written; the exit code says whether the pages are what would be.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import kind_page

from homeport.app.components import COMPONENTS
from homeport.cli.main import group

FOLDER = Path(__file__).resolve().parent.parent / "docs/reference"
_WIDTH = 120
_HEAD = """\
# The command line

`make gen` writes this page from the program itself. `HOMEPORT_DATA` and `HOMEPORT_LISTEN` set the defaults of
`--data` and `--listen`.

Which plane a command is about: that of `--kubeconfig`, else of `--data`, else of `$KUBECONFIG` (with its
current context or that of `--context`, as for kubectl), else the one on `~/.homeport`. `homeport status` names
the one that it shows; other commands print a note if `$KUBECONFIG` is used while a different plane runs on the
default directory. If `$KUBECONFIG` names a cluster without Homeport, `homeport status` shows the plane on the
default directory and says so.

| exit code | meaning |
|---|---|
| 0 | the command succeeded |
| 1 | it failed: the message on standard error has the cause and the cure. `homeport doctor`: something is wrong |
| 2 | an option or argument is wrong, and nothing was done |
| 3 | `homeport status` only: no plane runs on this data directory |
| others | `homeport ssh` only: the exit code of ssh |
"""


def render() -> str:
    parts = [_HEAD]
    for name, text in _helps(group, "homeport"):
        parts.append(f"## {name}\n\n```\n{text}\n```\n")
    return "\n".join(parts)


def _helps(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """The command itself, then what is below it."""
    # A terminal's width must not decide what is in the page.
    context = click.Context(command, parent, info_name=name, terminal_width=_WIDTH, max_content_width=_WIDTH)
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            below = command.get_command(context, each)
            assert below is not None
            yield from _helps(below, each, context)


def wanted() -> dict[str, str]:
    definitions = [each for component in COMPONENTS for each in component.definitions()]
    return {"cli.md": render(), **kind_page.pages(definitions)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    pages = wanted()
    there = {path.name: path for path in [FOLDER / "cli.md", *FOLDER.glob("fields-*.md")]}
    stale = [name for name in there.keys() | pages.keys() if name not in there or name not in pages]
    stale += [name for name, text in pages.items() if name in there and there[name].read_text() != text]
    if parser.parse_args().check:
        for name in sorted(stale):
            print(f"{FOLDER / name} is not what `make gen` writes", file=sys.stderr)
        return 1 if stale else 0
    for name in there.keys() - pages.keys():
        there[name].unlink()
    for name, text in pages.items():
        (FOLDER / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
