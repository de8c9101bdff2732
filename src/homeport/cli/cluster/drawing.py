"""Draws the tree of a cluster as lines. Pure."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from homeport.app.tree.branch import Branch, Tree
from homeport.capi.name import GROUP, NEGATIVE
from homeport.cli.plane.overview import Line

_HEADER = ("OBJECT", "STATE", "READY", "VERSION", "AGE")
_LEAST_TEXT = 40


class _Row(NamedTuple):
    cells: tuple[str, ...]
    below: str  # what the lines about this object start with
    branch: Branch | None


def draw(tree: Tree, *, width: int | None = None, conditions: bool = False) -> list[Line]:
    """The tree with a header. `conditions`: all conditions of every object, not only what is wrong."""
    rows = list(_rows(tree.root, "", "", tree.root.namespace))
    widths = [max(len(row.cells[i]) for row in [_Row(_HEADER, "", None), *rows]) for i in range(len(_HEADER))]
    made = [Line(_cut(_joined(_HEADER, widths), width), "dim")]
    # A sentence that many objects report, such as all machines of a hypervisor, is written once.
    times = Counter(row.branch.problem for row in rows if row.branch is not None)
    written: set[str] = set()
    for row in rows:
        branch = row.branch
        if branch is None:
            made.append(Line(_cut(row.cells[0], width), "dim"))
            continue
        made.append(Line(_cut(_joined(row.cells, widths), width), _style(branch)))
        if branch.problem and branch.problem not in written:
            written.add(branch.problem)
            others = times[branch.problem] - 1
            more = f" (reported by {others} more object{'s' if others > 1 else ''} below)" if others else ""
            made += _wrapped(row.below, branch.problem + more, width, "red" if branch.healthy is False else "yellow")
        if conditions:
            for each in branch.conditions:
                made += _wrapped(row.below, _condition(each), width, "yellow" if _wrong(each) else "")
    return made


def _rows(branch: Branch, first: str, rest: str, namespace: str) -> Iterator[_Row]:
    """`first` and `rest`: what stands before the object, and before everything below it."""
    name = f"{branch.namespace}/{branch.name}" if branch.namespace not in ("", namespace) else branch.name
    cells = (f"{first}{_kind(branch)}/{name}", branch.state or "-", branch.replicas, branch.version, _age(branch))
    yield _Row(cells, rest + ("│   " if branch.children else "    "), branch)
    groups = [(role, list(each)) for role, each in groupby(branch.children, key=lambda child: child.role)]
    for number, (role, children) in enumerate(groups):
        last = number == len(groups) - 1
        if not role:
            yield from _siblings(children, rest, branch.namespace, last)
            continue
        yield _Row((f"{rest}{'└─' if last else '├─'}{role}", "", "", "", ""), "", None)
        yield from _siblings(children, rest + ("  " if last else "│ "), branch.namespace, True)


def _kind(branch: Branch) -> str:
    """With its group where another kind has the same name."""
    group = branch.api_version.rpartition("/")[0]
    return f"Cluster.{group}" if branch.kind == "Cluster" and group not in ("", GROUP) else branch.kind


def _siblings(children: Sequence[Branch], rest: str, namespace: str, last_group: bool) -> Iterator[_Row]:
    for number, child in enumerate(children):
        end = last_group and number == len(children) - 1
        yield from _rows(child, rest + ("└─" if end else "├─"), rest + ("  " if end else "│ "), namespace)


def _age(branch: Branch) -> str:
    return "" if branch.age_seconds is None else age(branch.age_seconds)


def age(seconds: float) -> str:
    """As kubectl writes it: `45s`, `12m`, `3h`, `8d`."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def _wrong(found: dict[str, Any]) -> bool:
    return found.get("status") != ("False" if found.get("type") in NEGATIVE else "True")


def _condition(found: dict[str, Any]) -> str:
    message = " ".join(str(found.get("message") or "").split())
    text = f"{found.get('type')}={found.get('status')} {found.get('reason') or ''}".rstrip()
    return f"{text}: {message}" if message else text


def _style(branch: Branch) -> str:
    if branch.state == "Deleting":
        return "yellow"
    return "red" if branch.healthy is False else ""


def _wrapped(start: str, text: str, width: int | None, style: str) -> list[Line]:
    if width is None:
        return [Line(f"{start}{text}", style)]
    lines = textwrap.wrap(text, max(_LEAST_TEXT, width - len(start)), break_on_hyphens=False)
    return [Line(f"{start}{line}", style) for line in lines]


def _joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _cut(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else f"{text[: width - 1]}…"
