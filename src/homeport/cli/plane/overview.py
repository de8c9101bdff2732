"""A plane at a glance, as lines: its clusters, what is stuck and why, what is under way. Pure.

For `homeport status` and the live view of `homeport up`. `width` and `height` None: nothing is cut off.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from homeport.app.report.description import ClusterState, ControllerState, Description, Finding
from homeport.app.report.progress import shown

_HEALTH = {"NotAvailable": "Not available", "NotReady": "Not ready"}
_HEADER = ("NAME", "HEALTH", "VERSION", "CONTROL PLANE", "WORKERS")
_GAP = "  "
_LEAST_NAME = 16
_BAR = 20  # characters
_LEAST_ROWS = 4  # of clusters, however much is stuck
_LITTLE_ROWS = 6  # for what is stuck and what is under way
_FINDING_ROWS = 2  # so many lines of a long sentence where space is short
_WAITING = 2  # so many objects that wait for something stuck are named


class Line(NamedTuple):
    text: str
    style: str = ""  # '', bold, dim, red, yellow


def overview(
    found: Description,
    *,
    width: int | None = None,
    height: int | None = None,
    command: Callable[[str], str] | None = None,
) -> list[Line]:
    """Clusters, then causes, then what is under way; what does not fit is counted.

    `command` writes a homeport command with the options that are in use: `next:` lines need it.
    """
    clusters = _clusters(found, width)
    if not found.clusters and not found.standby and command is not None:
        clusters.append(Line(f"next: {command('create cluster NAME')}", "dim"))
    stuck = [_block(each, width, height, "red") for each in found.stuck]
    if stuck and command is not None:
        stuck[0] = [*stuck[0], Line(f"    next: {command(_doctor(found))}", "dim")]
    going = [[line] for line in _bars(found, width)]
    going += [_block(each, width, height, "") for each in found.under_way]
    if height is None:
        return [*clusters, *_section("Stuck:", stuck), *_section("Under way:", going)]
    left = height - min(len(clusters), max(_LEAST_ROWS, height // 2))
    others = 3 if left > _LITTLE_ROWS else 1  # causes come first
    stuck_lines = _fitting("Stuck:", stuck, left - min(others, 2 * len(going)))
    going_lines = _fitting("Under way:", going, left - len(stuck_lines))
    return [*_cut(clusters, height - len(stuck_lines) - len(going_lines), "clusters"), *stuck_lines, *going_lines]


def _clusters(found: Description, width: int | None) -> list[Line]:
    clusters = found.clusters
    if found.standby:
        lines = [found.standby] if width is None else textwrap.wrap(found.standby, width)
        return [Line(each, "yellow") for each in lines]
    if not clusters:
        return [Line("No clusters yet", "dim")]
    rows = [_HEADER, *(_row(each) for each in clusters)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADER))]
    if width is not None:
        others = sum(widths[1:]) + len(_GAP) * (len(widths) - 1)
        widths[0] = min(widths[0], max(_LEAST_NAME, width - others))
    texts = [_GAP.join(_short(t, w).ljust(w) for t, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    styles = ["dim", *(_style(each) for each in clusters)]
    return [Line(_short(text, width), style) for text, style in zip(texts, styles, strict=True)]


def _row(cluster: ClusterState) -> tuple[str, ...]:
    health = _HEALTH.get(cluster.health, cluster.health) + (", paused" if cluster.paused else "")
    machines = (f"{each.ready} of {each.desired}" for each in (cluster.control_plane, cluster.workers))
    return _name(cluster), health, cluster.version or "-", *machines


def _style(cluster: ClusterState) -> str:
    return "" if cluster.fine else "yellow" if cluster.healthy or cluster.health == "Deleting" else "red"


def _name(cluster: ClusterState) -> str:
    """`Kind name`, with the namespace where it is not `default`."""
    where = "" if cluster.namespace == "default" else f"{cluster.namespace}/"
    return f"{cluster.kind} {where}{cluster.name}"


def _doctor(found: Description) -> str:
    """About one cluster where only one is not well."""
    sick = [each for each in found.clusters if not each.healthy or each.unmanaged is not None]
    if len(sick) != 1:
        return "doctor"
    namespace = "" if sick[0].namespace == "default" else f" --namespace {sick[0].namespace}"
    return f"doctor cluster {sick[0].name}{namespace}"


def _bars(found: Description, width: int | None) -> Iterator[Line]:
    """How far the machines of each cluster are, unless something holds it up."""
    held = {name for each in found.stuck for name in (shown(each), *each.waiting)}
    for cluster in found.clusters:
        waiting = {_name(cluster), f"Cluster {cluster.cluster.removeprefix('default/')}"} & held
        if not waiting and not cluster.paused and cluster.health != "Deleting" and cluster.done < cluster.desired:
            full = _BAR * cluster.done // cluster.desired
            bar = "#" * full + "-" * (_BAR - full)
            ready = cluster.control_plane.ready + cluster.workers.ready >= cluster.desired
            what = f"{cluster.done} of {cluster.desired} machines {'up to date' if ready else 'ready'}"
            name = _short(_name(cluster), None if width is None else max(_LEAST_NAME, width - len(what) - _BAR - 8))
            yield Line(f"  {name}  [{bar}]  {what}")


def summary(found: Description) -> list[Line]:
    """The clusters and what is stuck, for the end."""
    if not found.clusters:
        return []
    return [*_clusters(found, None), *_section("Stuck:", [_block(each, None, None, "red") for each in found.stuck])]


def _block(found: Finding, width: int | None, height: int | None, style: str) -> list[Line]:
    """The sentence, and who waits for it."""
    text = f"{shown(found)}{f' (since {found.since})' if found.since else ''}: {found.message}"
    lines = [text]
    if width is not None:
        rows = None if height is None else _FINDING_ROWS
        lines = textwrap.wrap(
            text, width - 2, subsequent_indent="  ", max_lines=rows, placeholder=" …", break_on_hyphens=False
        )
    made = [Line(f"  {line}", style) for line in lines]
    if found.waiting:
        made.append(Line(_short(f"    waiting for it: {_several(found.waiting)}", width), "dim"))
    if found.same:
        count = "1 object" if len(found.same) == 1 else f"{len(found.same)} objects"
        made.append(Line(_short(f"    reported by {count}: {_several(found.same)}", width), "dim"))
    return made


def _several(names: Sequence[str]) -> str:
    if len(names) <= _WAITING + 1:
        return ", ".join(names)
    return f"{', '.join(names[:_WAITING])} and {len(names) - _WAITING} more"


def _section(title: str, blocks: Sequence[list[Line]]) -> list[Line]:
    return [Line(""), Line(title, "bold"), *(line for block in blocks for line in block)] if blocks else []


def _fitting(title: str, blocks: Sequence[list[Line]], height: int) -> list[Line]:
    """As many blocks as there is room for, and the number of the others."""
    whole = _section(title, blocks)
    if len(whole) <= height:
        return whole
    for count in range(len(blocks) - 1, 0, -1):
        lines = [*_section(title, blocks[:count]), Line(f"  and {len(blocks) - count} more", "dim")]
        if len(lines) <= height:
            return lines
    return [Line(f"{title} {len(blocks)}", "bold"), *blocks[0][: height - 1]] if height > 0 else []


def _cut(lines: list[Line], height: int, what: str) -> list[Line]:
    if len(lines) <= height:
        return lines
    kept = max(1, height - 1)
    return [*lines[:kept], Line(f"and {len(lines) - kept} more {what}", "dim")]


def _short(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else f"{text[: width - 1]}…"


# -- the plane's own controllers -------------------------------------------------------------------------------------


def controllers(found: Sequence[ControllerState], *, height: int | None = None) -> list[Line]:
    """Those that have something to do first; the idle ones are counted where space is short."""
    ordered = sorted(found, key=lambda each: (-each.unfinished_count, -each.queue, -each.reconciles, each.name))
    wide = max(len("CONTROLLER"), *(len(each.name) for each in found))
    head = f"{'CONTROLLER':<{wide}}  QUEUED  DELAYED  UNFINISHED  RECONCILES  ERRORS"
    lines = [Line(head, "dim")]
    for each in ordered:
        figures = f"{each.queue:>6}  {each.delayed:>7}  {each.unfinished_count:>10}  {each.reconciles:>10}"
        lines.append(Line(f"{each.name:<{wide}}  {figures}  {each.errors:>6}", "yellow" if each.errors else ""))
    return lines if height is None else _cut(lines, height, "controllers")


def unfinished(found: Sequence[ControllerState], most: int) -> list[Line]:
    """Every unfinished object with its reason, by controller."""
    lines: list[Line] = []
    for each in found:
        for item in each.unfinished[:most]:
            message = f": {item.message}" if item.message else ""
            lines.append(Line(f"  {shown(item)}: {item.reason}{message} ({each.name})"))
        if each.unfinished_count > most:
            lines.append(Line(f"  and {each.unfinished_count - most} more of {each.name}", "dim"))
    return [Line(""), Line("Unfinished objects:", "bold"), *lines] if lines else []
