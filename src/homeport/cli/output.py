"""Prints results in the format that -o names, and lines with their colours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from homeport.cli.plane.overview import Line


def output_option(*formats: str) -> Callable[[Any], Any]:
    """`-o`, with these formats besides the text for people."""
    return click.option(
        "-o", "--output", type=click.Choice(formats), help="Print the result in this format (default: text)."
    )


def listing_option(fn: Any) -> Any:
    """`-o` of every command that lists or describes things."""
    return output_option("json", "yaml", "name", "wide")(fn)


def print_found(output: str | None, data: Any, names: Iterable[tuple[str, str]], text: Callable[[bool], None]) -> None:
    """As -o says: `data` as JSON or YAML, the kinds and names, or by `text`, which gets whether it may be wide."""
    if output in ("json", "yaml"):
        print_data(data, output)
    elif output == "name":
        print_names(names)
    else:
        text(output == "wide")


def print_data(found: Any, output: str) -> None:
    """As JSON or YAML."""
    import msgspec

    plain = msgspec.to_builtins(found)
    if output == "json":
        import json

        click.echo(json.dumps(plain, indent=2))
    else:
        from homeport.machinery.yaml import dump

        click.echo(dump(plain), nl=False)


def print_names(found: Iterable[tuple[str, str]]) -> None:
    """`kind/name` a line, as kubectl does: `kubectl get` accepts what is printed."""
    for kind, name in found:
        click.echo(f"{kind.lower()}/{name}")


def reader_gone() -> bool:
    """Whether stdout is a pipe that nobody reads any more: a command that waits for changes would wait for ever."""
    import select
    import sys

    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    except (OSError, ValueError):  # not a file
        return False


def check_folder(file: Path) -> None:
    """Before work whose result would be lost."""
    if not file.parent.is_dir():
        raise click.ClickException(f"{file.parent} is not a directory: create it first")


def print_lines(lines: Iterable[Line]) -> None:
    for line in lines:
        click.secho(line.text, **click_style(line.style))


def click_style(style: str) -> dict[str, Any]:
    return {"bold": True} if style == "bold" else {"dim": True} if style == "dim" else {"fg": style or None}


def print_table(rows: Iterable[tuple[str, ...]]) -> None:
    """Columns as wide as their widest text; the first row is the header."""
    kept = list(rows)
    if not kept:
        return
    widths = [max(len(row[i]) for row in kept) for i in range(len(kept[0]))]
    for row in kept:
        click.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
