"""The values of the built-in templates as JSON schemas: strict, so that a typing error is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.platforms.k0rdent.cluster.part import FREE, LIST, TEXT, flag, group, number, text
from homeport.platforms.k0rdent.cluster.vendor import Chart, Vendor

Json = dict[str, Any]

POD_CIDR = "10.243.0.0/16"
SERVICE_CIDR = "10.95.0.0/16"


def _cidrs(default: str) -> Json:
    return group(cidrBlocks={**LIST, "description": "Networks in CIDR notation.", "default": [default]})


def _installation() -> dict[str, Json]:
    """Values that older charts had for the installation of the provider. They have no effect here."""
    said = "Accepted for older values. It has no effect."
    return {
        "clusterIdentity": {**FREE, "description": "Accepted for older values. spec.credential decides."},
        "capx": {**FREE, "description": said},
        "providerTemplate": {**FREE, "description": said},
        "clusterClass": {**FREE, "description": said},
        "class": {**FREE, "description": said},
        "modes": {**FREE, "description": f"{said} The template decides about the mode."},
        "nameOverride": text(said),
        "fullnameOverride": text(said),
    }


def _machine(description: str, vendor: Vendor, cpus: int, memory: str, disk: str) -> Json:
    """Machines of one role: what is set here wins over machineDefaults."""
    return group(description, **vendor.machine_fields(), **vendor.size_fields(cpus, memory, disk))


def values_schema(chart: Chart) -> Json:
    vendor, distribution, standalone = chart.vendor, chart.distribution, not chart.hosted
    endpoint = group(
        "Where the API server is reached. Reserve the address outside of DHCP.",
        host=text("IP address or host name."),
        port=number("Port.", 6443, high=65535),
    )
    roles = {"worker": _machine("Workers.", vendor, 2, "4Gi", "40Gi")}
    if standalone:
        roles["controlPlane"] = _machine("Control plane machines.", vendor, 4, "8Gi", "80Gi")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **group(
            f"Values of clusters that are made from {chart.name}.",
            **{vendor.name: group(f"{vendor.title}.", **vendor.section(), controlPlaneEndpoint=endpoint)},
            machineDefaults=_machine("All machines.", vendor, 2, "4Gi", "40Gi"),
            **roles,
            **{distribution.name: distribution.section(chart.hosted)},
            **_network(chart),
            clusterNetwork=group("Networks.", pods=_cidrs(POD_CIDR), services=_cidrs(SERVICE_CIDR)),
            workersNumber=number("Number of workers, at most 5000.", 1, low=0, high=5000),
            controlPlaneNumber=number("Number of control planes. Use an odd one.", 3 if standalone else 1),
            clusterLabels={"type": "object", "additionalProperties": TEXT, "description": "Labels of the Cluster."},
            clusterAnnotations={
                "type": "object",
                "additionalProperties": TEXT,
                "description": "Annotations of the Cluster.",
            },
            machineHealthCheck=group(
                "Replacement of unhealthy workers.",
                enabled=flag("True replaces workers that are unhealthy for 5 minutes.", False),
                maxUnhealthy=text("No worker is replaced if more than this are unhealthy.", "40%"),
            ),
            csi=group(
                "Volumes.",
                enabled=flag("False leaves the storage driver out.", True),
                **vendor.csi_fields(),
            ),
            **(_installation() if vendor.older_values else {}),
        ),
    }


def _network(chart: Chart) -> dict[str, Json]:
    plugins = chart.distribution.networks(chart.hosted)
    if not plugins:
        return {}
    chosen = group(
        "Pod network.",
        provider=text("Network plugin.", enum=list(plugins), default=plugins[0]),
        podCIDR=text("Network of the Pods. clusterNetwork.pods wins."),
        serviceCIDR=text("Network of the Services. clusterNetwork.services wins."),
    )
    return {"network": chosen}


def default_values(schema: Mapping[str, Any]) -> Json:
    """The defaults of a schema, as a chart's values.yaml has them."""
    found: Json = {}
    for name, part in (schema.get("properties") or {}).items():
        if "default" in part:
            found[name] = part["default"]
        elif below := default_values(part):
            found[name] = below
    return found
