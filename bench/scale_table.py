"""What bench/scale.py found out about one plane, and how it is printed."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Phase:
    """What happened between two moments."""

    wall: float
    cpu: list[float]  # by process of the plane
    site: float  # CPU seconds of the simulated site
    writes: int
    wanted: int = 0  # clusters that were to get somewhere
    reached: int = 0

    @property
    def each(self) -> int:
        """How many clusters the cost is that of."""
        return max(1, self.reached or self.wanted)

    @property
    def seconds(self) -> str:
        part = "" if self.reached == self.wanted else f" ({self.reached} of {self.wanted})"
        return f"{self.wall:.0f}{part}"


@dataclass
class Result:
    name: str
    clusters: int  # that are up, of those that were wanted
    start_mib: list[float]
    start_sockets: list[int]
    empty: Phase | None = None  # at rest, before the first cluster
    made: Phase | None = None
    rest: Phase | None = None
    rolled: Phase | None = None
    first: float = 0.0
    rest_mib: list[float] = field(default_factory=list)
    peak_mib: list[float] = field(default_factory=list)
    sockets: list[int] = field(default_factory=list)
    tally: dict[str, Counter[str]] = field(default_factory=dict)
    conflicts: dict[str, float] = field(default_factory=dict)

    def resting(self) -> list[float]:
        """CPU seconds per second that all clusters at rest take, by process."""
        rest, empty = self.rest, self.empty
        assert rest is not None
        assert empty is not None
        return [now / rest.wall - before / empty.wall for now, before in zip(rest.cpu, empty.cpu, strict=True)]


HEAD = (
    "plane", "clusters", "all Available after, s", "CPU ms each", "site's CPU ms each", "writes each", "MiB at rest",
    "KiB each", "sockets each", "idle ms/s each", "replaced after, s", "CPU ms each", "writes each",
)  # fmt: skip


def head() -> str:
    return "\n".join(["| " + " | ".join(HEAD) + " |", "|---|" + "---:|" * (len(HEAD) - 1)])


def parts(values: list[float], form: str = "{:.0f}") -> str:
    """One number, and that of each process."""
    total = form.format(sum(values))
    return total if len(values) == 1 else f"{total} ({' + '.join(form.format(each) for each in values)})"


def row(result: Result) -> str:
    """As docs/reference/performance.md has them."""
    made, rolled = result.made, result.rolled
    assert made is not None
    cells = [
        result.name,
        str(made.wanted),
        f"{made.seconds}, the first {result.first:.0f}",
        parts([each / made.each * 1000 for each in made.cpu]),
        f"{made.site / made.each * 1000:.0f}",
        f"{made.writes / made.each:.1f}",
        *(_resting_cells(result) if result.rest is not None else ["-"] * 4),
        "-" if rolled is None else rolled.seconds,
        "-" if rolled is None else parts([each / rolled.each * 1000 for each in _rolling(result, rolled)]),
        "-" if rolled is None else f"{rolled.writes / rolled.each:.1f}",
    ]
    return "| " + " | ".join(cells) + " |"


def _rolling(result: Result, rolled: Phase) -> list[float]:
    """Without what the clusters that were not rolled cost at rest meanwhile."""
    others = 1 - rolled.wanted / max(1, result.clusters)
    return [used - at_rest * others * rolled.wall for used, at_rest in zip(rolled.cpu, result.resting(), strict=True)]


def _resting_cells(result: Result) -> list[str]:
    count = max(1, result.clusters)
    grown = [after - before for after, before in zip(result.rest_mib, result.start_mib, strict=True)]
    opened = [after - before for after, before in zip(result.sockets, result.start_sockets, strict=True)]
    return [
        f"{parts(result.rest_mib)}, {sum(result.start_mib):.0f} without clusters",
        parts([each * 1024 / count for each in grown]),
        parts([each / count for each in opened], "{:.1f}"),
        parts([each / count * 1000 for each in result.resting()], "{:.3f}"),
    ]


def details(result: Result) -> str:
    lines: list[str] = []
    count = max(1, result.clusters)
    for phase, counts in result.tally.items():
        statuses = sum(number for what, number in counts.items() if what.endswith("status"))
        lines.append(f"  {phase}: {statuses / count:.1f} statuses")
        lines += [f"    {number / count:7.2f} {what}" for what, number in counts.most_common()]
    lost = {name: number for name, number in result.conflicts.items() if number}
    return "\n".join([*lines, f"  conflicts: {json.dumps(lost)}"])


def estimate(result: Result, clusters: int) -> str:
    """What so many would need on a machine with cores enough, if each costs as much as here."""
    made = result.made
    assert made is not None
    factor = clusters / max(1, result.clusters)
    opened = sum(result.sockets) - sum(result.start_sockets)
    grown = sum(result.rest_mib) - sum(result.start_mib)
    cpu = sum(made.cpu) * clusters / made.each
    largest = max(range(len(result.rest_mib)), key=lambda each: result.rest_mib[each])
    alone = result.start_mib[largest] + (result.rest_mib[largest] - result.start_mib[largest]) * factor
    return (
        f"{result.name}, from {result.clusters} to {clusters:,}: {cpu / 60:.0f} minutes of CPU to create them, "
        f"{(sum(result.start_mib) + grown * factor) / 1024:.1f} GiB ({alone / 1024:.1f} in the largest process), "
        f"{opened * factor:,.0f} connections to them, {sum(result.resting()) * factor:.1f} cores at rest"
    )
