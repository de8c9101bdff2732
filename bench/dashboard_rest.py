"""What a plane does while nothing happens: processor time, and the requests that it answers."""

from __future__ import annotations

import re
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from process import cpu_seconds

from homeport.client.http import HttpClient

SAMPLES = 6
SAMPLE_SECONDS = 10.0
SETTLE_SECONDS = 120.0
SETTLED_PERCENT = 1.0
_COUNTED = re.compile(r"^apiserver_request_total\{(.*)\} ([0-9.e+]+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Rest:
    """Percent of one core in each of the samples, which follow each other without a gap; and requests a minute."""

    percent: list[float]
    requests: dict[str, float]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.percent)

    def __str__(self) -> str:
        return f"{self.mean:.2f} ({min(self.percent):.1f} to {max(self.percent):.1f})"


def percent(pid: int, seconds: float) -> float:
    """Of one core."""
    before, begun = cpu_seconds([pid]), time.monotonic()
    time.sleep(seconds)
    return (cpu_seconds([pid]) - before) / (time.monotonic() - begun) * 100


def settle(pid: int) -> None:
    """Until there is nothing left to do: what was created is looked at once by the controllers, and a page that was
    opened lists it. One quiet sample may be a pause, so there are two."""
    until, quiet = time.monotonic() + SETTLE_SECONDS, 0
    while quiet < 2 and time.monotonic() < until:
        quiet = quiet + 1 if percent(pid, 5) <= SETTLED_PERCENT else 0


def rest(pid: int, count: Callable[[], Counter[str]]) -> Rest:
    """A minute: everything that happens once in a minute is part of it."""
    before = count()
    samples = [percent(pid, SAMPLE_SECONDS) for _ in range(SAMPLES)]
    minutes = SAMPLES * SAMPLE_SECONDS / 60
    return Rest(samples, {what: number / minutes for what, number in (count() - before).items()})


async def count_requests(client: HttpClient) -> Counter[str]:
    """That the API server has answered since its start, by verb and resource; without those for these figures."""
    found: Counter[str] = Counter()
    text = (await client.raw("GET", "/metrics", None)).body.decode()
    for labels, number in _COUNTED.findall(text):
        label = dict(_LABEL.findall(labels))
        if label.get("resource"):
            found[f"{label['verb']} {label['resource']}"] += int(float(number))
    return found
