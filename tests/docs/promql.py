"""A small part of PromQL, enough for our own rules: selectors, rate and increase, sum by, histogram_quantile, `/`, comparison.

Samples are those that Prometheus would scrape: the text that a registry renders, each with its time.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
_TOKEN = re.compile(r'\s*(>=|<=|==|!=|=~|[-+]?\d+\.?\d*[smh]?\b|"[^"]*"|[A-Za-z_:][\w:]*|.)')
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_SECONDS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class Scrape:
    at: float
    series: dict[tuple[str, Labels], float]

    @classmethod
    def read(cls, at: float, text: str, job: str = "homeport") -> Scrape:
        """As Prometheus keeps it: every series gets the label of its job, and `up` says that the scrape succeeded."""
        series: dict[tuple[str, Labels], float] = {("up", frozenset({("job", job)})): 1.0}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                series[sample.name, frozenset({**sample.labels, "job": job}.items())] = sample.value
        return cls(at, series)


@dataclass
class Query:
    """An expression at one moment, that of the last scrape. `asked`: names of the metrics that it reads."""

    scrapes: list[Scrape]
    asked: set[str]
    tokens: list[str]

    @classmethod
    def run(cls, text: str, scrapes: list[Scrape]) -> tuple[Vector, set[str]]:
        tokens = [each for each in _TOKEN.findall(text) if each.strip()]
        query = cls(scrapes, set(), tokens)
        found = query.comparison()
        assert not query.tokens, f"not understood: {query.tokens} in {text!r}"
        return found, query.asked

    def next(self, wanted: str = "") -> str:
        token = self.tokens.pop(0) if self.tokens else ""
        assert not wanted or token == wanted, f"expected {wanted!r}, found {token!r}"
        return token

    def comparison(self) -> Vector:
        left = self.division()
        if self.tokens and self.tokens[0] in _COMPARE:
            compare, bound = _COMPARE[self.next()], float(self.next())
            return {labels: value for labels, value in left.items() if compare(value, bound)}
        return left

    def division(self) -> Vector:
        left = self.term()
        if self.tokens and self.tokens[0] == "/":
            self.next()
            right = self.term()
            return {labels: value / right[labels] for labels, value in left.items() if right.get(labels)}
        return left

    def term(self) -> Vector:
        name = self.next()
        if name in ("rate", "increase"):
            return self.over_time(per_second=name == "rate")
        if name == "sum":
            return self.total()
        if name == "histogram_quantile":
            return self.quantile()
        assert re.fullmatch(r"[a-z_:][\w:]*", name), f"not a metric: {name!r}"
        return self.instant(name, self.scrapes[-1])

    def matchers(self) -> list[tuple[str, str, str]]:
        found = []
        if self.tokens and self.tokens[0] == "{":
            self.next("{")
            while self.tokens[0] != "}":
                found.append((self.next(), self.next(), self.next().strip('"')))
                if self.tokens[0] == ",":
                    self.next()
            self.next("}")
        return found

    def instant(self, name: str, scrape: Scrape, matchers: list[tuple[str, str, str]] | None = None) -> Vector:
        self.asked.add(name)
        wanted = self.matchers() if matchers is None else matchers
        return {
            labels: value
            for (metric, labels), value in scrape.series.items()
            if metric == name and all(_matches(dict(labels).get(label, ""), how, text) for label, how, text in wanted)
        }

    def over_time(self, *, per_second: bool) -> Vector:
        self.next("(")
        name, matchers = self.next(), self.matchers()
        self.next("[")
        span = self.next()
        seconds = float(span[:-1]) * _SECONDS[span[-1]]
        self.next("]")
        self.next(")")
        end = self.scrapes[-1].at
        window = [self.instant(name, each, matchers) for each in self.scrapes if each.at >= end - seconds]
        if len(window) < 2:
            return {}
        grown: Vector = {}
        for before, after in pairwise(window):
            for labels, value in after.items():
                # A counter that is smaller than before began again at zero.
                old = before.get(labels, value)
                grown[labels] = grown.get(labels, 0.0) + (value - old if value >= old else value)
        return {labels: value / seconds if per_second else value for labels, value in grown.items()}

    def total(self) -> Vector:
        kept: list[str] = []
        if self.tokens[0] == "by":
            self.next("by")
            self.next("(")
            while (token := self.next()) != ")":
                kept += [token] if token != "," else []
        self.next("(")
        inner = self.comparison()
        self.next(")")
        found: Vector = {}
        for labels, value in inner.items():
            key = frozenset(each for each in labels if each[0] in kept)
            found[key] = found.get(key, 0.0) + value
        return found

    def quantile(self) -> Vector:
        self.next("(")
        share = float(self.next())
        self.next(",")
        inner = self.comparison()
        self.next(")")
        groups: dict[Labels, list[tuple[float, float]]] = {}
        for labels, value in inner.items():
            bound = float(dict(labels)["le"])
            groups.setdefault(frozenset(each for each in labels if each[0] != "le"), []).append((bound, value))
        return {
            labels: found for labels, each in groups.items() if (found := _quantile(share, sorted(each))) is not None
        }


def _matches(value: str, how: str, text: str) -> bool:
    if how == "=~":
        return re.fullmatch(text, value) is not None
    assert how in ("=", "!="), how
    return (value == text) is (how == "=")


def _quantile(share: float, buckets: list[tuple[float, float]]) -> float | None:
    total = buckets[-1][1]
    if not total:
        return None
    low, below = 0.0, 0.0
    for bound, count in buckets:
        if count >= share * total:
            if bound == float("inf"):
                return low
            return low + (bound - low) * (share * total - below) / (count - below) if count > below else bound
        low, below = bound, count
    return low
