"""Which ServiceTemplate a service gets next on the way to the one that is desired. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from homeport.api.k0rdent.v1beta1 import ServiceTemplate, ServiceTemplateChain
from homeport.api.k0rdent.v1beta1.chain import ChainSpec
from homeport.api.k0rdent.v1beta1.service import Service, ServiceUpgradePaths, UpgradePath, VersionedTemplate
from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.sprig.semver import parse, satisfies
from homeport.platforms.k0rdent.management.chain import chain_error


def successors(spec: ChainSpec, template: str) -> list[str]:
    return [up.name for each in spec.supported_templates if each.name == template for up in each.available_upgrades]


def paths(spec: ChainSpec, start: str) -> list[list[str]]:
    """Every way from `start` along the chain, without `start` itself, to a template that leads no further."""
    found: list[list[str]] = []
    open_: list[list[str]] = [[start]]
    while open_ and len(found) < 100:
        way = open_.pop(0)
        more = [each for each in successors(spec, way[-1]) if each not in way]
        if not more and len(way) > 1:
            found.append(way[1:])
        open_.extend([*way, each] for each in more)
    return found


def is_listed(spec: ChainSpec, template: str) -> bool:
    return any(each.name == template for each in spec.supported_templates)


def reaches(spec: ChainSpec, start: str, goal: str) -> bool:
    return start == goal or any(goal in way for way in paths(spec, start))


def next_template(spec: ChainSpec, current: str, goal: str, versions: Mapping[str, str]) -> str:
    """The smallest step towards `goal` that the chain allows; '' if no way leads there.

    Where a template has no version to compare, the shortest way counts.
    """
    if current == goal:
        return goal
    ways = [way[: way.index(goal) + 1] for way in paths(spec, current) if goal in way]
    if not ways:
        return ""
    try:
        return min((way[0] for way in ways), key=lambda name: parse(versions.get(name, name)).key)
    except CallError:
        return min(ways, key=len)[0]


def version_of(template: ServiceTemplate | None, name: str) -> str:
    """The version that a template stands for: its own, that of its chart, or its name."""
    if template is None:
        return name
    chart = template.spec.helm.chart_spec if template.spec.helm is not None else None
    return template.spec.version or (chart.version if chart is not None else "") or name


def constraint_problem(template: ServiceTemplate, kubernetes: str) -> str:
    """Why a service can't be in a cluster of this Kubernetes version; '' if it can, or the version is not known yet."""
    wanted = template.status.k8s_constraint
    if not wanted or not kubernetes:
        return ""
    try:
        fits = satisfies(wanted, kubernetes.partition("+")[0])
    except CallError:
        return ""  # the template reports it
    name = template.metadata.name
    return "" if fits else f"ServiceTemplate {name} needs Kubernetes {wanted}, and the cluster has {kubernetes}"


def upgrade_paths(
    service: Service, current: str, chain: ServiceTemplateChain | None, versions: Mapping[str, str]
) -> ServiceUpgradePaths:
    """What status.servicesUpgradePaths says of a service. Without a chain, only its own template is listed."""
    ways = [[current]] if chain is None else paths(chain.spec, current)
    return ServiceUpgradePaths(
        name=service.name,
        namespace=service.namespace,
        template=current,
        available_upgrades=[
            UpgradePath(
                upgrade_paths=way,
                versions=[VersionedTemplate(name=each, version=versions.get(each, each)) for each in way],
            )
            for way in ways
        ],
    )


@dataclass(frozen=True, slots=True)
class Chosen:
    """The template to deploy now; '' with the reason why there is none."""

    template: str = ""
    refusal: str = ""


def choose(
    service: Service,
    chain: ServiceTemplateChain | None,
    stored: str,
    *,
    deployed: bool,
    versions: Mapping[str, str],
) -> Chosen:
    """`stored`: the template of the ServiceSet now, '' if it has none; `deployed`: whether the cluster has it."""
    goal = service.template
    if not service.template_chain:
        return Chosen(goal)
    wrong = chain_problem(service, chain)
    if wrong or chain is None:
        return Chosen(stored, wrong)
    if not stored or stored == goal:
        return Chosen(goal)
    if not deployed:
        back = reaches(chain.spec, goal, stored)  # an upgrade that does not succeed can be taken back
        return Chosen(goal if back else stored)
    step = next_template(chain.spec, stored, goal, versions)
    if not step:
        return Chosen(stored, no_way(service, stored))
    return Chosen(step)


def chain_problem(service: Service, chain: ServiceTemplateChain | None) -> str:
    """Why the chain of a service can't be used; '' if it can."""
    name, label = service.template_chain, f"service {service.namespace}/{service.name}"
    if not name:
        return ""
    if chain is None:
        return f'{label}: ServiceTemplateChain "{name}" does not exist: create it'
    if wrong := chain_error(chain.spec):
        return f"{label}: ServiceTemplateChain {name} is not valid: {wrong}"
    if not is_listed(chain.spec, service.template):
        known = ", ".join(each.name for each in chain.spec.supported_templates)
        return f"{label}: ServiceTemplateChain {name} does not list template {service.template}: it has {known}"
    return ""


def no_way(service: Service, current: str) -> str:
    return (
        f"service {service.namespace}/{service.name}: service upgrade is forbidden: ServiceTemplateChain "
        f"{service.template_chain} does not lead from {current} to {service.template}"
    )


def chain_versions(chain: ServiceTemplateChain | None, templates: Mapping[str, ServiceTemplate]) -> dict[str, str]:
    """Versions of the templates of a chain: as the chain has them, or as the templates do."""
    if chain is None:
        return {}
    written: Sequence[tuple[str, str]] = [
        (up.name, up.version) for each in chain.spec.supported_templates for up in each.available_upgrades if up.version
    ]
    listed = {each.name: version_of(templates.get(each.name), each.name) for each in chain.spec.supported_templates}
    return {**listed, **dict(written)}
