"""Where a Pod may run: affinity to nodes and Pods, and how Pods are spread."""

from __future__ import annotations

from collections.abc import Iterator

from homeport.apiserver.kinds.check import (
    dns_label,
    dns_subdomain,
    duplicate,
    forbidden,
    invalid,
    label_key,
    label_selector,
    label_value,
    named,
    operands,
    required,
    unsupported,
)
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")


def affinity(field: str, found: Json) -> Iterator[Cause]:
    if (nodes := found.get("nodeAffinity")) is not None:
        yield from _node_affinity(f"{field}.nodeAffinity", nodes)
    for part in ("podAffinity", "podAntiAffinity"):
        if (pods := found.get(part)) is not None:
            yield from _pod_affinity(f"{field}.{part}", pods)


def _node_affinity(field: str, found: Json) -> Iterator[Cause]:
    if (wanted := found.get(_REQUIRED)) is not None:
        yield from node_selector(f"{field}.{_REQUIRED}", wanted)
    for i, term in enumerate(found.get(_PREFERRED) or ()):
        subfield = f"{field}.{_PREFERRED}[{i}]"
        yield from _weight(subfield, term)
        # A value that no label can have is never preferred: harmless.
        yield from _node_term(f"{subfield}.preference", term.get("preference") or {}, values=False)


def node_selector(field: str, found: Json) -> Iterator[Cause]:
    terms = found.get("nodeSelectorTerms") or []
    if not terms:
        yield required(f"{field}.nodeSelectorTerms", "must have at least one node selector term")
    for i, term in enumerate(terms):
        yield from _node_term(f"{field}.nodeSelectorTerms[{i}]", term, values=True)


def _node_term(field: str, term: Json, *, values: bool) -> Iterator[Cause]:
    for i, rule in enumerate(term.get("matchExpressions") or ()):
        yield from _node_expression(f"{field}.matchExpressions[{i}]", rule, values=values)
    for i, rule in enumerate(term.get("matchFields") or ()):
        yield from _node_field(f"{field}.matchFields[{i}]", rule)


def _node_expression(field: str, rule: Json, *, values: bool) -> Iterator[Cause]:
    given = rule.get("values") or []
    yield from operands(field, rule, comparing=True)
    yield from named(f"{field}.key", rule.get("key", ""), label_key)
    for i, value in enumerate(given if values else ()):
        yield from named(f"{field}.values[{i}]", value, label_value)


def _node_field(field: str, rule: Json) -> Iterator[Cause]:
    operator, given, key = rule.get("operator", ""), rule.get("values") or [], rule.get("key", "")
    if operator in ("In", "NotIn"):
        if len(given) != 1:
            detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            yield required(f"{field}.values", detail)
    else:
        yield invalid(f"{field}.operator", operator, "not a valid selector operator")
    if key != "metadata.name":
        yield invalid(f"{field}.key", key, "not a valid field selector key")
        return
    for i, value in enumerate(given):
        yield from named(f"{field}.values[{i}]", value, dns_subdomain)


def _weight(field: str, term: Json) -> Iterator[Cause]:
    if not 0 < term.get("weight", 0) <= 100:
        yield invalid(f"{field}.weight", term.get("weight", 0), "must be in the range 1-100")


def _pod_affinity(field: str, found: Json) -> Iterator[Cause]:
    for i, term in enumerate(found.get(_REQUIRED) or ()):
        yield from _pod_term(f"{field}.{_REQUIRED}[{i}]", term)
    for i, term in enumerate(found.get(_PREFERRED) or ()):
        subfield = f"{field}.{_PREFERRED}[{i}]"
        yield from _weight(subfield, term)
        yield from _pod_term(f"{subfield}.podAffinityTerm", term.get("podAffinityTerm") or {})


def _pod_term(field: str, term: Json) -> Iterator[Cause]:
    for part in ("labelSelector", "namespaceSelector"):
        yield from label_selector(f"{field}.{part}", term.get(part))
    for name in term.get("namespaces") or ():
        yield from named(f"{field}.namespace", name, dns_label)
    yield from _label_keys(field, term)
    key = term.get("topologyKey", "")
    if not key:
        yield required(f"{field}.topologyKey", "can not be empty")
    yield from named(f"{field}.topologyKey", key, label_key)


def _label_keys(field: str, term: Json) -> Iterator[Cause]:
    selector = term.get("labelSelector")
    match, mismatch = (term.get(part) or [] for part in ("matchLabelKeys", "mismatchLabelKeys"))
    for part, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            yield forbidden(f"{field}.{part}", "must not be specified when labelSelector is not set")
            continue
        for i, key in enumerate(keys):
            yield from named(f"{field}.{part}[{i}]", key, label_key)
    if selector is not None:
        seen = set(selector.get("matchLabels") or ())
        places = {key: i for i, key in enumerate(match)}
        for rule in selector.get("matchExpressions") or ():
            key = rule.get("key", "")
            if key in places and key in seen:
                detail = "exists in both matchLabelKeys and labelSelector"
                yield invalid(f"{field}[{places[key]}]", key, detail)
            seen.add(key)
    for i, key in enumerate(match):
        if key in mismatch:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid(f"{field}.matchLabelKeys[{i}]", key, detail)


def spread_constraints(field: str, found: list[Json]) -> Iterator[Cause]:
    for i, constraint in enumerate(found):
        subfield, action = f"{field}[{i}]", constraint.get("whenUnsatisfiable", "")
        skew, key = constraint.get("maxSkew", 0), constraint.get("topologyKey", "")
        if skew <= 0:
            yield invalid(f"{subfield}.maxSkew", skew, "must be greater than zero")
        if not key:
            yield required(f"{subfield}.topologyKey", "can not be empty")
        if action not in _ACTIONS:
            yield unsupported(f"{subfield}.whenUnsatisfiable", action, _ACTIONS)
        pairs = [(c.get("topologyKey", ""), c.get("whenUnsatisfiable", "")) for c in found[i + 1 :]]
        if (key, action) in pairs:
            yield duplicate(f"{subfield}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        yield from _domains(f"{subfield}.minDomains", constraint.get("minDomains"), action)
        for part in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(part) is not None and constraint[part] not in ("Honor", "Ignore"):
                yield unsupported(f"{subfield}.{part}", constraint[part], ("Honor", "Ignore"))
        yield from _label_keys(subfield, {**constraint, "mismatchLabelKeys": []})
        yield from label_selector(f"{subfield}.labelSelector", constraint.get("labelSelector"))


def _domains(field: str, count: int | None, action: str) -> Iterator[Cause]:
    if count is None:
        return
    if count <= 0:
        yield invalid(field, count, "must be greater than zero")
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield invalid(field, count, detail)
