"""Role-based access control, decided from memory.

    authorize > cached verdict for (user, groups, verb, resource, namespace)?
                  no: bindings of the subject > roles > rules > verdict

A verdict does not depend on the object's name; names that rules single out are a small table inside it. So the cache
stays small however many objects there are. Any change to a role or a binding empties it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from homeport.apiserver.auth.decision import Attributes, Decision
from homeport.apiserver.auth.rbac.rule import Rule, parse_rules
from homeport.apiserver.auth.source import Json, follow
from homeport.apiserver.request import User
from homeport.machinery.selector import SelectorError, from_label_selector
from homeport.store import Store

GROUP = "rbac.authorization.k8s.io"
ROLES, CLUSTER_ROLES = f"roles.{GROUP}", f"clusterroles.{GROUP}"
ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS = f"rolebindings.{GROUP}", f"clusterrolebindings.{GROUP}"

MASTERS = "system:masters"
CHANGES_PATH = "/homeport/changes"  # its answer has only what the user may read
# Health is answered to everybody, whatever the roles say.
ALWAYS_ALLOWED = frozenset({"/healthz", "/livez", "/readyz", CHANGES_PATH})
CACHE_LIMIT = 50_000

_MASTER = Decision(True, "")
_ALWAYS = Decision(True, "")


class _Grant(NamedTuple):
    """One subject of one binding."""

    role_kind: str
    role_name: str
    namespace: str  # '' for a ClusterRoleBinding
    text: str  # for Decision.reason


@dataclass(slots=True)
class _Verdict:
    denied: Decision
    allowed: Decision | None = None
    named: dict[str, Decision] = field(default_factory=dict)


class Roles:
    """Roles and ClusterRoles, the aggregated ones with the rules of those they select."""

    def __init__(self) -> None:
        self._roles: dict[tuple[str, str], tuple[Rule, ...]] = {}
        self._cluster: dict[str, Json] = {}
        self._effective: dict[str, tuple[Rule, ...]] = {}

    def put(self, namespace: str, name: str, obj: Json) -> None:
        if namespace:
            self._roles[namespace, name] = parse_rules(obj)
        else:
            self._cluster[name] = obj
            self._effective.clear()

    def drop(self, namespace: str, name: str) -> None:
        if namespace:
            self._roles.pop((namespace, name), None)
        else:
            self._cluster.pop(name, None)
            self._effective.clear()

    def rules(self, kind: str, namespace: str, name: str) -> tuple[Rule, ...] | None:
        """None: there is no such role."""
        if kind == "Role":
            return self._roles.get((namespace, name))
        return self._cluster_rules(name, ()) if name in self._cluster else None

    def aggregated(self) -> Iterator[tuple[str, tuple[Rule, ...], tuple[Rule, ...]]]:
        """Name, stored rules and due rules of every ClusterRole that is put together from others."""
        for name, obj in self._cluster.items():
            if obj.get("aggregationRule"):
                yield name, parse_rules(obj), self._cluster_rules(name, ())

    def _cluster_rules(self, name: str, within: tuple[str, ...]) -> tuple[Rule, ...]:
        known = self._effective.get(name)
        if known is not None:
            return known
        obj = self._cluster[name]
        if not obj.get("aggregationRule"):
            rules = parse_rules(obj)
        else:
            found: dict[Rule, None] = {}
            for other in self._selected(obj["aggregationRule"]):
                if other != name and other not in within:
                    found.update(dict.fromkeys(self._cluster_rules(other, (*within, name))))
            rules = tuple(found)
        if not within:  # inside a cycle the rules are not yet complete
            self._effective[name] = rules
        return rules

    def _selected(self, aggregation: Mapping[str, Any]) -> list[str]:
        names: dict[str, None] = {}
        for raw in aggregation.get("clusterRoleSelectors") or ():
            try:
                selector = from_label_selector(raw)
            except SelectorError:  # selects nothing, rather than taking authorization down
                continue
            for name in sorted(self._cluster):
                if selector.matches(self._cluster[name]["metadata"].get("labels") or {}):
                    names[name] = None
        return list(names)


class Bindings:
    """Who is bound to what. ServiceAccount subjects are kept under their user name."""

    def __init__(self) -> None:
        self._grants: dict[tuple[str, str, str], dict[str, _Grant]] = {}
        self._subjects: dict[tuple[str, str], list[tuple[str, str, str]]] = {}

    def put(self, namespace: str, name: str, obj: Json) -> None:
        self.drop(namespace, name)
        ref = obj.get("roleRef") or {}
        mine = self._subjects[namespace, name] = []
        for subject in obj.get("subjects") or ():
            key = self._subject_key(namespace, subject)
            if key is None:
                continue
            grant = _Grant(ref.get("kind", ""), ref.get("name", ""), namespace, _text(namespace, name, ref, subject))
            self._grants.setdefault(key, {}).setdefault(name, grant)
            mine.append(key)

    def drop(self, namespace: str, name: str) -> None:
        for key in self._subjects.pop((namespace, name), ()):
            grants = self._grants.get(key)
            if grants is not None:
                grants.pop(name, None)
                if not grants:
                    del self._grants[key]

    @staticmethod
    def _subject_key(namespace: str, subject: Mapping[str, Any]) -> tuple[str, str, str] | None:
        kind, name = subject.get("kind", ""), subject.get("name", "")
        if kind in ("User", "Group"):
            return (namespace, kind, name)
        home = subject.get("namespace") or namespace
        if kind != "ServiceAccount" or not home:
            return None
        return (namespace, "User", f"system:serviceaccount:{home}:{name}")

    def of(self, user: User, namespace: str) -> Iterator[_Grant]:
        """Cluster-wide ones first, then those of the namespace."""
        for where in ("", namespace) if namespace else ("",):
            yield from self._grants.get((where, "User", user.name), _NO_GRANTS).values()
            for group in user.groups:
                yield from self._grants.get((where, "Group", group), _NO_GRANTS).values()


_NO_GRANTS: dict[str, _Grant] = {}


def _text(namespace: str, name: str, ref: Mapping[str, Any], subject: Mapping[str, Any]) -> str:
    kind, who = subject.get("kind", ""), subject.get("name", "")
    if kind == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or namespace}"
    binding = f'RoleBinding "{name}/{namespace}"' if namespace else f'ClusterRoleBinding "{name}"'
    return f'{binding} of {ref.get("kind", "")} "{ref.get("name", "")}" to {kind} "{who}"'


class Rbac:
    """The authorizer. `changed` counts changes of the policy; others may key their caches on it."""

    def __init__(self) -> None:
        self.roles = Roles()
        self.bindings = Bindings()
        self.changed = 0
        self._cache: dict[tuple[object, ...], _Verdict] = {}

    def follow(self, store: Store) -> Callable[[], None]:
        """Reads the policy from the store and keeps up with it."""
        stops = [
            follow(store, bucket, self._putter(table), self._dropper(table))
            for table, buckets in (
                (self.roles, (ROLES, CLUSTER_ROLES)),
                (self.bindings, (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)),
            )
            for bucket in buckets
        ]

        def stop() -> None:
            for each in stops:
                each()

        return stop

    def _putter(self, table: Roles | Bindings) -> Callable[[str, Json], None]:
        def put(key: str, obj: Json) -> None:
            namespace, _, name = key.rpartition("/")
            table.put(namespace, name, obj)
            self._forget()

        return put

    def _dropper(self, table: Roles | Bindings) -> Callable[[str], None]:
        def drop(key: str) -> None:
            namespace, _, name = key.rpartition("/")
            table.drop(namespace, name)
            self._forget()

        return drop

    def _forget(self) -> None:
        self.changed += 1
        if self._cache:
            self._cache = {}

    def authorize(self, a: Attributes) -> Decision:
        user, verb, group, _version, resource, subresource, namespace, name, path = a
        if MASTERS in user.groups:
            return _MASTER
        key = (user.name, user.groups, verb, group, resource, subresource, namespace, path)
        verdict = self._cache.get(key)
        if verdict is None:
            if path in ALWAYS_ALLOWED:
                return _ALWAYS
            verdict = self._decide_path(a) if path else self._decide(a)
            if len(self._cache) >= CACHE_LIMIT:
                self._cache = {}
            self._cache[key] = verdict
        return verdict.allowed or verdict.named.get(name, verdict.denied)

    def _decide(self, a: Attributes) -> _Verdict:
        verdict = _Verdict(Decision(False))
        errors: list[str] = []
        for grant, rule in self._granted(a.user, a.namespace, errors):
            if not rule.allows(a.verb, a.group, a.resource, a.subresource):
                continue
            decision = Decision(True, f"RBAC: allowed by {grant.text}")
            if not rule.names:
                verdict.allowed = decision
                return verdict
            for name in rule.names:
                verdict.named.setdefault(name, decision)
        verdict.denied = _denied(errors)
        return verdict

    def _decide_path(self, a: Attributes) -> _Verdict:
        errors: list[str] = []
        for grant, rule in self._granted(a.user, "", errors):
            if rule.allows_path(a.verb, a.path):
                return _Verdict(Decision(False), Decision(True, f"RBAC: allowed by {grant.text}"))
        return _Verdict(_denied(errors))

    def _granted(self, user: User, namespace: str, errors: list[str]) -> Iterator[tuple[_Grant, Rule]]:
        for grant in self.bindings.of(user, namespace):
            rules = self.roles.rules(grant.role_kind, grant.namespace, grant.role_name)
            if rules is None:
                text = f'{grant.role_kind.lower()}.{GROUP} "{grant.role_name}" not found'
                if text not in errors:
                    errors.append(text)
                continue
            for rule in rules:
                yield grant, rule

    def rules_for(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        """Every rule that holds for the user in a namespace, and what could not be resolved."""
        errors: list[str] = []
        return [rule for _, rule in self._granted(user, namespace, errors)], errors


def _denied(errors: list[str]) -> Decision:
    if not errors:
        return Decision(False)
    return Decision(False, "RBAC: " + (errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"))
