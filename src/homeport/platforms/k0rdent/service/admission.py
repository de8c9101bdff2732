"""What services of ClusterDeployments and MultiClusterServices may say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from homeport.addons.chart.values import parse_values
from homeport.addons.problem import Problem
from homeport.api.k0rdent.v1beta1 import (
    ClusterDeployment,
    MultiClusterService,
    ServiceTemplate,
    ServiceTemplateChain,
)
from homeport.api.k0rdent.v1beta1.service import Service, ServiceSpec, ServiceState
from homeport.client.errors import Cause
from homeport.client.protocol import Client, Query
from homeport.infra.preflight.near import near
from homeport.machinery.gotemplate import TemplateError, compiled
from homeport.machinery.selector import SelectorError, from_label_selector
from homeport.platforms.k0rdent.management.chain import chain_error
from homeport.platforms.k0rdent.name import SYSTEM_NAMESPACE
from homeport.platforms.k0rdent.service.plan import dependency_problems, place_of
from homeport.platforms.k0rdent.service.settings import without_effect
from homeport.platforms.k0rdent.service.state import DEPLOYED, by_place
from homeport.platforms.k0rdent.service.step import chain_problem, no_way, reaches
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]
Owner = ClusterDeployment | MultiClusterService

FIELD = "spec.serviceSpec.services"
_RELEASE = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LONGEST_RELEASE = 53


def register(hooks: Hooks, client: Client) -> None:
    judge = ServiceJudge(client)
    for kind in (ClusterDeployment, MultiClusterService):
        hooks.add(kind, validate=judge.services, warn=judge.warnings)
    hooks.add(MultiClusterService, validate=_selector)
    hooks.add(ServiceTemplate, validate_delete=judge.template_deletion)
    hooks.add(ServiceTemplateChain, warn=_chain)


def _read(obj: Json) -> Owner:
    if obj.get("kind") == "MultiClusterService":
        return msgspec.convert(obj, MultiClusterService, strict=False)
    return msgspec.convert(obj, ClusterDeployment, strict=False)


def _selector(obj: Json, old: Json | None) -> list[Cause]:
    try:
        from_label_selector((obj.get("spec") or {}).get("clusterSelector"))
    except SelectorError as error:
        return [Cause.invalid("spec.clusterSelector", error)]
    return []


def _chain(obj: Json, old: Json | None) -> list[str]:
    wrong = chain_error(msgspec.convert(obj, ServiceTemplateChain, strict=False).spec)
    return [f"the chain has no effect: {wrong}"] if wrong else []


def _home(owner: Owner) -> str:
    return SYSTEM_NAMESPACE if isinstance(owner, MultiClusterService) else owner.metadata.namespace


class ServiceJudge:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def services(self, obj: Json, old: Json | None) -> list[Cause]:
        made = _read(obj)
        before = None if old is None else _read(old)
        spec = made.spec.service_spec
        if made.metadata.deletion_timestamp or not spec.services:
            return []
        if before is not None and before.spec.service_spec == spec:
            return []
        return [*_written(spec), *await self._references(made, before)]

    async def _references(self, made: Owner, before: Owner | None) -> list[Cause]:
        query = Query(namespace=_home(made))
        templates = {each.metadata.name for each in (await self._client.list(ServiceTemplate, query)).items}
        chains = {each.metadata.name: each for each in (await self._client.list(ServiceTemplateChain, query)).items}
        known = {} if before is None else {place_of(each): each for each in before.spec.service_spec.services}
        states = by_place(made.status.services)
        found = []
        for i, each in enumerate(made.spec.service_spec.services):
            field = f"{FIELD}[{i}]"
            if each.template not in templates:
                text = f'ServiceTemplate "{each.template}" not found in namespace {query.namespace}'
                found.append(Cause.invalid(f"{field}.template", f"{text}{near(each.template, templates)}"))
            if each.template_chain:
                held, chain = known.get(place_of(each)), chains.get(each.template_chain)
                found += _steps(field, each, held, chain, states.get(place_of(each)))
        return found

    async def warnings(self, obj: Json, old: Json | None) -> list[str]:
        made = _read(obj)
        ignored = without_effect(made.spec.service_spec)
        found = [f"spec.{field} has no effect: Homeport does not act on it" for field in ignored]
        if isinstance(made, MultiClusterService) and not made.spec.cluster_selector:
            found.append("spec.clusterSelector: empty: no cluster gets the services")
        return found

    async def template_deletion(self, obj: Json) -> list[Cause]:
        """A template that services use stays."""
        name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
        owners: list[Owner] = [*(await self._client.list(ClusterDeployment, Query(namespace=namespace))).items]
        if namespace == SYSTEM_NAMESPACE:
            owners += (await self._client.list(MultiClusterService, Query())).items
        using = [
            f"{type(each).__resource__.kind} {each.metadata.name}"
            for each in owners
            if any(one.template == name for one in each.spec.service_spec.services)
        ]
        if not using:
            return []
        return [
            Cause.forbidden("metadata.name", f"services are made from the template: {', '.join(sorted(using)[:3])}")
        ]


def _steps(
    field: str,
    service: Service,
    held: Service | None,
    chain: ServiceTemplateChain | None,
    state: ServiceState | None,
) -> list[Cause]:
    """Whether the chain leads from the template that the service has to the one that it should have."""
    if wrong := chain_problem(service, chain):
        return [Cause.invalid(f"{field}.templateChain", wrong)]
    if held is None or chain is None or held.template == service.template:
        return []
    now = state.template if state is not None and state.template else held.template
    back = (state is None or state.state != DEPLOYED) and reaches(chain.spec, service.template, now)
    if back or reaches(chain.spec, now, service.template):
        return []
    return [Cause.forbidden(f"{field}.template", no_way(service, now))]


def _written(spec: ServiceSpec) -> Iterator[Cause]:
    for problem in dependency_problems(spec.services):
        yield Cause.invalid(FIELD, problem)
    for i, each in enumerate(spec.services):
        field = f"{FIELD}[{i}]"
        if len(each.name) > _LONGEST_RELEASE or not _RELEASE.fullmatch(each.name):
            text = (
                f'"{each.name}": it is the name of a Helm release: at most {_LONGEST_RELEASE} lower case letters, '
                "digits, - and ."
            )
            yield Cause.invalid(f"{field}.name", text)
        yield from _values(field, each.values)
    yield from _twice(spec.services)


def _values(field: str, text: str) -> Iterator[Cause]:
    try:
        compiled(text)
        if "{{" not in text:
            parse_values(text, "values")
    except TemplateError as error:
        yield Cause.invalid(f"{field}.values", error)
    except Problem as problem:
        yield Cause.invalid(f"{field}.values", problem.message)


def _twice(services: Sequence[Service]) -> Iterator[Cause]:
    seen = set()
    for i, each in enumerate(services):
        if place_of(each) in seen:
            yield Cause("FieldValueDuplicate", f"Duplicate value: service {'/'.join(place_of(each))}", f"{FIELD}[{i}]")
        seen.add(place_of(each))
