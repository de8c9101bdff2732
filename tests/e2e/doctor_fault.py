"""Faults that are planted in clusters, and the cause that the doctor must name first."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from homeport.machinery.yaml import load_all

Json = dict[str, Any]
Change = tuple[str, str, str, Any]  # kind, name, path, value
CLUSTER = Path(__file__).parents[2] / "examples" / "02-cluster" / "cluster.yaml"
TAKEN = "10.0.0.101"  # the endpoint of the cluster that works
CONFIG = """
apiVersion: v1
kind: Secret
metadata: {name: prism}
stringData: {NUTANIX_USER: admin, NUTANIX_PASSWORD: password}
---
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ProviderConfig
metadata: {name: prism}
spec:
  type: nutanix
  nutanix:
    credentialsRef: {name: prism}
    prismCentral: {address: prism-central.example.com, port: 9440}
    cluster: {name: cluster-01}
    subnet: {name: workload-subnet}
    image: {name: talos-1.9}
---
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: TenantCluster
metadata: {name: harbour}
spec: {providerConfigRef: {name: prism}, workers: {replicas: 1}}
"""


def set_at(obj: Json, path: str, value: Any) -> None:
    """`spec.template.spec.image`: dots part names, a number is the place in a list. None removes."""
    *way, last = path.split(".")
    at: Any = obj
    for name in way:
        at = at[int(name)] if isinstance(at, list) else at.setdefault(name, {})
    if value is None:
        at.pop(last, None)
    elif isinstance(at, list):
        at[int(last)] = value
    else:
        at[last] = value


@dataclass(frozen=True)
class Fault:
    cause: str
    words: tuple[str, ...]  # of the message
    changes: tuple[Change, ...] = ()
    without: tuple[tuple[str, str], ...] = ()  # kind, name of objects that are left out
    # Injected into the simulator. They meet only this case, by a user or by names of VMs: all cases are
    # planted at the same time.
    faults: tuple[Json, ...] = ()
    late: bool = False  # the faults come when the cluster works
    notice: bool = False  # it may still go away by itself
    own: tuple[str, ...] | None = None  # what the user's own object says, if not the words
    base: Callable[[str], list[Json]] = field(default=lambda vip: cluster(vip))
    name: str = "harbour"  # of the cluster
    simulator: str = "prism"
    namespace: str = ""  # '': one of its own

    def objects(self, vip: str) -> list[Json]:
        made = [each for each in self.base(vip) if (each["kind"], each["metadata"]["name"]) not in self.without]
        for kind, name, path, value in self.changes:
            given = value.replace("VIP", vip) if isinstance(value, str) else value
            for each in made:
                if (each["kind"], each["metadata"]["name"]) == (kind, name):
                    set_at(each, path, given)
        return made


def cluster(vip: str, name: str = "harbour") -> list[Json]:
    """One control plane and one worker."""
    made: list[Json] = load_all(CLUSTER.read_text().replace("harbour", name))
    for each in made:
        if each["kind"] in ("KubeadmControlPlane", "MachineDeployment"):
            each["spec"]["replicas"] = 1
        if each["kind"] == "NutanixCluster":
            each["spec"]["controlPlaneEndpoint"]["host"] = vip
    return made


def account(user: str, password: str, secret: str = "harbour-prism") -> tuple[Change, ...]:
    """Credentials that no other case uses."""
    data = {"prismCentral": {"username": user, "password": password}}
    return (("Secret", secret, "stringData.credentials", json.dumps([{"type": "basic_auth", "data": data}])),)


def tenant(vip: str) -> list[Json]:
    del vip
    return load_all(CONFIG)


_CP, _W = "harbour-control-plane", "harbour-workers"
_TEMPLATE, _CLUSTER = "NutanixMachineTemplate", "NutanixCluster"


def template(path: str, value: Any, *, both: bool = True) -> tuple[Change, ...]:
    names = (_CP, _W) if both else (_W,)
    return tuple((_TEMPLATE, name, f"spec.template.spec.{path}", value) for name in names)


def infra(path: str, value: Any) -> tuple[Change, ...]:
    return ((_CLUSTER, "harbour", f"spec.{path}", value),)


def config(path: str, value: Any) -> tuple[Change, ...]:
    return (("ProviderConfig", "prism", f"spec.nutanix.{path}", value),)


FAULTS: dict[str, Fault] = {
    # -- credentials and connection
    "secret-missing": Fault("InvalidConfiguration", ("harbour-prism",), without=(("Secret", "harbour-prism"),)),
    "secret-misspelt": Fault(
        "InvalidConfiguration",
        ("harbour-prsm", "harbour-prism"),
        infra("prismCentral.credentialRef.name", "harbour-prsm"),
    ),
    "secret-not-json": Fault(
        "InvalidConfiguration",
        ("harbour-prism", "is not valid JSON"),
        (("Secret", "harbour-prism", "stringData.credentials", "admin:password"),),
    ),
    "wrong-password": Fault(
        "AccessDenied",
        ("harbour-prism",),
        account("admin", "old"),
    ),
    "wrong-port": Fault("Unreachable", ("9441",), infra("prismCentral.port", 9441)),
    "self-signed": Fault(
        "CertificateNotTrusted", ("self-signed.example.com",), infra("prismCentral.address", "self-signed.example.com")
    ),
    "trust-bundle-missing": Fault(
        "InvalidConfiguration",
        ("prism-ca",),
        infra("prismCentral.additionalTrustBundle", {"kind": "ConfigMap", "name": "prism-ca"}),
    ),
    # -- references
    "image-missing": Fault(
        "NotFound", ("ubuntu-22.04-kube-v1.29.1", "did you mean"), template("image.name", "ubuntu-22.04-kube-v1.29.1")
    ),
    "image-uuid-unknown": Fault(
        "NotFound",
        ("00000000-0000-4000-8000-000000000000",),
        template("image", {"type": "uuid", "uuid": "00000000-0000-4000-8000-000000000000"}),
    ),
    "image-iso": Fault("ImageIsISO", ("ubuntu-22.04-server-iso",), template("image.name", "ubuntu-22.04-server-iso")),
    "image-of-talos": Fault("ImageDoesNotFit", ("talos-1.9",), template("image.name", "talos-1.9")),
    "element-missing": Fault("NotFound", ("nutanix-cluster-9",), template("cluster.name", "nutanix-cluster-9")),
    "subnet-missing": Fault("NotFound", ("vm-netwrk", "vm-network"), template("subnet.0.name", "vm-netwrk")),
    "subnet-of-another-element": Fault(
        "NotFound", ("vm-network-2", "nutanix-cluster-2"), template("subnet.0.name", "vm-network-2")
    ),
    "project-missing": Fault("NotFound", ("no-project",), template("project", {"type": "name", "name": "no-project"})),
    "control-plane-template-missing": Fault("WaitingForTemplates", (_CP,), without=((_TEMPLATE, _CP),)),
    "worker-template-missing": Fault("WaitingForTemplates", (_W,), without=((_TEMPLATE, _W),)),
    "template-misspelt": Fault(
        "WaitingForTemplates",
        ("harbour-worker does not exist yet; did you mean 'harbour-workers'",),
        (("MachineDeployment", _W, "spec.template.spec.infrastructureRef.name", "harbour-worker"),),
    ),
    "bootstrap-template-missing": Fault("", (_W, "KubeadmConfigTemplate"), without=(("KubeadmConfigTemplate", _W),)),
    "control-plane-missing": Fault(
        "WaitingForTemplates", ("KubeadmControlPlane harbour",), without=(("KubeadmControlPlane", "harbour"),)
    ),
    "failure-domain-missing": Fault(
        "FailureDomainMissing", ("fd-9",), infra("controlPlaneFailureDomains", [{"name": "fd-9"}])
    ),
    # -- networks and the endpoint
    "endpoint-missing": Fault("EndpointMissing", ("controlPlaneEndpoint",), infra("controlPlaneEndpoint", None)),
    "endpoint-in-pod-network": Fault(
        "EndpointInClusterNetwork",
        ("VIP",),
        (("Cluster", "harbour", "spec.clusterNetwork.pods.cidrBlocks", ["10.0.0.0/24"]),),
    ),
    "endpoint-outside-of-the-subnet": Fault(
        "EndpointOutsideSubnet", ("10.77.0.5",), infra("controlPlaneEndpoint.host", "10.77.0.5")
    ),
    "endpoint-in-the-pool": Fault("EndpointInPool", ("10.0.0.120",), infra("controlPlaneEndpoint.host", "10.0.0.120")),
    "endpoint-of-another-cluster": Fault("EndpointInUse", (TAKEN,), infra("controlPlaneEndpoint.host", TAKEN)),
    "pods-overlap-the-subnet": Fault(
        "NetworksOverlap",
        ("10.0.2.0/24",),
        (("Cluster", "harbour", "spec.clusterNetwork.pods.cidrBlocks", ["10.0.2.0/24"]),),
    ),
    "services-overlap-the-subnet": Fault(
        "NetworksOverlap",
        ("10.0.3.0/24",),
        (("Cluster", "harbour", "spec.clusterNetwork.services.cidrBlocks", ["10.0.3.0/24"]),),
    ),
    # -- capacity and tasks
    "too-much-memory": Fault("InsufficientCapacity", ("memory",), template("memorySize", "64Ti")),
    "task-fails": Fault(
        "Rejected",
        ("the disk is gone",),
        faults=(
            {
                "match": {"operation": "kVmCreate", "entity": "refused-*"},
                "effect": {"kind": "task-failure", "message": "the disk is gone"},
            },
        ),
        base=partial(cluster, name="refused"),
        name="refused",
    ),
    # -- guests
    "version-not-on-the-image": Fault(
        "ImageVersionMismatch",
        ("v1.30.0", "v1.29.0"),
        (
            ("KubeadmControlPlane", "harbour", "spec.version", "v1.30.0"),
            ("MachineDeployment", _W, "spec.template.spec.version", "v1.30.0"),
        ),
    ),
    "does-not-start": Fault(
        "GuestSilent",
        ("console",),
        faults=({"match": {"kind": "vm", "entity": "silent-*"}, "effect": {"kind": "no-boot"}},),
        base=partial(cluster, name="silent"),
        name="silent",
        notice=True,
    ),
    # -- the provider of a cluster that works
    "outage": Fault(
        "Unreachable",
        ("prism-central.example.com",),
        account("cluster-admin", "cluster-specific-password"),
        faults=({"match": {"user": "cluster-admin"}, "effect": {"kind": "status", "status": 503}},),
        late=True,
        own=(),  # it works: that it can't be managed is told at the next look of the controllers, minutes later
    ),
    "password-expired": Fault(
        "AccessDenied",
        ("Secret password-expired/harbour-prism",),
        account("operator", "operator-password"),
        faults=({"match": {"user": "operator"}, "effect": {"kind": "status", "status": 401}},),
        late=True,
        own=(),  # it works: that it can't be managed is told at the next look of the controllers, minutes later
    ),
    # -- the workload cluster
    "no-network-plugin": Fault(
        "NoNetworkPlugin",
        ("CNI",),
        (
            *template("image.name", "rocky-9-kube-v1.30.0-no-cni"),
            ("KubeadmControlPlane", "harbour", "spec.version", "v1.30.0"),
            ("MachineDeployment", _W, "spec.template.spec.version", "v1.30.0"),
        ),
    ),
    # -- tenants
    "tenant-wrong-image": Fault("NotFound", ("talos-1.8", "talos-1.9"), config("image.name", "talos-1.8"), base=tenant),
    "tenant-wrong-subnet": Fault("NotFound", ("workloads",), config("subnet.name", "workloads"), base=tenant),
    "tenant-subnet-of-another-element": Fault(
        "NotFound", ("vm-network-2", "nutanix-cluster-2"), config("subnet.name", "vm-network-2"), base=tenant
    ),
    "tenant-wrong-password": Fault(
        "CredentialsInvalid", ("prism",), (("Secret", "prism", "stringData.NUTANIX_PASSWORD", "old"),), base=tenant
    ),
    "tenant-missing-key": Fault(
        "InvalidConfiguration",
        ("NUTANIX_PASSWORD",),
        (("Secret", "prism", "stringData.NUTANIX_PASSWORD", None),),
        base=tenant,
    ),
    "tenant-wrong-port": Fault("Unreachable", ("9441",), config("prismCentral.port", 9441), base=tenant),
    "tenant-iso-image": Fault("ImageIsISO", ("talos-1.9-iso",), config("image.name", "talos-1.9-iso"), base=tenant),
    "tenant-wrong-element": Fault("NotFound", ("cluster-1",), config("cluster.name", "cluster-1"), base=tenant),
    "tenant-untrusted-certificate": Fault(
        "CertificateNotTrusted",
        ("self-signed.example.com",),
        config("prismCentral.address", "self-signed.example.com"),
        base=tenant,
    ),
    "tenant-without-provider": Fault("", ("prism",), without=(("ProviderConfig", "prism"),), base=tenant),
}
