"""The roles of an installation, each held to what its own Deployment calls: every right is used, or has a reason.

Whole clusters of all platforms and providers come and go, hosted control planes included.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import audit
from audit import Call
from capikit.deployed import deployed
from capikit.harvester import harvester_beside
from capikit.podnetwork import NetworkedKube
from e2e.test_clusterctl import ROOT
from e2e.test_install_on_kubernetes import ok
from homeport.app.kubernetes.layout import Placement, placements
from homeport.app.platform import chosen
from homeport.platforms.butler.team.binding import cluster_roles
from realkube import RealKube
from scenario.harvester import manifest

pytestmark = [pytest.mark.timeout(900)]

EXAMPLES = [ROOT / "examples" / "09-tenant" / "tenant.yaml", ROOT / "examples" / "10-deployment" / "deployment.yaml"]
OBJECTS = Path(__file__).with_name("rights.yaml")
KEPT = ("Secret", "ProviderConfig", "InClusterIPPool")  # what others use can't be deleted before them
READY = (  # in the order in which they come up
    "ipaddressclaim/one condition=Ready",
    "team/crew condition=Ready",
    "tenantcontrolplanes.kamaji.clastix.io/lagoon condition=Ready",
    "tenantcontrolplanes.steward.butlerlabs.dev/fjord condition=Ready",
    # Its DataStore was made on first need, and reached by the name of its Service.
    "datastores.steward.butlerlabs.dev/default jsonpath={.spec.endpoints[0]}=datastore.homeport-system.svc:2379",
    "statefulset/datastore jsonpath={.status.readyReplicas}=1 -n homeport-system",
    "kubeconfiggenerators.steward.butlerlabs.dev/viewers condition=Ready",
    "cluster/bay jsonpath={.status.initialization.infrastructureProvisioned}=true",
    "jointokenrequest/strait-worker condition=JoinTokenSecretCreated",
    "machinerequest/buoy jsonpath={.status.phase}=Running -n butler-system",
    "cluster/one condition=Available",
    "tenantcluster/quay condition=Ready",
    "clusterdeployment/pier condition=Ready -n kcm-system",
)

# What a ServiceAccount may without any role: it asks for its own rights.
ANYBODY = {
    "create selfsubjectaccessreviews.authorization.k8s.io",
    "create selfsubjectrulesreviews.authorization.k8s.io",
}
_CONTRACT = r"(bootstrap|controlplane|infrastructure)\.cluster\.x-k8s\.io"
_ABSENT = "no such object is part of this flow"
# Of every Deployment.
REASONS = {
    r"get .*": "comes with list: who may list objects may read each of them",
    r"list .*": "servers that do not stream the first list of a watch are asked for it",
    r"(create|patch) events(\.events\.k8s\.io)?": "nothing happened, or not twice",
    r"delete leases\.coordination\.k8s\.io": "Leases of replicas that died are removed with --shards",
    rf"watch \S+\.{_CONTRACT}": "kinds behind a contract are followed when an object refers to one of them",
    r"patch secrets": "a certificate or kubeconfig is renewed",
    r"\w+ ipaddressclaims\.ipam\.cluster\.x-k8s\.io": "addresses come from DHCP here",
    rf"patch \w+clusters/status\.{_CONTRACT}": "of the kind that a Cluster refers to, if nobody else reports its status",
}
_PROVIDER = {
    r"patch imagesyncs(/status)?\.butler\.butlerlabs\.dev": _ABSENT,
    r"update \w+/finalizers\.butler\.butlerlabs\.dev": "a ValidatingAdmissionPolicy asks when one is removed",
}
# Of single ones, by their name.
OWN: Mapping[str, Mapping[str, str]] = {
    "butler-provider-nutanix": _PROVIDER,
    "butler-provider-harvester": _PROVIDER,
    "homeport-controller-manager": {
        r"update secrets": "the CA of the webhooks is renewed",
        r"update configmaps": "the certificate of the dashboard is renewed",
        r"patch providers\.clusterctl\.cluster\.x-k8s\.io": "the inventory of an older version is brought up to date",
    },
    "capi-controller-manager": {
        rf"(create|patch|delete) \w+\.{_CONTRACT}": "which kinds are made from templates, ClusterClasses of users say",
        r"\w+ machine(healthcheck|pool)s(/status)?\.cluster\.x-k8s\.io": _ABSENT,
        r"\w+ clusterresourceset(binding)?s(/status)?\.addons\.cluster\.x-k8s\.io": _ABSENT,
        r"patch clusterclasses\.cluster\.x-k8s\.io": _ABSENT,
        r"create secrets": "keys of a Cluster whose control plane brings none",
    },
    "capi-kubeadm-bootstrap-controller-manager": {
        rf"patch kubeadmconfig(template)?s\.{_CONTRACT}": "of objects that users created",
    },
    "capi-kubeadm-control-plane-controller-manager": {
        rf"(create|patch|delete) \w+\.{_CONTRACT}": "which kinds are made from templates, templates of users say",
        r"(patch|delete) machines\.cluster\.x-k8s\.io": "the control plane is neither changed nor scaled down here",
    },
    "k0smotron-controller-manager": {
        rf"(create|patch|delete) \w+\.{_CONTRACT}": "which kinds are made from templates, templates of users say",
        rf"patch (k0s|k0smotron|remote|pooledremote)\w+/status\.{_CONTRACT}": _ABSENT,
        r"(create|patch|delete) machines(/status)?\.cluster\.x-k8s\.io": "control planes on machines: K0sControlPlane",
        r"(create|patch|delete) ingresses\.networking\.k8s\.io": "spec.ingress",
        r"(create|patch|delete) cronjobs\.batch": "etcd is defragmented on a schedule if spec says so",
        r"delete (configmaps|services|secrets|persistentvolumeclaims)": "spec changes, or says that data is deleted",
        r"patch clusters\.cluster\.x-k8s\.io": "the address of a control plane, if its Cluster does not have it",
        r"create namespaces": "a control plane in another namespace than its Cluster",
        r"delete (clusters|jointokenrequests)\.k0smotron\.io": "the garbage collector is faster, or a token expires",
    },
    "capx-controller-manager": {
        rf"patch nutanix\w+\.{_CONTRACT}": "of objects that users created",
        rf"patch nutanix(failuredomain|metro|metrosite|virtualhadomain)s/status\.{_CONTRACT}": _ABSENT,
    },
    "capk-controller-manager": {rf"patch kubevirt\w+\.{_CONTRACT}": "of objects that users created"},
    "steward-controller-manager": {
        r"\w+ (ingresses|tlsroutes|ingressroutetcps)\..*": "spec chooses one of these kinds",
        r"patch kubeconfiggenerators\.steward\.butlerlabs\.dev": "it has no finalizer here",
    },
    "capi-steward-controller-manager": {
        rf"patch \w+\.{_CONTRACT}": "of the kind that a Cluster refers to",
        r"delete tenantcontrolplanes\.steward\.butlerlabs\.dev": "the garbage collector is faster",
    },
    "kamaji": {
        rf"patch \w+\.{_CONTRACT}": "of the kind that a Cluster refers to",
        r"\w+ (ingresses|tlsroutes|ingressroutetcps)\..*": "spec chooses one of these kinds",
        r"patch kubeconfiggenerators(/status)?\.kamaji\.clastix\.io": _ABSENT,
        r"delete (secrets|services)": "a KubeconfigGenerator is deleted",
        r"delete tenantcontrolplanes\.kamaji\.clastix\.io": "the garbage collector is faster",
    },
    "butler-controller": {
        rf"(create|patch|delete) \w+\.{_CONTRACT}": "which kinds a tenant cluster has, its provider says",
        r"\w+ \w+(/status)?\.butler\.butlerlabs\.dev": _ABSENT,
        r"\w+ (certificatesigningrequests(/\w+)?|signers)\.certificates\.k8s\.io": "no member asks for a kubeconfig here",
        r"patch validatingadmissionpolic\w+\.admissionregistration\.k8s\.io": "nobody changed them",
        r"(create|patch|delete) (machines|machinedeployments|clusters/status)\.cluster\.x-k8s\.io": (
            "a ClusterBootstrap, and machine pools that a user removes"
        ),
        r"(create|patch|delete) (configmaps|namespaces)": "a ClusterBootstrap, and the namespace that it takes with it",
        r"(create|patch|delete) roles\.rbac\.authorization\.k8s\.io": "environments of teams",
        r"delete (clusteraddons\.addons\.homeport\.dev|secrets)": "an add-on is removed",
    },
    "kcm-controller-manager": {
        rf"\w+ \w+\.({_CONTRACT}|(ipam\.)?cluster\.x-k8s\.io|k0smotron\.io)": "charts of templates render these",
        r"\w+ \w+(/status)?\.(k0rdent\.mirantis\.com|source\.toolkit\.fluxcd\.io)": _ABSENT,
        r"\w+ (configmaps|secrets|namespaces)": "objects that AccessManagements share with other namespaces",
        r"delete clusteraddons\.addons\.homeport\.dev": "a service is removed",
    },
}
# The first of two that needs a DataStore makes it for both: one of them uses these rights.
DATASTORE = r"(create|patch) (configmaps|namespaces|secrets|services|statefulsets\.apps)"
DATASTORE_MAKERS = ("steward-controller-manager", "kamaji")


@pytest.fixture
def kube(binaries: dict[str, Path] | str) -> Iterator[NetworkedKube]:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    made = NetworkedKube(binaries)
    made.audited = True
    with made:
        yield made


async def test_every_right_of_every_deployment_is_used_or_has_a_reason(
    kube: NetworkedKube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with deployed(kube, tmp_path, monkeypatch) as made, harvester_beside(made.site) as secret:
        objects = [each for file in (OBJECTS, *EXAMPLES) for each in yaml.safe_load_all(file.read_text())]
        objects += [secret, *manifest.cluster_objects("one", 1, 1)]
        await asyncio.to_thread(ok, kube, "apply", "-f", _written(tmp_path, objects))
        for each in READY:
            await asyncio.to_thread(_await, kube, *each.split())
        # Before its KubeconfigGenerator, which would have nothing to remove otherwise.
        tenant = "tenantcontrolplanes.steward.butlerlabs.dev/fjord"
        await asyncio.to_thread(ok, kube, "delete", tenant, "--wait=false")
        await asyncio.to_thread(_await, kube, "secret/viewers-fjord", "delete")
        clusters = _written(tmp_path, (each for each in objects if each["kind"] not in KEPT))
        await asyncio.to_thread(ok, kube, "delete", "-f", clusters, "--wait=false", "--ignore-not-found")
        await asyncio.to_thread(_await_gone, kube, clusters)
    _judge(kube)


def _written(folder: Path, objects: Iterable[Mapping[str, Any]]) -> str:
    path = folder / "objects.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return str(path)


def _await(kube: RealKube, what: str, condition: str, *more: str) -> None:
    for _ in range(4):  # kubectl of RealKube ends after a minute
        waited = kube.kubectl("wait", what, f"--for={condition}", "--timeout=50s", *more)
        if waited.returncode == 0:
            return
    pytest.fail(f"{waited.stderr}{ok(kube, 'get', what, '-o', 'yaml', *more)}")


def _await_gone(kube: RealKube, file: str) -> None:
    for _ in range(4):
        waited = kube.kubectl("wait", "-f", file, "--for=delete", "--timeout=50s")
        if waited.returncode == 0:
            return
    pytest.fail(waited.stdout + waited.stderr)


def _judge(kube: RealKube) -> None:
    called = audit.calls_by(kube.dir)
    kinds = "clusterroles,roles,clusterrolebindings,rolebindings"
    objects = json.loads(ok(kube, "get", kinds, "-A", "-l", "homeport.dev/installed", "-o", "json"))["items"]
    places = placements(chosen().components, "split")
    accounts = {each: f"{each.namespace}:{each.name}" for each in places}
    wrong: list[str] = []  # of all Deployments, so that one run tells everything
    for place in places:
        granted = audit.granted(_roles(objects, place))
        lacking = {str(each) for each in called[accounts[place]] - granted} - ANYBODY
        found = {call for each in places for call in called[accounts[each]] if _stands_for(each, place, call)}
        reasons = {**REASONS, **OWN.get(place.name, {})}
        unused = {str(each) for each in granted - found if not _excused(each, found, reasons, place.name)}
        # A reason for nothing is out of date.
        empty = [each for each in OWN.get(place.name, ()) if not any(re.fullmatch(each, str(call)) for call in granted)]
        wrong += [f"{place} calls without a right: {each}" for each in sorted(lacking)]
        wrong += [f"{place} does not use: {each}" for each in sorted(unused)]
        wrong += [f"{place} has no such right, but a reason: {each}" for each in empty]
    assert wrong == []


def _stands_for(other: Placement, place: Placement, call: Call) -> bool:
    """Deployments with one Lease have the same controllers: one works, the other stands by."""
    makers = other.name in DATASTORE_MAKERS and place.name in DATASTORE_MAKERS
    return other.lease == place.lease or (makers and re.fullmatch(DATASTORE, str(call)) is not None)


def _roles(objects: Iterable[Mapping[str, Any]], place: Placement) -> list[Mapping[str, Any]]:
    """Those that are bound to the account of a Deployment."""
    subject = {"kind": "ServiceAccount", "name": place.name, "namespace": place.namespace}
    bound = {
        (each["roleRef"]["kind"], each["roleRef"]["name"], each["metadata"].get("namespace", ""))
        for each in objects
        if subject in (each.get("subjects") or ())
    }
    return [each for each in objects if (each["kind"], each["metadata"]["name"], _space(each)) in bound]


def _space(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"].get("namespace", ""))


def _excused(call: Call, called: set[Call], reasons: Mapping[str, str], name: str) -> bool:
    if call.verb == "create" and call._replace(verb="patch") in called:
        return True  # server-side apply creates what is missing, and an API server asks for both
    if name == "butler-controller" and call in audit.granted(cluster_roles()):
        return True  # nobody can grant what they do not have: roles of teams and users are part of its role
    return bool(audit.reason_of(call, reasons))
