"""The Deployment and the Service of a TenantControlPlane. Pure."""

from __future__ import annotations

from typing import Any

from homeport.api.meta import wire
from homeport.api.steward.v1alpha1 import BLUE_GREEN
from homeport.hosted import name as names
from homeport.hosted.service import NODE_PORTS, Port, ServiceInputs, render_service
from homeport.hosted.tenant.pod import render_pod_template
from homeport.hosted.tenant.podinputs import PodInputs


def render_deployment(inputs: PodInputs) -> dict[str, Any]:
    deployment = inputs.spec.control_plane.deployment
    extra = deployment.additional_metadata
    metadata: dict[str, Any] = {
        "name": inputs.name,
        "namespace": inputs.namespace,
        "labels": {**extra.labels, **names.labels(inputs.group, inputs.name, inputs.project)},
    }
    if extra.annotations:
        metadata["annotations"] = dict(extra.annotations)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": deployment.replicas,
            "selector": {"matchLabels": names.selector(inputs.group, inputs.name)},
            "strategy": wire(deployment.strategy) or BLUE_GREEN,
            "template": render_pod_template(inputs),
        },
    }


def render_tenant_service(inputs: PodInputs) -> dict[str, Any]:
    spec, network = inputs.spec, inputs.spec.network_profile
    service = spec.control_plane.service
    extra = service.additional_metadata
    return render_service(
        ServiceInputs(
            namespace=inputs.namespace,
            name=inputs.name,
            type=service.service_type or "ClusterIP",
            selector=names.selector(inputs.group, inputs.name),
            labels={**extra.labels, **names.labels(inputs.group, inputs.name, inputs.project)},
            annotations=extra.annotations,
            ports=_ports(inputs),
            address=network.address,
            external=bool(network.allow_address_as_external_ip),
            balancer_class=network.load_balancer_class,
            source_ranges=network.load_balancer_source_ranges,
        )
    )


def _ports(inputs: PodInputs) -> list[Port]:
    found = [_port(names.API_PORT_NAME, inputs.port, inputs)]
    if inputs.spec.addons.konnectivity is not None:
        server = inputs.spec.addons.konnectivity.server
        found.append(_port(names.KONNECTIVITY_PORT_NAME, server.port, inputs))
    found.extend(
        Port(each.name, each.port, each.target_port, each.protocol or "TCP", app_protocol=each.app_protocol or "")
        for each in inputs.spec.control_plane.service.additional_ports
    )
    return found


def _port(name: str, port: int, inputs: PodInputs) -> Port:
    """A port in the range of node ports is the node port, too: API servers tell Pods the port they listen on."""
    on_node = inputs.spec.control_plane.service.service_type == "NodePort" and port in NODE_PORTS
    return Port(name, port, port, node_port=port if on_node else 0)
