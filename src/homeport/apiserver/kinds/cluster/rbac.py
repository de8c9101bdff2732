"""Roles and their bindings. Whether the writer may grant what they grant is admission's question."""

from __future__ import annotations

from collections.abc import Iterator

from homeport.apiserver.kinds.check import (
    IMMUTABLE,
    Struct,
    dns_subdomain,
    invalid,
    label_selector,
    named,
    required,
    unsupported,
)
from homeport.apiserver.kinds.strategy import Plain
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause

GROUP = "rbac.authorization.k8s.io"


class Role(Plain):
    def __init__(self, *, namespaced: bool) -> None:
        self._namespaced = namespaced

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        causes: list[Cause] = []
        rules = obj.get("rules") or []
        for i, rule in enumerate(rules):
            causes += self._rule(f"rules[{i}]", rule)
        causes += (required(f"rules[{i}].verbs") for i, rule in enumerate(rules) if not rule.get("verbs"))
        aggregation = obj.get("aggregationRule")
        if aggregation is not None:
            causes += self._aggregation(aggregation.get("clusterRoleSelectors") or [])
        return causes

    def _rule(self, field: str, rule: Json) -> Iterator[Cause]:
        urls = rule.get("nonResourceURLs")
        if urls:
            if self._namespaced:
                yield invalid(f"{field}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
            elif rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                yield invalid(f"{field}.nonResourceURLs", urls, detail)
            return
        if not rule.get("apiGroups"):
            yield required(f"{field}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            yield required(f"{field}.resources", "resource rules must supply at least one resource")

    def _aggregation(self, selectors: list[Json]) -> Iterator[Cause]:
        field = "aggregationRule.clusterRoleSelectors"
        if not selectors:
            detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            yield required(field, detail)
        for i, selector in enumerate(selectors):
            wrong = list(label_selector(f"{field}[{i}]", selector))
            yield from wrong
            if wrong:
                yield invalid(f"{field}[{i}]", None, "invalid label selector.")


class Binding(Plain):
    def __init__(self, *, namespaced: bool) -> None:
        self._kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)

    def default(self, obj: Json) -> None:
        role = obj["roleRef"] = obj.get("roleRef") or {}
        if not role.get("apiGroup"):
            role["apiGroup"] = GROUP
        for subject in obj.get("subjects") or ():
            if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
                subject["apiGroup"] = GROUP

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        role = obj["roleRef"]
        causes: list[Cause] = []
        if role["apiGroup"] != GROUP:
            causes.append(unsupported("roleRef.apiGroup", role["apiGroup"], (GROUP,)))
        if role.get("kind", "") not in self._kinds:
            causes.append(unsupported("roleRef.kind", role.get("kind", ""), self._kinds))
        subjects = obj.get("subjects") or []
        for i, subject in enumerate(subjects):
            causes += self._subject(f"subjects[{i}]", subject)
        causes += (required(f"subjects[{i}].name") for i, subject in enumerate(subjects) if not subject.get("name"))
        if not role.get("name"):
            causes.append(required("roleRef.name"))
        if old is not None and role != old.get("roleRef"):
            shown = Struct(APIGroup=role["apiGroup"], Kind=role.get("kind", ""), Name=role.get("name", ""))
            causes.insert(0, invalid("roleRef", shown, IMMUTABLE))
        return causes

    def _subject(self, field: str, subject: Json) -> Iterator[Cause]:
        kind, name, group = subject.get("kind", ""), subject.get("name", ""), subject.get("apiGroup", "")
        if kind == "ServiceAccount":
            if name:
                yield from named(f"{field}.name", name, dns_subdomain)
            if group:
                yield unsupported(f"{field}.apiGroup", group, ("",))
            if not subject.get("namespace") and self._kinds == ("ClusterRole",):
                yield required(f"{field}.namespace")
        elif kind in ("User", "Group"):
            if group != GROUP:
                yield unsupported(f"{field}.apiGroup", group, (GROUP,))
        else:
            yield unsupported(f"{field}.kind", kind, ("ServiceAccount", "User", "Group"))
