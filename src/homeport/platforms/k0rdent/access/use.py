"""Which objects the ClusterDeployments of a namespace use, so that they are not taken away. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from homeport.api.k0rdent.v1beta1 import ClusterDeployment


def names_used(deployment: ClusterDeployment) -> dict[str, set[str]]:
    """Names of objects of its namespace, by kind."""
    spec = deployment.spec
    return {
        "ClusterTemplate": {spec.template},
        "Credential": {spec.credential},
        "ClusterAuthentication": {spec.cluster_auth},
        "ClusterAuditPolicy": {spec.audit_policy},
        "DataSource": {spec.data_source},
        "ServiceTemplate": {each.template for each in spec.service_spec.services},
        "ServiceTemplateChain": {each.template_chain for each in spec.service_spec.services},
    }


def users_of(kind: str, name: str, deployments: Iterable[ClusterDeployment]) -> list[str]:
    return sorted(each.metadata.name for each in deployments if name in names_used(each).get(kind, set()))
