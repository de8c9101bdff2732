"""ResourceQuota. It is kept and shown; nothing counts what a namespace uses."""

from __future__ import annotations

from collections.abc import Iterator

from homeport.apiserver.kinds.amount import is_quota_name, quantity_value, quota_name
from homeport.apiserver.kinds.check import Struct, invalid, required
from homeport.apiserver.kinds.strategy import WithStatus
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause

_PODS = frozenset({"pods"})
_COMPUTE = _PODS | {"cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"}
_STORAGE = frozenset({"persistentvolumeclaims", "requests.storage"})
# Each scope, and the resources that can be limited within it.
_SCOPES = {
    "Terminating": _COMPUTE, "NotTerminating": _COMPUTE, "NotBestEffort": _COMPUTE, "PriorityClass": _COMPUTE,
    "CrossNamespacePodAffinity": _COMPUTE, "BestEffort": _PODS, "VolumeAttributesClass": _STORAGE,
}  # fmt: skip
_VALUED = frozenset({"PriorityClass", "VolumeAttributesClass"})
_OPPOSITES = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_ONLY_EXISTS = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


class ResourceQuota(WithStatus):
    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        spec = obj.get("spec") or {}
        causes = list(_amounts("spec.hard", spec.get("hard")))
        scopes = spec.get("scopes") or []
        if scopes:
            causes += _scopes(spec, scopes)
        if spec.get("scopeSelector") is not None:
            causes += _selector("spec.scopeSelector.matchExpressions", spec)
        if old is not None and set(scopes) != set(old["spec"].get("scopes") or ()):
            causes.append(invalid("spec.scopes", scopes or None, "field is immutable"))
        return causes


class Status:
    def prepare(self, obj: Json, old: Json) -> None:
        """The registry holds everything but the status."""

    def validate(self, obj: Json, old: Json) -> list[Cause]:
        status = obj.get("status") or {}
        return [cause for part in ("hard", "used") for cause in _amounts(f"status.{part}", status.get(part))]


def _amounts(field: str, found: Json | None) -> Iterator[Cause]:
    for key, amount in (found or {}).items():
        yield from quota_name(f"{field}[{key}]", key)
        yield from quantity_value(f"{field}[{key}]", key, amount)


def _misplaced(spec: Json, scope: str) -> list[str]:
    limited = _SCOPES.get(scope)
    hard = sorted(spec.get("hard") or ())
    return [key for key in hard if limited is not None and is_quota_name(key) and key not in limited]


def _scopes(spec: Json, scopes: list[str]) -> Iterator[Cause]:
    field = "spec.scopes"
    for scope in scopes:
        if scope not in _SCOPES:
            yield invalid(field, scopes, "unsupported scope")
        for _ in _misplaced(spec, scope):
            yield invalid(field, scopes, "unsupported scope applied to resource")
    for pair in _OPPOSITES:
        if pair <= set(scopes):
            yield invalid(field, scopes, "conflicting scopes")


def _selector(field: str, spec: Json) -> Iterator[Cause]:
    rules = spec["scopeSelector"].get("matchExpressions") or []
    shown = Struct(MatchExpressions=[_shown(rule) for rule in rules] or None)
    for rule in rules:
        scope, operator, values = rule.get("scopeName", ""), rule.get("operator", ""), rule.get("values") or []
        if scope not in _SCOPES:
            yield invalid(f"{field}.scopeName", scope, "unsupported scope")
        for _ in _misplaced(spec, scope):
            yield invalid(field, shown, "unsupported scope applied to resource")
        if scope in _SCOPES.keys() - _VALUED and operator != "Exists":
            yield invalid(f"{field}.operator", operator, _ONLY_EXISTS)
        if operator in ("In", "NotIn"):
            if not values:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                yield required(f"{field}.values", detail)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                yield invalid(f"{field}.values", values, detail)
        else:
            yield invalid(f"{field}.operator", operator, "not a valid selector operator")
    given = {rule.get("scopeName") for rule in rules}
    for pair in _OPPOSITES:
        if pair <= given:
            yield invalid(field, spec.get("scopes"), "conflicting scopes")


def _shown(rule: Json) -> Struct:
    return Struct(
        ScopeName=rule.get("scopeName", ""), Operator=rule.get("operator", ""), Values=rule.get("values") or None
    )
