"""When a Job has failed or succeeded: podFailurePolicy and successPolicy."""

from __future__ import annotations

from collections.abc import Iterator

from homeport.apiserver.kinds.check import (
    Struct,
    duplicate,
    invalid,
    label_key,
    named,
    not_negative,
    required,
    too_long,
    too_many,
    unsupported,
)
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_MOST_RULES = 20
_MOST_CODES = 255
_INDEXES_LIMIT = 64 * 1024


def _listed(choices: tuple[str, ...]) -> str:
    return "valid values: [" + " ".join(f'"{choice}"' for choice in choices) + "]"


def failure_policy(field: str, spec: Json) -> Iterator[Cause]:
    rules = spec["podFailurePolicy"].get("rules") or []
    if len(rules) > _MOST_RULES:
        yield too_many(f"{field}.rules", len(rules), _MOST_RULES)
    pods = (spec.get("template") or {}).get("spec") or {}
    names = {c.get("name", "") for part in ("containers", "initContainers") for c in pods.get(part) or ()}
    for i, rule in enumerate(rules):
        yield from _failure_rule(f"{field}.rules[{i}]", rule, spec, names)


def _failure_rule(subfield: str, rule: Json, spec: Json, names: set[str]) -> Iterator[Cause]:
    action, codes, conditions = rule.get("action", ""), rule.get("onExitCodes"), rule.get("onPodConditions") or []
    if not action:
        yield required(f"{subfield}.action", _listed(_ACTIONS))
    elif action == "FailIndex":
        if spec.get("backoffLimitPerIndex") is None:
            yield invalid(f"{subfield}.action", action, "requires the backoffLimitPerIndex to be set")
    elif action not in _ACTIONS:
        yield unsupported(f"{subfield}.action", action, _ACTIONS)
    if codes is not None:
        yield from _exit_codes(f"{subfield}.onExitCodes", codes, names)
    if len(conditions) > _MOST_RULES:
        yield too_many(f"{subfield}.onPodConditions", len(conditions), _MOST_RULES)
    for k, pattern in enumerate(conditions):
        field, status = f"{subfield}.onPodConditions[{k}]", pattern.get("status", "")
        yield from named(f"{field}.type", pattern.get("type", ""), label_key)
        if not status:
            yield required(f"{field}.status", _listed(_STATUSES))
        elif status not in _STATUSES:
            yield unsupported(f"{field}.status", status, _STATUSES)
    if codes is not None and conditions:
        yield Cause.invalid(subfield, "specifying both OnExitCodes and OnPodConditions is not supported")
    if codes is None and not conditions:
        yield Cause.invalid(subfield, "specifying one of OnExitCodes and OnPodConditions is required")


def _exit_codes(field: str, found: Json, names: set[str]) -> Iterator[Cause]:
    operator, values = found.get("operator", ""), found.get("values") or []
    if not operator:
        yield required(f"{field}.operator", _listed(_OPERATORS))
    elif operator not in _OPERATORS:
        yield unsupported(f"{field}.operator", operator, _OPERATORS)
    name = found.get("containerName")
    if name is not None and name not in names:
        detail = "must be one of the container or initContainer names in the pod template"
        yield invalid(f"{field}.containerName", name, detail)
    if not values:
        yield invalid(f"{field}.values", None, "at least one value is required")
    elif len(values) > _MOST_CODES:
        yield too_many(f"{field}.values", len(values), _MOST_CODES)
    for i, value in enumerate(values):
        if operator == "In" and value == 0:
            yield invalid(f"{field}.values[{i}]", value, "must not be 0 for the In operator")
        if value in values[:i]:
            yield duplicate(f"{field}.values[{i}]", value)
    if values != sorted(values):
        yield invalid(f"{field}.values", values, "must be ordered")


def success_policy(field: str, spec: Json) -> Iterator[Cause]:
    policy = spec["successPolicy"]
    rules = policy.get("rules") or []
    if spec.get("completionMode") != "Indexed":
        shown = Struct(Rules=[_shown(rule) for rule in rules] or None)
        yield invalid(field, shown, "requires indexed completion mode")
        return
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        yield required(f"{field}.rules", detail)
    if len(rules) > _MOST_RULES:
        yield too_many(f"{field}.rules", len(rules), _MOST_RULES)
    for i, rule in enumerate(rules):
        yield from _success_rule(f"{field}.rules[{i}]", rule, spec.get("completions") or 0)


def _shown(rule: Json) -> Struct:
    return Struct(SucceededIndexes=rule.get("succeededIndexes"), SucceededCount=rule.get("succeededCount"))


def _success_rule(field: str, rule: Json, completions: int) -> Iterator[Cause]:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        yield required(field, "at least one of succeededCount or succeededIndexes must be specified")
    total = 0
    if indexes is not None:
        if len(indexes) > _INDEXES_LIMIT:
            yield too_long(f"{field}.succeededIndexes", _INDEXES_LIMIT)
        try:
            total = count_indexes(indexes, completions)
        except ValueError as error:
            yield invalid(f"{field}.succeededIndexes", indexes, f"error parsing succeededIndexes: {error}")
    if count is None:
        return
    yield from not_negative(f"{field}.succeededCount", count)
    if count > completions:
        detail = f"must be less than or equal to {completions} (the number of specified completions)"
        yield invalid(f"{field}.succeededCount", count, detail)
    if indexes is not None and count > total:
        detail = (
            f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        )
        yield invalid(f"{field}.succeededCount", count, detail)


def count_indexes(text: str, completions: int) -> int:
    """How many indexes `0,2-4` names. Raises ValueError with what is wrong with it."""
    total, last = 0, -1
    for fragment in text.split(",") if text else ():
        first, end = _interval(fragment, completions)
        if last >= first:
            raise ValueError(f"non-increasing order, previous: {last}, current: {first}")
        total += end - first + 1
        last = end
    return total


def _interval(fragment: str, completions: int) -> tuple[int, int]:
    parts = fragment.split("-")
    if len(parts) > 2:
        raise ValueError(
            f'the fragment "{fragment}" violates the requirement that an index interval can have at most two parts '
            "separated by '-'"
        )
    found = [_index(part, completions) for part in parts]
    if len(found) > 1 and found[0] >= found[1]:
        raise ValueError(f"non-increasing order, previous: {found[0]}, current: {found[1]}")
    return found[0], found[-1]


def _index(text: str, completions: int) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f'cannot convert string to integer for index: "{text}"')
    if int(text) >= completions:
        raise ValueError(f'too large index: "{text}"')
    return int(text)
