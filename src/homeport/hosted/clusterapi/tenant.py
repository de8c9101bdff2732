"""The TenantControlPlane of a Cluster API control plane. Pure."""

from __future__ import annotations

from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import wire
from homeport.api.steward.controlplane import HostedControlPlane, Program
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.capi.object.ownership import owner_reference
from homeport.hosted.endpoint import Endpoint, parse_endpoint
from homeport.hosted.flavour import Flavour
from homeport.hosted.tenant.route import GATEWAY_PORT, INGRESS_PORT

Json = dict[str, Any]


def render_tenant(flavour: Flavour, plane: HostedControlPlane, cluster: Cluster) -> Json:
    """Of the same name. Networks, port and domain come from the Cluster."""
    kind, meta = flavour.tenant.__resource__, plane.metadata
    spec = plane.spec
    body: Json = {
        "controlPlane": {"deployment": _deployment(plane), "service": _service(plane), **_route(plane)},
        "kubernetes": {
            "version": spec.version,
            "kubelet": wire(spec.kubelet),
            **({"admissionControllers": spec.admission_controllers} if spec.admission_controllers else {}),
        },
        "networkProfile": _network(plane, cluster),
        "addons": _addons(plane),
    }
    for field, value in (
        ("dataStore", spec.data_store_name),
        ("dataStoreSchema", spec.data_store_schema),
        ("dataStoreUsername", spec.data_store_username),
    ):
        if value:
            body[field] = value
    labels = {CLUSTER_NAME_LABEL: cluster.metadata.name}
    return {
        **kind.type_meta,
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "labels": labels,
            "ownerReferences": [owner_reference(plane, controller=True)],
        },
        "spec": body,
    }


def _deployment(plane: HostedControlPlane) -> Json:
    spec, given = plane.spec, plane.spec.deployment
    programs: dict[str, Program] = {
        "apiServer": spec.api_server,
        "controllerManager": spec.controller_manager,
        "scheduler": spec.scheduler,
    }
    resources = {name: wire(each.resources) for name, each in programs.items() if each.resources is not None}
    if spec.kine.resources is not None:
        resources["kine"] = wire(spec.kine.resources)
    extra = {name: each.extra_args for name, each in programs.items() if each.extra_args}
    if spec.kine.extra_args:
        extra["kine"] = spec.kine.extra_args
    mounts = {name: wire(each.extra_volume_mounts) for name, each in programs.items() if each.extra_volume_mounts}
    images = {f"{name}Image": each.container_image_name for name, each in programs.items() if each.container_image_name}
    found: Json = {
        "replicas": spec.replicas,
        "registrySettings": {"registry": spec.registry, **images},
        "resources": resources,
        "extraArgs": extra,
        "additionalVolumeMounts": mounts,
        "additionalMetadata": wire(given.additional_metadata),
        "podAdditionalMetadata": wire(given.pod_additional_metadata),
        "additionalContainers": given.extra_containers,
        "additionalInitContainers": given.extra_init_containers,
        "additionalVolumes": given.extra_volumes,
        "affinity": given.affinity,
        "nodeSelector": given.node_selector,
        "runtimeClassName": given.runtime_class_name,
        "serviceAccountName": given.service_account_name,
        "strategy": wire(given.strategy) if given.strategy is not None else None,
        "tolerations": given.tolerations,
        "topologySpreadConstraints": given.topology_spread_constraints,
    }
    return {name: value for name, value in found.items() if value or name == "replicas"}


def _service(plane: HostedControlPlane) -> Json:
    network = plane.spec.network
    extra = {"labels": network.service_labels, "annotations": network.service_annotations}
    found: Json = {"serviceType": network.service_type}
    if any(extra.values()):
        found["additionalMetadata"] = {name: value for name, value in extra.items() if value}
    return found


def _route(plane: HostedControlPlane) -> Json:
    network = plane.spec.network
    given = network.ingress or network.gateway
    if given is None:
        return {}
    extra = {"labels": given.extra_labels, "annotations": given.extra_annotations}
    made: Json = {"hostname": given.hostname, "additionalMetadata": {k: v for k, v in extra.items() if v}}
    if network.ingress is not None:
        ingress = network.ingress
        made |= {"ingressClassName": ingress.class_name, "controllerType": ingress.controller_type}
        return {"ingress": {name: value for name, value in made.items() if value}}
    assert network.gateway is not None
    made["parentRefs"] = network.gateway.parent_refs
    return {"gateway": {name: value for name, value in made.items() if value}}


def route_endpoint(plane: HostedControlPlane) -> Endpoint | None:
    """Where the Cluster finds a control plane that is reached through an Ingress or a Gateway."""
    network = plane.spec.network
    given, port = (network.ingress, INGRESS_PORT) if network.ingress is not None else (network.gateway, GATEWAY_PORT)
    if given is None:
        return None
    return parse_endpoint(given.hostname) or Endpoint(given.hostname, port)


def _network(plane: HostedControlPlane, cluster: Cluster) -> Json:
    network, given = plane.spec.network, cluster.spec.cluster_network
    dns = network.dns_service_ips
    if not dns and plane.spec.addons.core_dns is not None:
        dns = plane.spec.addons.core_dns.dns_service_ips
    balancer = network.load_balancer_config
    found: Json = {
        "address": network.service_address,
        "certSANs": network.cert_sans,
        "port": given.api_server_port or 6443,
        "serviceCidr": ",".join(given.services.cidr_blocks),
        "podCidr": ",".join(given.pods.cidr_blocks),
        "clusterDomain": given.service_domain,
        "dnsServiceIPs": dns,
        "loadBalancerClass": balancer.load_balancer_class if balancer is not None else "",
        "loadBalancerSourceRanges": balancer.load_balancer_source_ranges if balancer is not None else [],
    }
    return {name: value for name, value in found.items() if value}


def _addons(plane: HostedControlPlane) -> Json:
    """An add-on that is switched on with `{}` stays so."""
    addons, found = plane.spec.addons, {}
    if addons.core_dns is not None:
        found["coreDNS"] = {k: v for k, v in wire(addons.core_dns).items() if k != "dnsServiceIPs"}
    for name, each in (
        ("kubeProxy", addons.kube_proxy),
        ("konnectivity", addons.konnectivity),
        ("tcpProxy", addons.tcp_proxy),
        ("workerBootstrap", addons.worker_bootstrap),
    ):
        if each is not None:
            found[name] = wire(each)
    return found
