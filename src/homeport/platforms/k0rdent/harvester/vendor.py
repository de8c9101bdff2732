"""Harvester as an infrastructure of built-in templates."""

from __future__ import annotations

from homeport.client.protocol import Key
from homeport.platforms.k0rdent.cluster.k0s import K0S
from homeport.platforms.k0rdent.cluster.vendor import Chart, Vendor
from homeport.platforms.k0rdent.harvester import config
from homeport.platforms.k0rdent.name import SYSTEM_NAMESPACE

_TEXT = {"type": "string"}

HARVESTER = Vendor(
    name="harvester",
    title="Harvester",
    release="harvester-capk",
    provider="infrastructure-kubevirt",
    api_version="infrastructure.cluster.x-k8s.io/v1alpha1",
    cluster_template="KubevirtClusterTemplate",
    machine_template="KubevirtMachineTemplate",
    placeholder={
        "bootDisk": {"image": "image", "size": "40Gi"},
        "virtualMachineTemplate": {"spec": {"runStrategy": "Always", "template": {"spec": {"domain": {}}}}},
    },
    cluster_fields={
        "infraClusterSecretRef": {"type": "object", "properties": {"name": _TEXT, "namespace": _TEXT}},
    },
    section=config.section,
    machine_fields=config.machine_fields,
    size_fields=config.size_fields,
    csi_fields=config.csi_fields,
    read=config.read_infrastructure,
    read_machine=config.read_machine,
    cluster_value=config.cluster_value,
    csi="harvester-csi",
    csi_parameters=config.csi_parameters,
    secrets=(Key(SYSTEM_NAMESPACE, "harvester-creds"),),
    credential_key="kubeconfig",
    credential_field="credentialSecretName",
)
HCP, STANDALONE = Chart(HARVESTER, K0S, hosted=True), Chart(HARVESTER, K0S, hosted=False)
