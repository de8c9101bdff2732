"""Whether a ClusterDeployment can be made: its template, its values, what they need. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from homeport.api.k0rdent.v1beta1 import ClusterDeployment, ClusterTemplate
from homeport.infra.preflight.near import near
from homeport.platforms.k0rdent.catalogue import CLUSTER_CHARTS, chart_name
from homeport.platforms.k0rdent.cluster.config import ClusterConfig, read_config
from homeport.platforms.k0rdent.cluster.reading import ROOT
from homeport.platforms.k0rdent.deployment.state import CHART, TEMPLATE, Finding, failed, good, progressing
from homeport.platforms.k0rdent.values import Fault, faults


@dataclass(frozen=True, slots=True)
class Checked:
    findings: tuple[Finding, ...]
    config: ClusterConfig | None = None


def check(
    deployment: ClusterDeployment, template: ClusterTemplate | None, providers: frozenset[str], names: Iterable[str]
) -> Checked:
    """`providers`: those that the plane offers. `names`: of templates in the namespace."""
    found = template_finding(deployment, template, providers, names)
    if not found.good or template is None:
        return Checked((found,))
    config, wrong = read_values(template, deployment)
    if config is None:
        said = "; ".join(f"{each.field}: {each.message}" for each in wrong)
        return Checked((found, failed(CHART, said)))
    return Checked((found, good(CHART)), config)


def template_finding(
    deployment: ClusterDeployment, template: ClusterTemplate | None, providers: frozenset[str], names: Iterable[str]
) -> Finding:
    name = deployment.spec.template
    if template is None:
        where = f"in namespace {deployment.metadata.namespace}"
        return failed(TEMPLATE, f'spec.template: ClusterTemplate "{name}" does not exist {where}{near(name, names)}')
    status = template.status
    if status.observed_generation != template.metadata.generation:
        return progressing(TEMPLATE, f"ClusterTemplate {name} is being read")
    if not status.valid:
        return failed(TEMPLATE, f"ClusterTemplate {name} is not valid: {status.validation_error}")
    missing = sorted(set(status.providers) - providers)
    if missing:
        text = f"ClusterTemplate {name} needs providers that Management kcm does not offer: {', '.join(missing)}"
        return progressing(TEMPLATE, text)
    return good(TEMPLATE)


def read_values(template: ClusterTemplate, deployment: ClusterDeployment) -> tuple[ClusterConfig | None, list[Fault]]:
    """The values of the cluster, or everything that is wrong with them."""
    chart = chart_name(template.spec.helm)
    known = CLUSTER_CHARTS.get(chart)
    if known is None:
        return None, [Fault("spec.template", f"chart {chart!r} of the template is not known")]
    values = deployment.spec.config or {}
    wrong = list(faults(known.schema, values, ROOT))
    return (None, wrong) if wrong else read_config(known.chart, values)
