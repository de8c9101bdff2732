"""The services that a cluster gets now, out of those that are desired: order, dependencies, steps. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from homeport.addons.dependency import find_cycle
from homeport.api.k0rdent.v1beta1 import ServiceSet, ServiceTemplate, ServiceTemplateChain
from homeport.api.k0rdent.v1beta1.multicluster import ServiceWithValues
from homeport.api.k0rdent.v1beta1.service import (
    DEFAULT_NAMESPACE,
    Service,
    ServiceState,
    ServiceUpgradePaths,
)
from homeport.platforms.k0rdent.service.state import DEPLOYED, PENDING, type_of
from homeport.platforms.k0rdent.service.step import chain_versions, choose, upgrade_paths, version_of

Place = tuple[str, str]  # namespace and name of a service


@dataclass(frozen=True, slots=True)
class Shelf:
    """Templates and chains of the namespace in which services look for them."""

    templates: Mapping[str, ServiceTemplate]
    chains: Mapping[str, ServiceTemplateChain]


@dataclass(slots=True)
class Plan:
    services: list[ServiceWithValues] = field(default_factory=list)
    pending: list[ServiceState] = field(default_factory=list)  # that the ServiceSet does not have yet
    upgrades: list[ServiceUpgradePaths] = field(default_factory=list)
    references: list[str] = field(default_factory=list)  # what is wrong with templates and chains
    dependencies: list[str] = field(default_factory=list)  # what is wrong with dependsOn


def place_of(service: Service | ServiceWithValues | ServiceState) -> Place:
    return service.namespace or DEFAULT_NAMESPACE, service.name


def label(place: Place) -> str:
    return f"{place[0]}/{place[1]}"


def depended(service: Service) -> list[Place]:
    return [(each.namespace or DEFAULT_NAMESPACE, each.name) for each in service.depends_on]


def dependency_problems(services: Sequence[Service]) -> list[str]:
    """Dependencies on services that are not listed, and circles."""
    listed = {place_of(each) for each in services}
    graph = {label(place_of(each)): [label(one) for one in depended(each)] for each in services}
    wrong = [
        f"service {label(place_of(each))}: dependsOn: service {label(one)} is not in the list"
        for each in services
        for one in depended(each)
        if one not in listed
    ]
    for each in services:
        if cycle := find_cycle(graph, label(place_of(each))):
            return [*wrong, f"services depend on each other in a circle ({' -> '.join(cycle)}): remove one of them"]
    return wrong


def ordered(services: Sequence[Service]) -> list[Service]:
    """What others depend on first; otherwise as written."""
    left, done, made = list(services), set[Place](), list[Service]()
    while left:
        free = next((each for each in left if all(one in done for one in depended(each))), left[0])
        left.remove(free)
        done.add(place_of(free))
        made.append(free)
    return made


def plan(services: Sequence[Service], held: ServiceSet | None, shelf: Shelf, now: str) -> Plan:
    """`held`: the ServiceSet as it is now."""
    made = Plan(dependencies=dependency_problems(services))
    stored = {place_of(each): each for each in held.spec.services} if held is not None else {}
    states = {place_of(each): each for each in held.status.services} if held is not None else {}
    if made.dependencies:
        made.services = list(stored.values())  # nothing is changed until the list makes sense
        return made
    finished = {place_of(each) for each in services if _is_finished(each, stored, states, shelf)}
    for each in ordered(services):
        _add(made, each, stored.get(place_of(each)), states.get(place_of(each)), finished, shelf, now)
    return made


def _add(
    made: Plan,
    service: Service,
    stored: ServiceWithValues | None,
    state: ServiceState | None,
    finished: Iterable[Place],
    shelf: Shelf,
    now: str,
) -> None:
    chain = shelf.chains.get(service.template_chain) if service.template_chain else None
    versions = chain_versions(chain, shelf.templates)
    current = stored.template if stored is not None else ""
    deployed = is_deployed(stored, state)
    chosen = choose(service, chain, current, deployed=deployed, versions=versions)
    if chosen.refusal:
        made.references.append(chosen.refusal)
    elif wrong := template_problem(service, chosen.template, shelf.templates.get(chosen.template)):
        made.references.append(wrong)
    made.upgrades.append(upgrade_paths(service, current or service.template, chain, versions))
    missing = [one for one in depended(service) if one not in set(finished)]
    if service.disable or missing or not chosen.template:
        if stored is not None:
            made.services.append(stored)  # as it is, until what it waits for is there
        else:
            made.pending.append(_pending(service, missing, chosen.refusal, shelf, now))
        return
    version = service.version if chosen.template == service.template else ""  # a step on the way has its own
    version = version or versions.get(chosen.template) or ""
    version = version or version_of(shelf.templates.get(chosen.template), chosen.template)
    made.services.append(with_values(service, chosen.template, version))


def with_values(service: Service, template: str, version: str) -> ServiceWithValues:
    return ServiceWithValues(
        name=service.name,
        namespace=service.namespace or DEFAULT_NAMESPACE,
        template=template,
        version=version,
        values=service.values,
        values_from=service.values_from,
        helm_action=service.helm_action,
        helm_options=service.helm_options,
    )


def template_problem(service: Service, name: str, template: ServiceTemplate | None) -> str:
    where = f"service {label(place_of(service))}"
    if template is None:
        return f'{where}: ServiceTemplate "{name}" does not exist: create it'
    if template.status.observed_generation == template.metadata.generation and not template.status.valid:
        return f"{where}: ServiceTemplate {name} is not valid: {template.status.validation_error}"
    return ""


def is_deployed(stored: ServiceWithValues | None, state: ServiceState | None) -> bool:
    """Whether the cluster has what the ServiceSet says."""
    if stored is None or state is None:
        return False
    return state.state == DEPLOYED and (state.template, state.version) == (stored.template, stored.version)


def _is_finished(
    service: Service, stored: Mapping[Place, ServiceWithValues], states: Mapping[Place, ServiceState], shelf: Shelf
) -> bool:
    """Whether those that depend on the service can follow: the desired template is deployed."""
    held = stored.get(place_of(service))
    return held is not None and held.template == service.template and is_deployed(held, states.get(place_of(service)))


def _pending(service: Service, missing: Sequence[Place], refusal: str, shelf: Shelf, now: str) -> ServiceState:
    why = refusal
    if missing:
        why = f"waits for {', '.join(f'service {label(one)}' for one in missing)}"
    elif service.disable:
        why = "disabled"
    return ServiceState(
        type=type_of(shelf.templates.get(service.template)),
        name=service.name,
        namespace=service.namespace or DEFAULT_NAMESPACE,
        template=service.template,
        state=PENDING,
        failure_message=why,
        last_state_transition_time=now,
    )
