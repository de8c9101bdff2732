"""The ClusterAddon of a service, and the Secrets that it reads. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.api.addon.v1alpha1 import GROUP as ADDON_GROUP
from homeport.api.k0rdent.v1beta1 import ServiceSet, ServiceTemplate
from homeport.api.k0rdent.v1beta1.multicluster import ServiceWithValues
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.capi.object.ownership import owner_reference
from homeport.platforms.k0rdent.name import COMPONENT, COMPONENT_LABEL, MANAGED
from homeport.platforms.k0rdent.service.content import Content, encoded
from homeport.platforms.k0rdent.service.settings import (
    WITH_DRIFT,
    Settings,
    creates_namespace,
    disables_hooks,
    merged_options,
    takes_ownership,
    timeout_of,
)

Json = dict[str, Any]


def addon_name(owner: ServiceSet, namespace: str, name: str) -> str:
    """Names of namespaces have no dots: no two services have the same name."""
    return f"{owner.metadata.name}.{namespace}.{name}"


def _meta(owner: ServiceSet, name: str) -> Json:
    labels = {**MANAGED, COMPONENT_LABEL: COMPONENT, CLUSTER_NAME_LABEL: owner.spec.cluster}
    return {
        "name": name,
        "namespace": owner.metadata.namespace,
        "labels": labels,
        "ownerReferences": [owner_reference(owner, controller=True)],
    }


def render_copy(owner: ServiceSet, name: str, files: Mapping[str, bytes]) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _meta(owner, name),
        "type": "Opaque",
        "data": encoded(files),
    }


def render_addon(
    owner: ServiceSet,
    service: ServiceWithValues,
    template: ServiceTemplate,
    content: Content,
    settings: Settings,
    cluster: str,
    *,
    adopt: bool = False,
    paused: bool = False,
) -> Json:
    """`cluster`: name of the Cluster. `adopt`: the release may be that of a ServiceSet which this one replaces."""
    options = merged_options(template.spec.helm_options, service.helm_options)
    timeout = timeout_of(options)
    spec: Json = {
        "clusterName": cluster,
        **content.spec,
        "namespace": service.namespace,
        "createNamespace": creates_namespace(options),
        "syncPolicy": "Continuous" if settings.sync_mode == WITH_DRIFT else "OnChange",
        "conflictPolicy": "Adopt" if adopt or takes_ownership(options) else "Refuse",
        **({"driftIgnore": list(settings.exclusions)} if settings.exclusions else {}),
        **({"timeout": timeout} if timeout else {}),
        **({"paused": True} if paused else {}),
    }
    if "chart" in content.spec:
        spec |= _release(service, content, options)
    elif service.version:
        spec["version"] = service.version
    return {
        "apiVersion": f"{ADDON_GROUP}/v1alpha1",
        "kind": "ClusterAddon",
        "metadata": _meta(owner, addon_name(owner, service.namespace, service.name)),
        "spec": spec,
    }


def _release(service: ServiceWithValues, content: Content, options: Mapping[str, Any]) -> Json:
    """What a ClusterAddon with a chart says besides."""
    return {
        "releaseName": service.name,
        **({"skipCRDs": True} if options.get("skipCRDs") else {}),
        **({"disableHooks": True} if disables_hooks(options) else {}),
        **({"valuesFrom": content.values_from} if content.values_from else {}),
        **({"valuesTemplate": service.values} if service.values.strip() else {}),
    }
