"""`kubeadm join`: one more node, or one more control plane."""

from __future__ import annotations

import base64

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from homeport.apiserver.auth import certificate as certs
from homeport.apiserver.auth.source import read
from homeport.apiserver.request import User
from homeport.client.protocol import Key, MergePatch
from homeport.sim.machine import yaml
from homeport.sim.machine.kubeadm.config import (
    Documents,
    KubeadmError,
    check_readable,
    read_registering,
    timeout_of,
)
from homeport.sim.machine.kubeadm.discovery import authenticate, discover, read_discovery, require
from homeport.sim.machine.kubeadm.init import (
    check_kubelet,
    local_endpoint,
    register,
    registration_of,
    static_pods,
    write_kubeconfigs,
    write_manifests,
)
from homeport.sim.machine.kubeadm.pki import prepare
from homeport.sim.machine.kubeadm.preflight import check_control_plane, check_versions, check_worker
from homeport.sim.machine.vm import Machine
from homeport.sim.machine.workload.cluster import ControlPlane, WorkloadCluster
from homeport.sim.machine.workload.etcd import EtcdError
from homeport.sim.machine.workload.facts import parse_version
from homeport.sim.machine.workload.kind import NODE, REQUEST, Json
from homeport.sim.machine.workload.node import CONTROL_PLANE
from homeport.sim.machine.workload.trust.signer import KUBELET_CLIENT

_GROUP = "certificates.k8s.io"


async def run_join(machine: Machine, documents: Documents) -> None:
    """Raises KubeadmError. What was done until then stays done."""
    say = machine.console.say
    join = documents.kinds.get("JoinConfiguration")
    if join is None:
        raise KubeadmError("no JoinConfiguration found in config file")
    registering = read_registering(join, machine.hostname)
    plane = join.get("controlPlane")
    say("[preflight] Running pre-flight checks")
    check_worker(machine, registering)
    if plane is not None:
        check_control_plane(machine, registering)
    wanted = read_discovery(machine, join.get("discovery") or {})
    cluster = await discover(machine, wanted, timeout_of(join, "discovery", machine.pace.patience))
    token = str((join.get("discovery") or {}).get("tlsBootstrapToken") or wanted.token)
    user = authenticate(cluster, token)
    say('[preflight] Reading configuration from the "kubeadm-config" ConfigMap in namespace "kube-system"...')
    require(cluster, user, "get", "configmaps", "kube-system", "kubeadm-config")
    require(cluster, user, "get", "configmaps", "kube-system", "kubelet-config")
    check_versions(machine, registering, _cluster_version(cluster, machine))
    await machine.pace.take(machine.pace.kubeadm if plane is not None else 0.0)
    address, port = ("", 0)
    if plane is not None:
        address, port = local_endpoint(plane.get("localAPIEndpoint") or {}, machine)
        _prepare_control_plane(machine, cluster, address, port)
    _refuse_namesake(cluster, registering.name)
    require(cluster, user, "create", "certificatesigningrequests", group=_GROUP)
    registration = registration_of(machine, registering, cluster.facts, control_plane=False)
    if plane is not None:
        registration.taints = registering.taints or []
    check_kubelet(machine, registration)
    say("[kubelet-start] Waiting for the kubelet to perform the TLS Bootstrap")
    write_kubelet_conf(machine, cluster)
    await request_certificate(cluster, user, registration.name)
    await register(machine, cluster, registration)
    if plane is not None:
        await _join_control_plane(machine, cluster, registration.name, address, port, registering.taints)
    say("This node has joined the cluster:")


def _cluster_version(cluster: WorkloadCluster, machine: Machine) -> str:
    """As the cluster itself says it now: upgrades write it there, in a version that older ones may not read."""
    found = read(cluster.server.store, "configmaps", "kube-system", "kubeadm-config")
    if found is None:
        raise KubeadmError('error execution phase preflight: configmaps "kubeadm-config" not found')
    configuration = yaml.load((found.get("data") or {}).get("ClusterConfiguration") or "") or {}
    check_readable(configuration, parse_version(machine.installed))
    return str(configuration.get("kubernetesVersion") or cluster.facts.version)


def write_kubelet_conf(machine: Machine, cluster: WorkloadCluster) -> None:
    text = f"apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    server: {cluster.facts.server}\n"
    machine.disk.write("/etc/kubernetes/kubelet.conf", text.encode(), mode=0o600)
    if machine.disk.read("/etc/kubernetes/pki/ca.crt") is None:
        machine.disk.write("/etc/kubernetes/pki/ca.crt", cluster.pki.ca_pem)


async def request_certificate(cluster: WorkloadCluster, user: User, node: str) -> None:
    """The kubelet's request for its client certificate, made with the bootstrap token's user."""
    key = certs.make_key()
    subject = certs.subject_name(f"system:node:{node}", ["system:nodes"])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    spec = {
        "request": base64.b64encode(request.public_bytes(Encoding.PEM)).decode(),
        "signerName": KUBELET_CLIENT,
        "usages": ["digital signature", "client auth"],
    }
    client = cluster.server.client(user, field_manager="kubelet")
    await client.create({"metadata": {"generateName": "csr-"}, "spec": spec}, kind=REQUEST)


def _refuse_namesake(cluster: WorkloadCluster, name: str) -> None:
    node = read(cluster.server.store, "nodes", "", name)
    conditions = ((node or {}).get("status") or {}).get("conditions") or ()
    if node is not None and any(each["type"] == "Ready" and each["status"] == "True" for each in conditions):
        raise KubeadmError(
            f'error execution phase kubelet-start: a Node with name "{name}" and status "Ready" already exists in the '
            "cluster. You must delete the existing Node or change the name of this new joining Node"
        )


def _prepare_control_plane(machine: Machine, cluster: WorkloadCluster, address: str, port: int) -> None:
    if not cluster.facts.configuration.get("controlPlaneEndpoint"):
        raise KubeadmError(
            "unable to add a new control plane instance to a cluster that doesn't have a stable controlPlaneEndpoint "
            "address"
        )
    given = prepare(machine.disk, machine.clock, make=False, external_etcd=cluster.facts.external_etcd)
    unknown = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    if given.cluster.issuer.certificate != cluster.pki.issuer.certificate:
        raise KubeadmError(f"error execution phase control-plane-prepare: /etc/kubernetes/pki/ca.crt: {unknown}")
    ours = cluster.etcd_authority
    if given.etcd is not None and ours is not None and not given.etcd.same_as(ours):
        raise KubeadmError(
            "error execution phase check-etcd: could not retrieve the list of etcd endpoints: authentication handshake "
            f"failed: {unknown}"
        )
    if given.signing_key.public_key() != cluster.pki.signing_key.public_key():
        machine.console.say("kube-apiserver: service account tokens of the other control planes will be refused here")
    write_kubeconfigs(machine, cluster)


async def _join_control_plane(
    machine: Machine, cluster: WorkloadCluster, node: str, address: str, port: int, taints: list[Json] | None
) -> None:
    vip = write_manifests(machine, cluster.facts, address, port)
    if not cluster.facts.external_etcd:
        machine.console.say("[etcd] Announced new etcd member joining to the existing etcd cluster")
        try:
            cluster.etcd.add(node, address)
            cluster.add_control_plane(ControlPlane(machine, node, address, port, vip))
            cluster.etcd.promote(node)
        except EtcdError as refused:
            raise KubeadmError(
                f"error execution phase control-plane-join/etcd: error creating local etcd: {refused}"
            ) from refused
        cluster.refresh()
    else:
        cluster.add_control_plane(ControlPlane(machine, node, address, port, vip))
    await mark_control_plane(cluster, node, taints)
    kubelet = machine.kubelet
    assert kubelet is not None
    kubelet.manifests = static_pods(machine)
    await kubelet.show_static_pods(await cluster.client().get(NODE, Key("", node)))


async def mark_control_plane(cluster: WorkloadCluster, node: str, taints: list[Json] | None) -> None:
    client = cluster.client()
    found = await client.get(NODE, Key("", node))
    labels = {CONTROL_PLANE: "", "node.kubernetes.io/exclude-from-external-load-balancers": ""}
    patch: Json = {"metadata": {"labels": labels}}
    if taints is None:
        known = (found.get("spec") or {}).get("taints") or []
        patch["spec"] = {"taints": [*known, {"key": CONTROL_PLANE, "effect": "NoSchedule"}]}
    await client.patch(NODE, Key("", node), MergePatch(patch))
