"""The values of the built-in templates as JSON schemas: strict, so that a typing error is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.platforms.k0rdent.cluster.part import FREE, LIST, TEXT, flag, group, number, text
from homeport.platforms.k0rdent.cluster.vendor import Chart, Vendor

Json = dict[str, Any]

K0S_VERSION = "v1.33.4+k0s.0"
POD_CIDR = "10.243.0.0/16"
SERVICE_CIDR = "10.95.0.0/16"


def _k0s(*, standalone: bool) -> Json:
    args = {**LIST, "description": "Arguments of k0s on all machines."}
    worker = group(
        "Workers.",
        labels={"type": "object", "additionalProperties": TEXT, "description": "Labels of the Nodes."},
        taints={
            "type": "array",
            "description": "Taints of the Nodes.",
            "items": group(
                key=text("Key of the taint.", minLength=1),
                value=text("Value of the taint."),
                effect=text("Effect of the taint.", enum=["NoSchedule", "PreferNoSchedule", "NoExecute"]),
            ),
        },
    )
    plane = group("Control plane.", replicas=number("The same as controlPlaneNumber."), args=args)
    more: dict[str, Json] = {"calico": _calico()} if standalone else {}
    return group(
        "k0s.",
        version=text("Version of k0s. A change upgrades the control plane, then the workers.", K0S_VERSION),
        args=args,
        worker=worker,
        controlPlane=plane,
        config={**FREE, "description": "Configuration of k0s (ClusterConfig). It is merged into the generated one."},
        **more,
    )


def _calico() -> Json:
    pool = group(cidr=TEXT, encapsulation=TEXT, natOutgoing=TEXT, nodeSelector=TEXT)
    return group(
        "Calico, if network.provider is calico.",
        mode=text("How Pods of different Nodes reach each other.", enum=["", "ipip", "vxlan", "bgp"]),
        mtu={"type": ["integer", "null"], "minimum": 0, "description": "MTU. Default: chosen by Calico."},
        ipPools={"type": "array", "items": pool, "description": "Only cidr of the first one counts: the Pod network."},
        typha=group(enabled=flag("Accepted for older values. k0s decides about Typha.", False)),
    )


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
    vendor, standalone = chart.vendor, not chart.hosted
    endpoint = group(
        "Where the API server is reached. Reserve the address outside of DHCP.",
        host=text("IP address or host name."),
        port=number("Port.", 6443, high=65535),
    )
    roles = {"worker": _machine("Workers.", vendor, 2, "4Gi", "40Gi")}
    network: dict[str, Json] = {}
    if standalone:
        roles["controlPlane"] = _machine("Control plane machines.", vendor, 4, "8Gi", "80Gi")
        network["network"] = group(
            "Pod network.",
            provider=text("Network plugin of k0s.", enum=["calico", "kube-router", "custom"], default="calico"),
            podCIDR=text("Network of the Pods. clusterNetwork.pods wins."),
            serviceCIDR=text("Network of the Services. clusterNetwork.services wins."),
        )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **group(
            f"Values of clusters that are made from {chart.name}.",
            **{vendor.name: group(f"{vendor.title}.", **vendor.section(), controlPlaneEndpoint=endpoint)},
            machineDefaults=_machine("All machines.", vendor, 2, "4Gi", "40Gi"),
            **roles,
            k0s=_k0s(standalone=standalone),
            **network,
            clusterNetwork=group("Networks.", pods=_cidrs(POD_CIDR), services=_cidrs(SERVICE_CIDR)),
            workersNumber=number("Number of workers.", 1, low=0),
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


def default_values(schema: Mapping[str, Any]) -> Json:
    """The defaults of a schema, as a chart's values.yaml has them."""
    found: Json = {}
    for name, part in (schema.get("properties") or {}).items():
        if "default" in part:
            found[name] = part["default"]
        elif below := default_values(part):
            found[name] = below
    return found
