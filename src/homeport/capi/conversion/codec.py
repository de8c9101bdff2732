"""How single values are written in either version: durations, arguments, references, failure domains."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

Versions = Callable[[str, str], str | None]  # (group, kind) > the version in which that kind is referred to

MOST_SECONDS = 2**31 - 1
_OLDEST = "v1beta1"
_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_TERM = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_DURATION = re.compile(rf"[+-]?(?:0|(?:{_TERM.pattern})+)")


@dataclass(frozen=True, slots=True)
class Context:
    """What a conversion has to know besides the value."""

    namespace: str
    versions: Versions


class Codec(NamedTuple):
    up: Callable[[Any, Context], Any]
    down: Callable[[Any, Context], Any]


def parse_seconds(text: object) -> int:
    """Whole seconds of a Go duration, as many as an int32 holds. Raises ValueError.

    Parts of a second count as a whole one: 0 often means that there is no limit at all.
    """
    if not isinstance(text, str) or not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is not a valid duration: expected for example 90s, 5m or 1h30m")
    seconds = min(-(-_nanoseconds(text) // 1_000_000_000), MOST_SECONDS)
    return -seconds if text.startswith("-") else seconds


def _nanoseconds(text: str) -> int:
    # Fractions are counted in whole nanoseconds, since floats would lose some.
    total = 0
    for number, unit in _TERM.findall(text):
        whole, _, fraction = number.partition(".")
        size = _NANOSECONDS[unit]
        total += int(whole or 0) * size + (int(fraction) * size // 10 ** len(fraction) if fraction else 0)
    return total


def same_duration(one: str, other: str) -> bool:
    """Whether two texts are durations, and of the same length: `10m` and `10m0s`."""
    if not (_DURATION.fullmatch(one) and _DURATION.fullmatch(other)):
        return False
    return one.startswith("-") == other.startswith("-") and _nanoseconds(one) == _nanoseconds(other)


def render_duration(seconds: int) -> str:
    """As Go writes it: 90 > 1m30s, 3600 > 1h0m0s, 0 > 0s."""
    sign, left = ("-", -seconds) if seconds < 0 else ("", seconds)
    hours, left = divmod(left, 3600)
    minutes, left = divmod(left, 60)
    text = f"{left}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    if hours:
        text = f"{hours}h{text}"
    return sign + text


def to_seconds(value: Any) -> Any:
    """What is not a duration becomes the longest one, which ends nothing and deletes nothing.

    An API server compares versions before it asks whether an object is valid, so an error here would be one of the
    server. The older version keeps what the user wrote, and validation refuses that.
    """
    try:
        return parse_seconds(value)
    except ValueError:
        return MOST_SECONDS


def from_seconds(value: Any) -> Any:
    return render_duration(value) if isinstance(value, int) else value


def _to_arguments(value: Any, _: Context) -> Any:
    if not isinstance(value, dict):
        return str(value)  # a list would be valid in the newest version
    return [{"name": name, "value": value[name]} for name in sorted(value)]


def _from_arguments(value: Any, _: Context) -> Any:
    return {item["name"]: item.get("value", "") for item in value}


def _to_contract(ref: Any, _: Context) -> Any:
    group = str(ref.get("apiVersion", "")).rpartition("/")[0]
    return {"apiGroup": group, **_picked(ref, "kind", "name")}


def _from_contract(ref: Any, context: Context) -> Any:
    group, kind = str(ref.get("apiGroup", "")), str(ref.get("kind", ""))
    version = context.versions(group, kind) or _OLDEST
    api_version = f"{group}/{version}" if group else version
    return {"apiVersion": api_version, **_picked(ref, "kind", "name"), **_here(context)}


def _to_template(ref: Any, _: Context) -> Any:
    return _picked(ref, "apiVersion", "kind", "name")


def _from_template(ref: Any, context: Context) -> Any:
    return {**ref, **_here(context)}


def _from_node(ref: Any, _: Context) -> Any:
    return {"apiVersion": "v1", "kind": "Node", **_picked(ref, "name")}


def _to_domains(value: Any, _: Context) -> Any:
    return [{"name": name, **(value[name] or {})} for name in sorted(value)]


def _from_domains(value: Any, _: Context) -> Any:
    return {item["name"]: {name: part for name, part in item.items() if name != "name"} for item in value}


def _to_timeouts(value: Any, _: Context) -> Any:
    return [_renamed(item, "timeout", "timeoutSeconds", to_seconds) for item in value]


def _from_timeouts(value: Any, _: Context) -> Any:
    return [_renamed(item, "timeoutSeconds", "timeout", from_seconds) for item in value]


def _renamed(item: dict[str, Any], old: str, new: str, change: Callable[[Any], Any]) -> dict[str, Any]:
    return {(new if name == old else name): (change(part) if name == old else part) for name, part in item.items()}


def _picked(ref: Any, *names: str) -> dict[str, Any]:
    return {name: ref[name] for name in names if ref.get(name)}


def _here(context: Context) -> dict[str, str]:
    return {"namespace": context.namespace} if context.namespace else {}


SAME = Codec(lambda value, _: value, lambda value, _: value)
DURATION = Codec(lambda value, _: to_seconds(value), lambda value, _: from_seconds(value))
ARGUMENTS = Codec(_to_arguments, _from_arguments)
CONTRACT_REF = Codec(_to_contract, _from_contract)
TEMPLATE_REF = Codec(_to_template, _from_template)
NODE_REF = Codec(lambda ref, _: _picked(ref, "name"), _from_node)
DOMAINS = Codec(_to_domains, _from_domains)
TIMEOUTS = Codec(_to_timeouts, _from_timeouts)
# Machines that are updated in place run; older versions know no word for it.
PHASE = Codec(lambda phase, _: phase, lambda phase, _: "Running" if phase == "Updating" else phase)
