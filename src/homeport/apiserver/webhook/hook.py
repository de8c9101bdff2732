"""A webhook as configured, read once from its configuration: whom it is for and how it is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from homeport.apiserver.resource import ServedKind
from homeport.machinery.selector import NOTHING, LabelSelector, SelectorError, from_label_selector

ALL = "*"
GROUP = "admissionregistration.k8s.io"
MUTATING = f"mutatingwebhookconfigurations.{GROUP}"
VALIDATING = f"validatingwebhookconfigurations.{GROUP}"
# Webhooks are not asked about webhooks: a broken one could never be repaired.
EXEMPT = frozenset(
    (GROUP, plural)
    for plural in (
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    )
)

Condition = Callable[[Mapping[str, Any]], bool]
CompileCondition = Callable[[str], Condition]


class ConditionError(Exception):
    """A match condition could not be evaluated."""


@dataclass(frozen=True, slots=True)
class Rule:
    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    scope: str

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Rule:
        resources = (text.partition("/") for text in raw.get("resources") or ())
        return cls(
            frozenset(raw.get("operations") or ()),
            frozenset(raw.get("apiGroups") or ()),
            frozenset(raw.get("apiVersions") or ()),
            tuple((resource, subresource) for resource, _, subresource in resources),
            raw.get("scope") or ALL,
        )

    def matches(self, served: ServedKind, version: str, operation: str, subresource: str) -> bool:
        return (
            (operation in self.operations or ALL in self.operations)
            and (served.group in self.groups or ALL in self.groups)
            and (version in self.versions or ALL in self.versions)
            and self.scope in (ALL, "Namespaced" if served.namespaced else "Cluster")
            and any(r in (ALL, served.plural) and s in (ALL, subresource) for r, s in self.resources)
        )


@dataclass(frozen=True, slots=True)
class Webhook:
    configuration: str
    name: str
    mutating: bool
    client: Mapping[str, Any]
    rules: tuple[Rule, ...]
    fail: bool
    equivalent: bool
    namespaces: LabelSelector
    objects: LabelSelector
    quiet: bool  # no side effects on a dry run
    timeout: float
    review_version: str
    conditions: tuple[tuple[str, Condition], ...]
    reinvoke: bool

    def version_for(self, served: ServedKind, version: str, operation: str, subresource: str) -> str | None:
        """The version in which the webhook wants to see a request made in `version`; None: it does not want it."""
        candidates = [version]
        if self.equivalent:
            candidates += [other for other, its in served.versions.items() if other != version and its.served]
        for candidate in candidates:
            if any(rule.matches(served, candidate, operation, subresource) for rule in self.rules):
                return candidate
        return None

    def concerns(self, served: ServedKind, operation: str, subresource: str) -> bool:
        """Whether it may want requests on the kind, in whatever version they are made."""
        if (served.group, served.plural) in EXEMPT:
            return False
        return any(rule.matches(served, v, operation, subresource) for rule in self.rules for v in served.versions)


def parse_configuration(
    obj: Mapping[str, Any], *, mutating: bool, compile_condition: CompileCondition
) -> tuple[Webhook, ...]:
    name = obj["metadata"]["name"]
    return tuple(_parse(name, raw, mutating, compile_condition) for raw in obj.get("webhooks") or ())


def _parse(configuration: str, raw: Mapping[str, Any], mutating: bool, compile_condition: CompileCondition) -> Webhook:
    versions = [v for v in raw.get("admissionReviewVersions") or ("v1",) if v in ("v1", "v1beta1")]
    return Webhook(
        configuration=configuration,
        name=raw.get("name", ""),
        mutating=mutating,
        client=raw.get("clientConfig") or {},
        rules=tuple(Rule.parse(rule) for rule in raw.get("rules") or ()),
        fail=raw.get("failurePolicy", "Fail") != "Ignore",
        equivalent=raw.get("matchPolicy", "Equivalent") != "Exact",
        namespaces=_selector(raw.get("namespaceSelector")),
        objects=_selector(raw.get("objectSelector")),
        quiet=raw.get("sideEffects") in ("None", "NoneOnDryRun"),
        timeout=float(raw.get("timeoutSeconds") or 10),
        review_version=versions[0] if versions else "v1",
        conditions=tuple(
            (c.get("expression", ""), _condition(c.get("expression", ""), compile_condition))
            for c in raw.get("matchConditions") or ()
        ),
        reinvoke=raw.get("reinvocationPolicy") == "IfNeeded",
    )


def _selector(raw: Mapping[str, Any] | None) -> LabelSelector:
    try:
        return from_label_selector(raw or {})
    except SelectorError:  # refused when written; whatever slipped through matches nothing
        return NOTHING


def _condition(expression: str, compile_condition: CompileCondition) -> Condition:
    try:
        return compile_condition(expression)
    except ConditionError as broken:
        text = str(broken)

        def fails(_: Mapping[str, Any]) -> bool:
            raise ConditionError(text)

        return fails
