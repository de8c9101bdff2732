"""A TenantAddon as the ClusterAddon that brings it into its cluster. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from homeport.addons.name import OUTSIDE_ANNOTATION
from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.butler.v1alpha1 import GROUP, TenantAddon
from homeport.client.protocol import Key
from homeport.platforms.butler.addon.offer import Offer
from homeport.platforms.butler.normal.addon import AddonRequest, DefinitionModel

Json = dict[str, Any]

# On ClusterAddons of TenantAddons. Those of TenantClusters have other labels.
OWNER_UID_LABEL = f"{GROUP}/tenantaddon-uid"
_OWNER = f"{GROUP}/tenantaddon"  # an annotation: NAMESPACE/NAME
_LONGEST_RELEASE = 53


def child_name(cluster: str, addon: str) -> str:
    """Never that of an add-on of the TenantCluster itself, which is `CLUSTER-ADDON`."""
    return f"{cluster}-ta-{addon}"


def owner_of(annotations: Mapping[str, str]) -> Key | None:
    namespace, _, name = annotations.get(_OWNER, "").partition("/")
    return Key(namespace, name) if namespace and name else None


def render_child(
    addon: TenantAddon,
    request: AddonRequest,
    offer: Offer | None,
    namespace: str,
    depends_on: Sequence[str],
    *,
    outside: bool = False,
) -> Json:
    """`offer` None: a chart of its own. `namespace`: of the Cluster. `outside`: a team chose its address."""
    meta = addon.metadata
    spec: Json = {"clusterName": request.cluster, **_content(meta.name, request, offer)}
    if depends_on:
        spec["dependsOn"] = [{"name": each} for each in depends_on]
    if request.paused:
        spec["paused"] = True
    kind = ClusterAddon.__resource__
    mark = {OUTSIDE_ANNOTATION: "true"} if outside and offer is None else {}
    return {
        **kind.type_meta,
        "metadata": {
            "name": child_name(request.cluster, meta.name),
            "namespace": namespace,
            "labels": {OWNER_UID_LABEL: meta.uid},
            "annotations": {_OWNER: f"{meta.namespace}/{meta.name}", **mark},
        },
        "spec": spec,
    }


def _content(name: str, request: AddonRequest, offer: Offer | None) -> Json:
    values: Json = dict(request.values)
    found: Json = {}
    if offer is None:
        helm = request.helm
        assert helm is not None
        found = _chart(helm.repository, helm.chart, request.version)
        found |= {"releaseName": helm.release_name or name[:_LONGEST_RELEASE].rstrip("-.")}
        found |= {"namespace": helm.namespace} if helm.namespace else {}
        found |= {"createNamespace": False} if helm.create_namespace is False else {}
    elif offer.definition is not None:
        return render_defined(offer.definition, request.version, values)
    else:
        found = {"addon": offer.entry, **({"version": request.version} if request.version else {})}
    return {**found, **({"values": values} if values else {})}


def render_defined(model: DefinitionModel, version: str, values: Mapping[str, Any]) -> Json:
    """What an AddonDefinition says, in the spec of a ClusterAddon. `version` '': the default one."""
    found = _chart(model.chart.repository, model.chart.name, version or model.chart.default_version)
    found |= {"releaseName": model.release, "namespace": model.namespace, "timeout": model.timeout}
    found |= {} if model.create_namespace else {"createNamespace": False}
    both = merged(model.values, values)
    return {**found, **({"values": both} if both else {})}


def _chart(repository: str, name: str, version: str) -> Json:
    source: Json = {"repository": repository, "name": name}
    if repository.startswith("http://"):
        source["insecureHTTP"] = True
    return {"chart": source, "version": version}


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Json:
    """Maps are merged, everything else is replaced."""
    made = dict(below)
    for key, value in above.items():
        known = made.get(key)
        both = isinstance(known, Mapping) and isinstance(value, Mapping)
        made[key] = merged(known, value) if both else value  # type: ignore[arg-type]
    return made
