"""Which objects of kcm-system the rules of an AccessManagement give to which namespaces. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeport.api.k0rdent.v1beta1 import (
    ClusterAuditPolicy,
    ClusterAuthentication,
    ClusterTemplate,
    ClusterTemplateChain,
    Credential,
    DataSource,
    ServiceTemplate,
    ServiceTemplateChain,
)
from homeport.api.k0rdent.v1beta1.access import AccessResource, AccessRule, TargetNamespaces
from homeport.api.meta import Resource
from homeport.client.protocol import Key
from homeport.infra.preflight.near import near
from homeport.machinery.selector import LabelSelector, SelectorError, from_label_selector, parse_labels
from homeport.platforms.k0rdent.management.credential import SECRET
from homeport.platforms.k0rdent.name import SYSTEM_NAMESPACE

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
SHARED_TYPES = (
    Credential,
    ClusterTemplate,
    ServiceTemplate,
    ClusterTemplateChain,
    ServiceTemplateChain,
    ClusterAuthentication,
    ClusterAuditPolicy,
    DataSource,
)
# In the order in which copies are made. They go in the opposite order: a Credential before its Secret.
SHARED: tuple[Resource, ...] = (
    CONFIG_MAP,
    SECRET,
    *(each.__resource__ for each in SHARED_TYPES),
)
_KINDS: Mapping[str, Resource] = {each.kind: each for each in SHARED}
_CHOSEN = (CONFIG_MAP, SECRET)  # kinds of which a rule has to say which objects it means
_OLD_LISTS: Mapping[str, Resource] = {
    "cluster_template_chains": ClusterTemplateChain.__resource__,
    "service_template_chains": ServiceTemplateChain.__resource__,
    "credentials": Credential.__resource__,
    "cluster_authentications": ClusterAuthentication.__resource__,
    "data_sources": DataSource.__resource__,
    "cluster_audit_policies": ClusterAuditPolicy.__resource__,
}

Labels = Mapping[str, str]
Labelled = Mapping[str, Labels]  # labels of objects, by their name


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """A copy that should exist."""

    kind: str
    namespace: str
    name: str


@dataclass(slots=True)
class Granted:
    targets: dict[Target, Key] = field(default_factory=dict)  # with the object that is copied
    errors: dict[str, list[str]] = field(default_factory=dict)  # by kind

    def give(self, kind: str, namespace: str, source: Key) -> None:
        if namespace == source.namespace:
            return
        held = self.targets.setdefault(Target(kind, namespace, source.name), source)
        if held != source:
            self.fault(kind, f"{kind} {source} is not copied to {namespace}: {held} has the same name")

    def fault(self, kind: str, text: str) -> None:
        said = self.errors.setdefault(kind, [])
        if text not in said:
            said.append(text)


def granted(rules: Iterable[AccessRule], namespaces: Labelled, sources: Mapping[str, Labelled]) -> Granted:
    """`sources`: objects of kcm-system by kind."""
    made = Granted()
    for number, rule in enumerate(rules):
        path = f"spec.accessRules[{number}]"
        try:
            spaces = _namespaces(rule.target_namespaces, namespaces)
        except SelectorError as error:
            made.fault("", f"{path}.targetNamespaces: {error}")
            continue
        for kind, name in _objects(rule, path, sources, made):
            for space in spaces:
                made.give(kind, space, Key(SYSTEM_NAMESPACE, name))
    return made


def add_templates(
    made: Granted, chain: str, template: str, listed: Mapping[str, Sequence[str]], known: Labelled
) -> None:
    """With a chain come its templates. `listed`: their names by chain. `known`: templates of kcm-system."""
    for target in [each for each in made.targets if each.kind == chain]:
        for name in listed.get(target.name, ()):
            if name in known:
                made.give(template, target.namespace, Key(SYSTEM_NAMESPACE, name))
            else:
                made.fault(
                    template, f'{template} "{name}" of {chain} {target.name} does not exist in {SYSTEM_NAMESPACE}'
                )


def add_secrets(made: Granted, kind: str, secrets: Mapping[str, Key]) -> None:
    """With an object comes the Secret that it names: it can't use one of another namespace. `secrets`: by name."""
    for target in [each for each in made.targets if each.kind == kind]:
        if target.name in secrets:
            made.give(SECRET.kind, target.namespace, secrets[target.name])


def _namespaces(target: TargetNamespaces, namespaces: Labelled) -> list[str]:
    """Without kcm-system, where the originals are."""
    if target.list:
        found = [each for each in target.list if each in namespaces]
    else:
        chosen = _selector(target.selector, target.string_selector)
        found = [name for name, labels in namespaces.items() if chosen is None or chosen.matches(labels)]
    return [each for each in found if each != SYSTEM_NAMESPACE]


def _selector(given: Any, text: str) -> LabelSelector | None:
    """None: everything."""
    if given is not None:
        return from_label_selector(given)
    return parse_labels(text) if text else None


def _objects(rule: AccessRule, path: str, sources: Mapping[str, Labelled], made: Granted) -> Iterator[tuple[str, str]]:
    for attribute, kind in _OLD_LISTS.items():
        yield from _named(kind.kind, getattr(rule, attribute), sources, made)
    for number, each in enumerate(rule.resources):
        wrong = _error(each)
        if wrong:
            made.fault(each.kind, f"{path}.resources[{number}]{wrong}")
        elif each.names:
            yield from _named(each.kind, each.names, sources, made)
        else:
            try:
                chosen = _selector(each.selector, each.string_selector)
            except SelectorError as error:
                made.fault(each.kind, f"{path}.resources[{number}]: {error}")
                continue
            matches: Callable[[Labels], bool] = (lambda labels: True) if chosen is None else chosen.matches
            yield from ((each.kind, name) for name, labels in sources[each.kind].items() if matches(labels))


def _named(kind: str, names: list[str], sources: Mapping[str, Labelled], made: Granted) -> Iterator[tuple[str, str]]:
    held = sources[kind]
    for name in names:
        if name in held:
            yield kind, name
        else:
            made.fault(kind, f'{kind} "{name}" does not exist in {SYSTEM_NAMESPACE}{near(name, held)}')


def _error(given: AccessResource) -> str:
    known = _KINDS.get(given.kind)
    if known is None:
        return f'.kind: "{given.kind}" can\'t be shared; kinds that can are {", ".join(sorted(_KINDS))}'
    if given.api_group and given.api_group != known.group:
        return f'.apiGroup: "{given.api_group}": {given.kind} is of the API group "{known.group}"'
    if known in _CHOSEN and not (given.names or given.selector or given.string_selector):
        return f": set names or a selector: a rule for all objects of kind {given.kind} would share too much"
    return ""
