"""Every entry of the troubleshooting sections of the guides is one of the doctor's checks, found by its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from homeport.api.meta import Unstructured
from homeport.app.doctor.check import certificate, definition, guest, node, platform, provider
from homeport.app.doctor.diagnosis import Commands, Diagnosis
from homeport.app.doctor.examine import CHECKS, Check, examine
from homeport.app.doctor.fact import Facts, Workload
from homeport.client.protocol import Key
from homeport.runtime.clock import parse_time

NOW = parse_time("2026-01-01T00:00:00Z")
HARBOUR = Key("default", "harbour")
INFRA, MACHINE, TENANT = "NutanixCluster", "NutanixMachine", "TenantCluster"


@dataclass(frozen=True)
class Entry:
    """What an object, a console or the workload cluster says when the trouble of the guide is there."""

    check: Check
    cause: str
    kind: str = ""
    reason: str = ""
    message: str = ""
    condition: str = "Ready"
    console: str = ""
    workload: Workload | None = None

    def facts(self) -> Facts:
        objects = [obj(self.kind, self.condition, self.reason, self.message)] if self.kind else []
        consoles: dict[Key, list[str]] = {}
        if self.console:
            objects = [obj("Machine", "InfrastructureReady", "Ready", "", status="True")]
            consoles = {HARBOUR: [self.console]}
        return Facts(
            NOW,
            objects,
            objects[:1],
            workloads={HARBOUR: self.workload} if self.workload else {},
            consoles=consoles,
            commands=Commands("/data/kubeconfig"),
        )


def obj(kind: str, condition: str, reason: str, message: str, status: str = "False") -> Unstructured:
    since = "2025-12-31T23:00:00Z"
    said = {"type": condition, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
    metadata = {"name": "harbour", "namespace": "default", "uid": kind}
    return Unstructured({"apiVersion": "x/v1", "kind": kind, "metadata": metadata, "status": {"conditions": [said]}})


def node_with(**more: Any) -> Workload:
    conditions = [{"type": "Ready", "status": "True"}]
    created = {"creationTimestamp": "2025-12-31T23:00:00Z"}
    return Workload(nodes=[{"metadata": {"name": "n", **created}, "status": {"conditions": conditions}, "spec": more}])


UNINITIALIZED = {"key": "node.cloudprovider.kubernetes.io/uninitialized"}

# Guide > entry. The words are those of the headings and bullets of the guides.
ENTRIES: dict[str, dict[str, Entry]] = {
    "Butler on Nutanix": {
        "authentication failures": Entry(
            provider.credential,
            "AccessDenied",
            INFRA,
            "AccessDenied",
            "Prism Central pc:9440 rejects the credentials of Secret default/prism: correct the user name",
        ),
        "check the Secret": Entry(
            provider.credential,
            "InvalidConfiguration",
            TENANT,
            "InvalidConfiguration",
            "Secret butler-system/nutanix-credentials has no key NUTANIX_PASSWORD: add it",
        ),
        "VM not creating": Entry(provider.task, "Rejected", MACHINE, "Rejected", "VM harbour: the disk is gone"),
        "the subnet exists": Entry(
            definition.reference, "NotFound", INFRA, "NotFound", "subnet 'vms' not found; did you mean 'vm-network'?"
        ),
        "DHCP on the subnet, or static addresses": Entry(
            guest.no_address, "GuestHasNoAddress", MACHINE, "WaitingForAddress", "no address yet", "VMProvisioned"
        ),
        "a subnet without address management": Entry(
            definition.address_pool, "SubnetNotManaged", MACHINE, "SubnetNotManaged", "subnet 'vms' is not managed"
        ),
        "the image exists": Entry(
            definition.reference,
            "NotFound",
            INFRA,
            "NotFound",
            "image 'talos-1.8' not found; did you mean 'talos-1.9'?",
        ),
        "a disk image, not an ISO": Entry(
            definition.image, "ImageIsISO", INFRA, "ImageIsISO", "'talos-1.9-iso' is an ISO: use a disk image"
        ),
        "certificates": Entry(
            provider.certificate,
            "CertificateNotTrusted",
            INFRA,
            "InvalidConfiguration",
            "Prism Central pc:9440: the certificate is not trusted (self-signed): set its CA",
        ),
    },
    "Butler on Harvester": {
        "VM not starting": Entry(provider.task, "PoweredOff", "KubevirtMachine", "PoweredOff", "VM x is stopped"),
        "VM that Harvester can't run": Entry(
            provider.task, "VMNotReady", "KubevirtMachine", "VMNotReady", "VM x: 0/3 nodes are available"
        ),
        "VLAN and network attachment": Entry(
            definition.reference,
            "NotFound",
            "KubevirtCluster",
            "NotFound",
            "network 'default/workload' does not exist; did you mean 'default/workloads'?",
        ),
        "switch trunking": Entry(
            guest.no_address,
            "GuestHasNoAddress",
            "KubevirtMachine",
            "WaitingForAddress",
            "VM x has no address yet: check that the switch carries its VLAN to the hosts",
            "VMProvisioned",
        ),
        "the image exists": Entry(
            definition.reference, "NotFound", "KubevirtCluster", "NotFound", "image 'default/talos-1.8' not found"
        ),
        "image import": Entry(
            definition.image, "ImageNotReady", "KubevirtCluster", "ImageNotReady", "image default/half has no file yet"
        ),
        "server URL of the kubeconfig": Entry(
            provider.connection,
            "Unreachable",
            "KubevirtCluster",
            "Unreachable",
            "no connection to https://127.0.0.1:6443: the connection was refused; the server URL in the kubeconfig of "
            "Secret default/harvester must be the external address of the cluster",
        ),
        "certificate validation": Entry(
            provider.certificate,
            "CertificateNotTrusted",
            "KubevirtCluster",
            "Unreachable",
            "TLS with https://10.20.0.10:6443 failed: self-signed certificate in certificate chain; set the CA",
        ),
        "firewall blocks port 6443": Entry(
            provider.connection,
            "Unreachable",
            "KubevirtCluster",
            "Unreachable",
            "no connection to https://10.20.0.10:6443: the connection timed out; check that no firewall blocks it",
        ),
        "MachineRequest stuck": Entry(
            definition.reference, "NotFound", "MachineRequest", "NotFound", "spec.providerRef: 'harvester' not found"
        ),
    },
    "k0rdent on Nutanix": {
        "1 endpoint not reachable": Entry(
            node.unreachable, "ControlPlaneUnreachable", workload=Workload("no answer from https://10.1.1.200:6443")
        ),
        "1 endpoint in the DHCP range": Entry(
            definition.endpoint, "EndpointInPool", INFRA, "EndpointInPool", "10.0.0.120 is in the pool of the subnet"
        ),
        "2 credentials": Entry(
            provider.credential, "AccessDenied", INFRA, "AccessDenied", "rejects the credentials of Secret a/b: correct"
        ),
        "2 image name or UUID": Entry(definition.reference, "NotFound", INFRA, "NotFound", "image 'x' not found"),
        "2 cluster name or UUID": Entry(definition.reference, "NotFound", INFRA, "NotFound", "cluster 'x' not found"),
        "2 subnet name or UUID": Entry(definition.reference, "NotFound", INFRA, "NotFound", "subnet 'x' not found"),
        "2 sufficient resources": Entry(
            provider.capacity, "InsufficientCapacity", INFRA, "InsufficientCapacity", "64Ti of memory are not free"
        ),
        "3 cloud-init in the image": Entry(guest.console, "ImageLacksPrograms", console="kubeadm: command not found"),
        "3 packages of the image": Entry(
            guest.console, "ImageLacksPrograms", console="/usr/local/bin/k0s: no such file or directory"
        ),
        "3 image permissions": Entry(
            provider.credential, "AccessDenied", INFRA, "AccessDenied", "image 'x': no permission; grant the role"
        ),
        "4 internet for the download of k0s": Entry(
            guest.console, "GuestHasNoInternet", console="curl: (7) download failed: network is unreachable"
        ),
        "4 DNS": Entry(guest.console, "GuestHasNoDNS", console="curl: (6) Could not resolve host: get.k0s.sh"),
        "4 container registries": Entry(
            guest.console, "GuestCannotPullImages", console="failed to pull image quay.io/k0sproject/coredns"
        ),
        "5 join token": Entry(
            guest.console, "JoinTokenInvalid", console="failed to join: the token is invalid or has expired"
        ),
        "5 workers reach the endpoint": Entry(
            guest.console, "EndpointNotReachable", console="dial tcp 10.1.1.200:6443: i/o timeout"
        ),
        "cloud controller manager": Entry(
            node.cloud_controller, "NoCloudController", workload=node_with(taints=[UNINITIALIZED])
        ),
        "Credential": Entry(
            platform.deployment,
            "CredentialNotReady",
            "ClusterDeployment",
            "Failed",
            "Credential prism is not ready: Secret creds does not exist",
            "CredentialReady",
        ),
        "ClusterTemplate": Entry(
            platform.deployment,
            "TemplateNotReady",
            "ClusterDeployment",
            "Failed",
            'ClusterTemplate "nutanix-k0s" not found',
            "TemplateReady",
        ),
    },
    "Cluster API on Nutanix": {
        "a template does not exist": Entry(
            definition.template,
            "ObjectDoesNotExist",
            "MachineDeployment",
            "TemplateCloningFailed",
            "NutanixMachineTemplate harbour-worker does not exist",
            "MachinesReady",
        ),
        "failure domain": Entry(
            definition.failure_domain, "FailureDomainMissing", INFRA, "FailureDomainMissing", "fd-9 does not exist"
        ),
        "certificates of the cluster": Entry(
            certificate.kubeconfig, "KubeconfigExpired", workload=Workload(certificate_seconds=-1.0)
        ),
    },
    "Butler for teams": {
        "quota of the team": Entry(
            provider.capacity, "QuotaExceeded", TENANT, "QuotaExceeded", "40Gi of 32Gi memory", "QuotaSatisfied"
        ),
        "provider of another team": Entry(
            platform.access, "ProviderAccessDenied", TENANT, "ProviderAccessDenied", "belongs to team masters"
        ),
        "pool of addresses is full": Entry(
            provider.capacity, "PoolExhausted", TENANT, "PoolExhausted", "NetworkPool a: 0 of 2 are free"
        ),
        "pool of addresses does not exist": Entry(
            platform.pool, "PoolNotFound", TENANT, "PoolNotFound", "NetworkPool butler-system/none does not exist"
        ),
        "hosted control plane without DataStore": Entry(
            platform.data_store,
            "DataStoreNotFound",
            "StewardControlPlane",
            "TenantControlPlaneNotReady",
            "TenantControlPlane a/b is Provisioning: DataStore big does not exist: create it",
        ),
    },
}
CASES = [(guide, entry) for guide, entries in ENTRIES.items() for entry in entries]


@pytest.mark.parametrize(("guide", "entry"), CASES)
def test_the_check_of_an_entry_names_its_cause(guide: str, entry: str) -> None:
    expected = ENTRIES[guide][entry]
    assert expected.check in CHECKS, "the doctor does not run this check"
    found = list(expected.check(expected.facts()))
    assert [each.cause for each in found] == [expected.cause]
    assert found[0].cure.startswith(("kubectl ", "homeport ")), "every cause has a command"


@pytest.mark.parametrize(("guide", "entry"), CASES)
def test_the_cause_of_an_entry_comes_first(guide: str, entry: str) -> None:
    expected = ENTRIES[guide][entry]
    found: list[Diagnosis] = examine(expected.facts())
    assert (found[0].cause, found[0].serious) == (expected.cause, True)
