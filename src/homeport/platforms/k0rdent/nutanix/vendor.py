"""Nutanix as an infrastructure of built-in templates."""

from __future__ import annotations

from typing import Any

from homeport.client.protocol import Key
from homeport.platforms.k0rdent.cluster.k0s import K0S
from homeport.platforms.k0rdent.cluster.vendor import Chart, Vendor
from homeport.platforms.k0rdent.name import PROVIDER_NAMESPACE, SYSTEM_NAMESPACE
from homeport.platforms.k0rdent.nutanix import config, schema

Json = dict[str, Any]

_GLOBAL = "nutanix-creds"
_TEXT: Json = {"type": "string"}


def _properties(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


NUTANIX = Vendor(
    name="nutanix",
    title="Nutanix",
    release="nutanix-capx",
    provider="infrastructure-nutanix",
    api_version="infrastructure.cluster.x-k8s.io/v1beta1",
    cluster_template="NutanixClusterTemplate",
    machine_template="NutanixMachineTemplate",
    placeholder={
        "image": {"type": "name", "name": "image"},
        "cluster": {"type": "name", "name": "cluster"},
        "subnet": [{"type": "name", "name": "subnet"}],
        "vcpusPerSocket": 1,
        "vcpuSockets": 2,
        "memorySize": "4Gi",
        "systemDiskSize": "40Gi",
    },
    cluster_fields={
        "prismCentral": _properties(
            address={"type": "string", "minLength": 1},
            port={"type": "integer", "minimum": 1, "maximum": 65535},
            insecure={"type": "boolean"},
            credentialRef=_properties(kind=_TEXT, name=_TEXT, namespace=_TEXT),
            additionalTrustBundle=_properties(kind=_TEXT, name=_TEXT, namespace=_TEXT, data=_TEXT),
        )
    },
    section=schema.section,
    machine_fields=schema.machine_fields,
    size_fields=schema.size_fields,
    csi_fields=schema.csi_fields,
    read=config.read_infrastructure,
    read_machine=config.read_machine,
    cluster_value=config.cluster_value,
    csi="nutanix-csi",
    csi_parameters=config.csi_parameters,
    secrets=(Key(PROVIDER_NAMESPACE, _GLOBAL), Key(SYSTEM_NAMESPACE, _GLOBAL)),
    credential_key="credentials",
    credential_field="prismCentral.credentialSecretName",
    bundle_field="prismCentral.additionalTrustBundleConfigMapName",
    older_values=True,
)
HCP, STANDALONE = Chart(NUTANIX, K0S, hosted=True), Chart(NUTANIX, K0S, hosted=False)
