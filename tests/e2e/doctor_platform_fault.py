"""Faults of TenantClusters and ClusterDeployments, and the cause that the doctor must name first."""

from __future__ import annotations

from typing import Any

from e2e.doctor_fault import Fault, Json, account, tenant
from homeport.machinery.yaml import load_all

DEPLOYMENT = """
apiVersion: v1
kind: Secret
metadata: {name: NAME-creds}
stringData:
  credentials: |
    [{"type": "basic_auth", "data": {"prismCentral": {"username": "admin", "password": "password"}}}]
---
apiVersion: k0rdent.mirantis.com/v1beta1
kind: Credential
metadata: {name: NAME-prism}
spec:
  identityRef: {apiVersion: v1, kind: Secret, name: NAME-creds}
---
apiVersion: k0rdent.mirantis.com/v1beta1
kind: ClusterDeployment
metadata: {name: NAME}
spec:
  template: nutanix-k0s-hcp
  credential: NAME-prism
  config:
    nutanix:
      prismCentral: {address: 10.1.1.100}
      controlPlaneEndpoint: {host: 10.1.1.VIP}
    machineDefaults:
      image: ubuntu-22.04-k0s
      cluster: PE-Cluster-01
      subnets: [VM-Network]
    k0s: {version: v1.29.2+k0s.0}
    workersNumber: 1
"""


def deployed(cause: str, words: tuple[str, ...], path: str = "", value: Any = None, **more: Any) -> Fault:
    """A ClusterDeployment of its own in the namespace of k0rdent, which has the templates."""
    name = f"cld-{len(_NAMES)}"
    _NAMES.append(name)

    def base(vip: str) -> list[Json]:
        return load_all(DEPLOYMENT.replace("NAME", name).replace("VIP", vip.rpartition(".")[2]))

    changes = (("ClusterDeployment", name, f"spec.{path}", value),) if path else more.pop("changes", ())
    return Fault(cause, words, changes, base=base, name=name, namespace="kcm-system", **more)


_NAMES: list[str] = []


def pool(vip: str) -> list[Json]:
    """Two addresses, for a control plane and eight load balancers."""
    metadata = {"name": "two", "namespace": "butler-system"}
    body = {"apiVersion": "butler.butlerlabs.dev/v1alpha1", "kind": "NetworkPool", "metadata": metadata}
    spec = {"cidr": "10.0.1.0/24", "tenantAllocation": {"start": "10.0.1.20", "end": "10.0.1.21"}}
    return [{**body, "spec": spec}, *tenant(vip)]


def late_provider(vip: str) -> list[Json]:
    """The ProviderConfig comes last: admission refuses a cluster that may not use it."""
    secret, config, cluster = tenant(vip)
    return [secret, cluster, config]


PLATFORM_FAULTS: dict[str, Fault] = {
    # -- Butler
    "tenant-provider-of-another-team": Fault(
        "ProviderAccessDenied",
        ("harbour-masters",),
        (("ProviderConfig", "prism", "spec.scope", {"type": "team", "teamRef": {"name": "harbour-masters"}}),),
        base=late_provider,
    ),
    "tenant-pool-full": Fault(
        "PoolExhausted",
        ("NetworkPool", "two"),
        (("ProviderConfig", "prism", "spec.network", {"mode": "ipam", "poolRefs": [{"name": "two"}]}),),
        base=pool,
    ),
    "tenant-pool-missing": Fault(
        "",
        ("NetworkPool", "none"),
        (("ProviderConfig", "prism", "spec.network", {"mode": "ipam", "poolRefs": [{"name": "none"}]}),),
        base=tenant,
    ),
    "tenant-datastore-missing": Fault(
        "DataStoreNotFound",
        ("DataStore big",),
        (("TenantCluster", "harbour", "spec.controlPlane", {"dataStoreRef": {"name": "big"}}),),
        base=tenant,
    ),
    # -- k0rdent
    "deployment-credential-not-ready": deployed(
        "CredentialNotReady", ("cld-0-creds",), without=(("Secret", "cld-0-creds"),)
    ),
    "deployment-wrong-image": deployed(
        "NotFound", ("ubuntu-22.04-k1s", "ubuntu-22.04-k0s"), "config.machineDefaults.image", "ubuntu-22.04-k1s"
    ),
    "deployment-wrong-subnet": deployed(
        "NotFound", ("VM-Netwrk", "VM-Network"), "config.machineDefaults.subnets", ["VM-Netwrk"]
    ),
    "deployment-subnet-of-another-element": deployed(
        "NotFound", ("vm-network-2", "nutanix-cluster-2"), "config.machineDefaults.subnets", ["vm-network-2"]
    ),
    "deployment-wrong-element": deployed(
        "NotFound", ("PE-Cluster-1", "PE-Cluster-01"), "config.machineDefaults.cluster", "PE-Cluster-1"
    ),
    "deployment-wrong-password": deployed(
        "AccessDenied",
        ("cld-5-creds",),
        changes=account("admin", "older", secret="cld-5-creds"),
    ),
}
