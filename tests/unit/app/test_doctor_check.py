"""Checks of the doctor on facts that are planted: what a simulated site does not show within seconds."""

from __future__ import annotations

import base64
import datetime
from typing import Any

import pytest

from homeport.api.meta import Unstructured
from homeport.apiserver.auth import certificate as certs
from homeport.app.doctor.diagnosis import Commands, Diagnosis
from homeport.app.doctor.examine import examine
from homeport.app.doctor.fact import Facts, Workload
from homeport.app.doctor.probe import Probe
from homeport.app.report.description import Description, PartState
from homeport.client.protocol import Key
from homeport.runtime.clock import parse_time, rfc3339
from homeport.runtime.webhook.configuration import INJECT_ANNOTATION

NOW = parse_time("2026-01-01T00:00:00Z")
HARBOUR = Key("default", "harbour")
COMMANDS = Commands("/data/kubeconfig", " --data /data")
PLANE = Description(1, {}, 0, [], [], {})


def obj(kind: str, name: str, status: Any = None, spec: Any = None, **metadata: Any) -> Unstructured:
    body = {"kind": kind, "apiVersion": "x/v1", "spec": spec or {}, "status": status or {}}
    return Unstructured(
        {**body, "metadata": {"name": name, "namespace": "default", "uid": f"{kind}/{name}", **metadata}}
    )


def condition(kind: str, reason: str, message: str, status: str = "False") -> dict[str, str]:
    since = "2025-12-31T23:00:00Z"
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}


def node(name: str, ready: str = "True", message: str = "", **spec: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready, "message": message}]
    return {"metadata": {"name": name}, "spec": spec, "status": {"conditions": conditions}}


def pod(name: str, reason: str, message: str) -> dict[str, Any]:
    statuses = [{"state": {"waiting": {"reason": reason, "message": message}}}]
    return {"metadata": {"name": name}, "status": {"containerStatuses": statuses}}


def workload(**more: Any) -> list[Diagnosis]:
    return examine(Facts(NOW, [], workloads={HARBOUR: Workload(**more)}, commands=COMMANDS))


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        (
            {"nodes": [node("n", "False", "container runtime network not ready: cni plugin not initialized")]},
            "NoNetworkPlugin",
        ),
        (
            {"nodes": [node("n", taints=[{"key": "node.cloudprovider.kubernetes.io/uninitialized"}])]},
            "NoCloudController",
        ),
        ({"nodes": [node("n", "Unknown", "Kubelet stopped posting node status.")]}, "NodeNotReady"),
        ({"pods": [pod("p", "ImagePullBackOff", "registry.k8s.io: no such host")]}, "ImagePullFailed"),
        ({"pods": [pod("p", "CrashLoopBackOff", "back-off 5m0s")]}, "PodCrashes"),
        ({"certificate_seconds": -1.0}, "KubeconfigExpired"),
        ({"error": "no answer from https://10.0.0.1:6443 within 5 s"}, "ControlPlaneUnreachable"),
    ],
)
def test_a_workload_cluster_tells_what_is_wrong_in_it(facts: dict[str, Any], cause: str) -> None:
    [found] = workload(**facts)
    assert (found.cause, found.serious) == (cause, True)
    assert found.cure.startswith(("kubectl --kubeconfig /data/kubeconfig ", "homeport "))


@pytest.mark.parametrize(("seconds", "found"), [(3.0, []), (30.0, [False]), (90.0, [True])])
def test_a_silent_console_is_a_notice_until_any_vm_should_have_started(seconds: float, found: list[bool]) -> None:
    since = rfc3339(NOW - seconds)
    held = {"type": "InfrastructureReady", "status": "True", "reason": "Ready", "lastTransitionTime": since}
    machine = obj("Machine", "m", status={"conditions": [held]})
    said = examine(Facts(NOW, [machine], consoles={Key("default", "m"): []}))
    assert [each.serious for each in said if each.cause == "GuestSilent"] == found


def test_the_silent_console_of_a_controller_without_a_node_is_not_reported_once_it_has_joined() -> None:
    since = rfc3339(NOW - 90.0)
    held = {"type": "InfrastructureReady", "status": "True", "reason": "Ready", "lastTransitionTime": since}
    joined = {"type": "ControllerHealthy", "status": "True", "reason": "ControllerHealthy"}
    machine = obj("Machine", "m", status={"conditions": [held, joined]})
    assert not list(examine(Facts(NOW, [machine], consoles={Key("default", "m"): []})))


def test_certificates_that_end_soon_are_a_notice_and_expired_ones_an_error() -> None:
    def machine(ends: str) -> Unstructured:
        owner = {"kind": "KubeadmControlPlane", "name": "harbour", "controller": True, "uid": "1"}
        return obj("Machine", "m", {"certificatesExpiryDate": ends}, ownerReferences=[owner])

    [soon] = examine(Facts(NOW, [machine("2026-01-05T00:00:00Z")], commands=COMMANDS))
    assert (soon.cause, soon.serious) == ("CertificateExpires", False)
    assert soon.cure == "homeport rollout restart kubeadmcontrolplane/harbour -n default --data /data"
    [late] = examine(Facts(NOW, [machine("2025-12-05T00:00:00Z")]))
    assert late.serious
    assert examine(Facts(NOW, [machine("2026-12-05T00:00:00Z")])) == []


def _webhooks(kind: str, bundle: bytes) -> Unstructured:
    config = {"caBundle": base64.b64encode(bundle).decode()} if bundle else {}
    meta = {"name": "homeport-webhook.homeport-system", "annotations": {INJECT_ANNOTATION: "homeport-system/x"}}
    return Unstructured(kind=kind, metadata=meta, webhooks=[{"name": "validate.x", "clientConfig": config}])


def _ca(days: float) -> bytes:
    """Made so many days from now, good for 90."""
    moment = datetime.datetime.fromtimestamp(NOW, datetime.UTC) + datetime.timedelta(days=days)
    return certs.certificate_pem(certs.sign_ca(certs.make_key(), moment, days=90))


@pytest.mark.parametrize(
    ("bundle", "words"),
    [
        (b"", "the CA is missing (caBundle of webhook validate.x)"),
        (b"garbage", "the CA is not valid PEM"),
        (_ca(-100), "the CA expired on 2025-12-22"),
        (_ca(9), "the CA is valid from 2026-01-09 only"),
        (_ca(0), ""),
        (_ca(-100) + _ca(0), ""),
    ],
    ids=["none", "garbage", "expired", "early", "good", "one of two is good"],
)
def test_webhooks_that_the_api_server_does_not_trust_are_named_with_the_reason(bundle: bytes, words: str) -> None:
    both = [_webhooks(f"{verb}WebhookConfiguration", bundle) for verb in ("Mutating", "Validating")]
    found = examine(Facts(NOW, [], webhooks=both, commands=COMMANDS))
    assert [(each.cause, each.serious) for each in found] == ([("WebhookNotTrusted", True)] if words else [])
    if words:
        assert found[0].message.startswith(words)
        assert "the API server rejects writes" in found[0].message
        assert found[0].cure == "kubectl --kubeconfig /data/kubeconfig get pods -n homeport-system"


def test_the_plane_itself_comes_before_everything_else() -> None:
    crashed = Description(1, {}, 0, [PartState("controllers", "waiting", 3, "ValueError: x", 1.0)], [], {"cups": "no"})
    sick = obj("NutanixCluster", "a", {"conditions": [condition("PrismClientInit", "AccessDenied", "no")]})
    found = examine(Facts(NOW, [sick], plane=crashed))
    assert [each.cause for each in found] == ["ComponentCrashed", "KindNotWatched", "AccessDenied"]
    standby = Description(1, {}, 0, [], [], {}, standby="its clusters were moved to there")
    assert examine(Facts(NOW, [], plane=standby))[0].cause == "StandingBy"


def test_a_paused_cluster_is_a_notice_with_the_command_that_resumes_it() -> None:
    [found] = examine(Facts(NOW, [obj("Cluster", "harbour", spec={"paused": True})], commands=COMMANDS))
    assert (found.cause, found.serious) == ("Paused", False)
    assert '{"spec":{"paused":false}}' in found.cure


def test_consequences_are_folded_below_their_cause() -> None:
    text = "spec.prismCentral.credentialRef: Secret default/prism does not exist: create it"
    infra = obj(
        "NutanixCluster", "harbour", {"conditions": [condition("PrismClientInit", "InvalidConfiguration", text)]}
    )
    above = [condition("InfrastructureReady", "InvalidConfiguration", f"NutanixCluster harbour: {text}")]
    cluster = obj("Cluster", "harbour", {"conditions": above})
    [found] = examine(Facts(NOW, [cluster, infra], commands=COMMANDS))
    assert (found.place, found.consequences) == ("NutanixCluster harbour", ["Cluster harbour"])
    assert found.cure == "kubectl --kubeconfig /data/kubeconfig edit nutanixcluster harbour -n default"


def test_clusters_with_the_same_conflict_are_listed_each_with_what_follows_from_its_own() -> None:
    text = "spec.controlPlaneEndpoint.host: 10.0.0.9 is already the endpoint of NutanixCluster default/first: choose another"
    taken = [condition("ControlPlaneEndpointFree", "EndpointInUse", text)]
    objects = []
    for name in ("second", "third"):
        above = [condition("InfrastructureReady", "EndpointInUse", f"NutanixCluster {name}: {text}")]
        objects += [obj("NutanixCluster", name, {"conditions": taken}), obj("Cluster", name, {"conditions": above})]
    found = examine(Facts(NOW, objects, commands=COMMANDS))
    assert [(each.place, each.consequences) for each in found] == [
        ("NutanixCluster second", ["Cluster second"]),
        ("NutanixCluster third", ["Cluster third"]),
    ]


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("curl: (6) Could not resolve host: get.k0s.sh", "GuestHasNoDNS"),
        ("failed to pull image registry.k8s.io/pause:3.9", "GuestCannotPullImages"),
        (
            "this version of kubeadm only supports deploying clusters with the control plane version >= 1.28",
            "ImageVersionMismatch",
        ),
        ("bash: kubeadm: command not found", "ImageLacksPrograms"),
        ("curl: (28) download failed: timed out", "GuestHasNoInternet"),
        ("error: could not find a JWS signature in the cluster-info ConfigMap", "JoinTokenInvalid"),
        ("No bootable device.", "ImageDoesNotBoot"),
        ("[ERROR Swap]: running with swap on is not supported", "KubeadmFailed"),
    ],
)
def test_the_console_of_a_machine_that_did_not_join_is_quoted(line: str, cause: str) -> None:
    facts = Facts(
        NOW, [obj("Machine", "m")], consoles={Key("default", "m"): ["[    0.1] SeaBIOS", f"[    3.2] {line}"]}
    )
    [found] = examine(facts)
    assert (found.cause, found.layer) == (cause, "guest")
    assert line in found.message
    joined = obj("Machine", "m", {"nodeRef": {"name": "m"}})
    assert examine(Facts(NOW, [joined], consoles=facts.consoles)) == []


def test_networks_that_overlap_are_found_in_objects_of_an_older_release() -> None:
    network = {"pods": {"cidrBlocks": ["10.96.0.0/16"]}, "services": {"cidrBlocks": ["10.96.0.0/12"]}}
    [found] = examine(Facts(NOW, [obj("Cluster", "harbour", spec={"clusterNetwork": network})], plane=PLANE))
    assert found.cause == "NetworksOverlap"


def uninitialized(age_seconds: float) -> dict[str, Any]:
    made = node("n", taints=[{"key": "node.cloudprovider.kubernetes.io/uninitialized"}])
    made["metadata"]["creationTimestamp"] = rfc3339(NOW - age_seconds)
    return made


def test_a_cloud_controller_manager_that_is_late_is_told_from_one_that_never_comes() -> None:
    [early] = workload(nodes=[uninitialized(60)])
    assert (early.cause, early.serious, "too early" in early.message) == ("NoCloudController", False, True)
    [never] = workload(nodes=[uninitialized(600)])
    assert (never.serious, "none is installed in kube-system" in never.message) == (True, True)
    crashing = pod("nutanix-cloud-controller-manager-x", "CrashLoopBackOff", "back-off 5m0s")
    [cause] = workload(nodes=[uninitialized(600)], pods=[crashing])
    assert (cause.cause, cause.object) == ("PodCrashes", "kube-system/nutanix-cloud-controller-manager-x")
    assert cause.consequences == ["Cluster harbour"]
    [off] = workload(nodes=[uninitialized(600)], pods=[pod("ccm-x", "", "")])
    assert "Pod kube-system/ccm-x should do it and is not started" in off.message


@pytest.mark.parametrize(
    ("reason", "layer", "serious"),
    [
        ("TaskFailed", "machine", True),
        ("TaskOverdue", "machine", True),
        ("VendorWarning", "machine", True),
        ("QuotaUsedUp", "capacity", True),
        ("QuotaNearlyUsedUp", "capacity", False),
    ],
)
def test_what_the_provider_records_is_a_finding(reason: str, layer: str, serious: bool) -> None:
    probes = [Probe(obj("NutanixMachine", "m"), reason, "what the provider says about it")]
    [found] = examine(Facts(NOW, [], commands=COMMANDS, probes=probes))
    assert (found.cause, found.layer, found.serious) == (reason, layer, serious)
    assert found.cure.startswith("kubectl --kubeconfig /data/kubeconfig describe nutanixmachine m")


def test_a_wrong_field_of_a_template_leads_to_the_template_because_the_infrastructure_does_not_have_it() -> None:
    text = "AcmeMachineTemplate a and AcmeMachineTemplate b: spec.template.spec.image: image 'x' not found"
    infra = obj("AcmeCluster", "harbour", {"conditions": [condition("ReferencesResolved", "NotFound", text)]})
    [found] = examine(Facts(NOW, [infra], commands=COMMANDS))
    assert found.cure == "kubectl --kubeconfig /data/kubeconfig get acmemachinetemplate a -n default -o yaml"
    assert found.message.startswith(f"{text}. Templates are immutable: ")
    own = obj("AcmeCluster", "quay", {"conditions": [condition("ReferencesResolved", "NotFound", "spec.site: no 'x'")]})
    [found] = examine(Facts(NOW, [own], commands=COMMANDS))
    assert found.cure == "kubectl --kubeconfig /data/kubeconfig edit acmecluster quay -n default"


def test_a_reference_that_leads_nowhere_names_similar_objects_and_the_object_to_edit() -> None:
    absent = condition("InfrastructureReady", "ObjectDoesNotExist", "NutanixCluster harbor does not exist")
    told = "KubeadmControlPlane quay: NutanixMachineTemplate quay-control does not exist yet; did you mean 'quay-cp'?"
    early = condition("ReferencesResolved", "WaitingForTemplates", told)
    objects = [
        obj("Cluster", "harbour", {"conditions": [absent, condition("Available", "NotAvailable", absent["message"])]}),
        obj("NutanixCluster", "harbour"),
        obj("NutanixCluster", "quay", {"conditions": [early, condition("Ready", "WaitingForTemplates", told)]}),
    ]
    found = examine(Facts(NOW, objects, commands=COMMANDS))
    assert [(each.place, each.message, each.cure.partition("kubeconfig ")[2]) for each in found] == [
        ("NutanixCluster quay", told, "/data/kubeconfig edit kubeadmcontrolplane quay -n default"),
        (
            "Cluster harbour",
            "NutanixCluster harbor does not exist; did you mean 'harbour'?",
            "/data/kubeconfig edit cluster harbour -n default",
        ),
    ]


def test_a_template_that_no_cluster_uses_yet_is_named_as_similar() -> None:
    told = "0 of 1 replicas are available; KubeadmConfigTemplate quay-worker does not exist"
    workers = obj("MachineDeployment", "quay", {"conditions": [condition("Available", "NotAvailable", told)]})
    around = [workers, obj("KubeadmConfigTemplate", "quay-workers")]
    [found] = examine(Facts(NOW, [workers], commands=COMMANDS, around=around))
    assert found.message == "KubeadmConfigTemplate quay-worker does not exist; did you mean 'quay-workers'?"


def test_a_secret_that_does_not_exist_is_not_to_be_edited() -> None:
    told = "spec.prismCentral.credentialRef: Secret default/prsim does not exist: create it; did you mean 'prism'?"
    found = obj("NutanixCluster", "harbour", {"conditions": [condition("Ready", "InvalidConfiguration", told)]})
    [diagnosis] = examine(Facts(NOW, [found], commands=COMMANDS))
    assert "edit nutanixcluster harbour" in diagnosis.cure


def test_what_a_cluster_repeats_of_its_infrastructure_is_a_consequence() -> None:
    told = "NutanixMachineTemplate cp: spec.template.spec.image: image 'ubuntu' not found; did you mean 'ubuntu-22'?"
    below = [condition("ReferencesResolved", "NotFound", told), condition("Ready", "NotFound", told)]
    above = condition("InfrastructureReady", "NotFound", f"NutanixCluster harbour: {told}")
    objects = [
        obj("Cluster", "harbour", {"conditions": [above, condition("Available", "NotAvailable", above["message"])]}),
        obj("NutanixCluster", "harbour", {"conditions": below}),
    ]
    [found] = examine(Facts(NOW, objects, commands=COMMANDS))
    assert found.consequences == ["Cluster harbour"]
    assert "did you mean 'ubuntu-22'? Templates are immutable" in found.message


def test_machines_without_a_network_plugin_are_one_finding_of_their_cluster() -> None:
    why = "container runtime network not ready: cni plugin not initialized"
    unhealthy = condition("NodeHealthy", "NodeNotHealthy", f"Node n: Ready: {why}")
    status = {"conditions": [unhealthy, condition("Ready", "NotReady", unhealthy["message"])], "nodeRef": {"name": "n"}}
    machine = obj("Machine", "m", status, {"clusterName": "harbour"})
    workloads = {HARBOUR: Workload(nodes=[node("n", "False", why)])}
    [found] = examine(Facts(NOW, [machine], workloads=workloads, commands=COMMANDS))
    assert found.cause == "NoNetworkPlugin"


def test_clusters_to_which_nothing_brings_a_network_plugin_are_one_finding() -> None:
    ref = {"kind": "KubeadmControlPlane", "name": "cp"}
    names = ["a", "b", "c", "d", "e", "f", "g", "h"]
    objects = [
        Unstructured({**obj("Cluster", name, spec={"controlPlaneRef": ref}), "apiVersion": "cluster.x-k8s.io/v1beta2"})
        for name in names
    ]
    [found] = examine(Facts(NOW, objects, commands=COMMANDS))
    assert found.message.endswith("The same is true for Clusters b, c, d, e, f and 2 more")


def test_parts_whose_cluster_does_not_exist_are_found() -> None:
    told = condition("Available", "WaitingForCluster", "Cluster harbor does not exist")
    objects = [obj("MachineDeployment", "workers", {"conditions": [told]}), obj("Cluster", "harbour")]
    [found] = examine(Facts(NOW, objects, commands=COMMANDS))
    assert (found.cause, found.serious) == ("NoCluster", True)
    assert found.message == "Cluster harbor does not exist; did you mean 'harbour'?"


def test_a_cluster_that_waits_for_a_named_cause_is_not_listed_again() -> None:
    told = "KubeadmControlPlane harbour: NutanixMachineTemplate cp does not exist yet"
    above = [
        condition("Available", "NotAvailable", f"NutanixCluster harbour: {told}"),
        condition("InfrastructureReady", "WaitingForTemplates", f"NutanixCluster harbour: {told}"),
        condition("RemoteConnectionProbe", "ProbeFailed", "the infrastructure of the cluster is not provisioned yet"),
    ]
    cluster = obj("Cluster", "harbour", {"conditions": above})
    below = obj("NutanixCluster", "harbour", {"conditions": [condition("Ready", "WaitingForTemplates", told)]})
    found = examine(Facts(NOW, [cluster, below], roots=[cluster], commands=COMMANDS))
    assert [(each.place, each.consequences) for each in found] == [("NutanixCluster harbour", ["Cluster harbour"])]


def test_a_cluster_that_can_not_be_reached_is_not_reported_as_missing() -> None:
    told = "Cluster harbour: no connection to https://10.240.0.10:6443: the connection was reset"
    addon = obj("ClusterAddon", "harbour-cilium", {"conditions": [condition("Ready", "WaitingForCluster", told)]})
    assert examine(Facts(NOW, [addon], commands=COMMANDS)) == []
