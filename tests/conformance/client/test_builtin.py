"""Built-in kinds: their defaults and the words of their refusals."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.client.api import CRDS, NODES, Api
from homeport.api.meta import Resource
from homeport.client.protocol import Key, MergePatch, Write

DRY = Write(dry_run=True)
KINDS = {
    kind.kind: kind
    for kind in (
        Resource("", "v1", "Namespace", "namespaces", namespaced=False),
        Resource("", "v1", "ConfigMap", "configmaps"),
        Resource("", "v1", "Secret", "secrets"),
        Resource("", "v1", "Service", "services"),
        Resource("", "v1", "Endpoints", "endpoints"),
        Resource("", "v1", "Event", "events"),
        Resource("", "v1", "Pod", "pods"),
        NODES,
        Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
        Resource("", "v1", "ServiceAccount", "serviceaccounts"),
        Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
        Resource("apps", "v1", "Deployment", "deployments"),
        Resource("apps", "v1", "StatefulSet", "statefulsets"),
        Resource("apps", "v1", "DaemonSet", "daemonsets"),
        Resource("apps", "v1", "ReplicaSet", "replicasets"),
        Resource("batch", "v1", "Job", "jobs"),
        Resource("coordination.k8s.io", "v1", "Lease", "leases"),
        Resource(
            "admissionregistration.k8s.io",
            "v1",
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
            namespaced=False,
        ),
        Resource(
            "admissionregistration.k8s.io",
            "v1",
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
            namespaced=False,
        ),
        CRDS,
    )
}
POD = {"containers": [{"name": "c", "image": "example.com/i"}]}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
SELECTOR = {"matchLabels": {"a": "b"}}
HOOK: dict[str, Any] = {
    "name": "h.example.com",
    "clientConfig": {"url": "https://example.com/x"},
    "rules": [
        {"operations": ["CREATE"], "apiGroups": ["nowhere.example.com"], "apiVersions": ["v1"], "resources": ["things"]}
    ],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}

GOOD: dict[str, tuple[str, dict[str, Any]]] = {
    "namespace": ("Namespace", {}),
    "configmap with bytes": ("ConfigMap", {"data": {"a": "b"}, "binaryData": {"c": "AAE="}}),
    "secret": ("Secret", {"data": {"a": "YQ=="}, "stringData": {"b": "c"}}),
    "tls secret": ("Secret", {"type": "kubernetes.io/tls", "data": {"tls.crt": "YQ==", "tls.key": "YQ=="}}),
    "headless service": ("Service", {"spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 80}]}}),
    "external name": ("Service", {"spec": {"type": "ExternalName", "externalName": "example.com"}}),
    "endpoints": ("Endpoints", {"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]}),
    "endpoint slice": (
        "EndpointSlice",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 80}]},
    ),
    "pod": ("Pod", {"spec": POD}),
    "pod with requests": (
        "Pod",
        {
            "spec": {
                "containers": [
                    {"name": "c", "image": "i:latest", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
                ]
            }
        },
    ),
    "pod with probes": (
        "Pod",
        {
            "spec": {
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "ports": [{"containerPort": 80}],
                        "livenessProbe": {"httpGet": {"port": 80}},
                    }
                ],
                "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
            }
        },
    ),
    "node": ("Node", {"spec": {"podCIDR": "10.0.0.0/24", "taints": [{"key": "k", "effect": "NoSchedule"}]}}),
    "claim": (
        "PersistentVolumeClaim",
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    ),
    "service account": ("ServiceAccount", {"automountServiceAccountToken": False}),
    "deployment": ("Deployment", {"spec": {"selector": SELECTOR, "template": TEMPLATE}}),
    "deployment with strategy": (
        "Deployment",
        {
            "spec": {
                "replicas": 0,
                "selector": SELECTOR,
                "template": TEMPLATE,
                "strategy": {"rollingUpdate": {"maxSurge": "50%"}},
            }
        },
    ),
    "stateful set": ("StatefulSet", {"spec": {"selector": SELECTOR, "serviceName": "s", "template": TEMPLATE}}),
    "daemon set": ("DaemonSet", {"spec": {"selector": SELECTOR, "template": TEMPLATE}}),
    "replica set": ("ReplicaSet", {"spec": {"selector": SELECTOR, "template": TEMPLATE}}),
    "lease": (
        "Lease",
        {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.123456Z"}},
    ),
    "event": (
        "Event",
        {
            "involvedObject": {"kind": "Pod", "namespace": "$ns", "name": "p"},
            "reason": "R",
            "message": "m",
            "type": "Normal",
            "count": 1,
        },
    ),
    "validating hook": ("ValidatingWebhookConfiguration", {"webhooks": [HOOK]}),
    "mutating hook": ("MutatingWebhookConfiguration", {"webhooks": [HOOK]}),
}

BAD: dict[str, tuple[str, dict[str, Any]]] = {
    "configmap key": ("ConfigMap", {"data": {"bad key": "x"}}),
    "configmap twice": ("ConfigMap", {"data": {"k": "x"}, "binaryData": {"k": "AAE="}}),
    "configmap not base64": ("ConfigMap", {"binaryData": {"k": "%%"}}),
    "configmap number": ("ConfigMap", {"data": {"k": 1}}),
    "configmap too large": ("ConfigMap", {"data": {"k": "x" * (1024 * 1024 + 1)}}),
    "secret not base64": ("Secret", {"data": {"k": "%%"}}),
    "secret tls incomplete": ("Secret", {"type": "kubernetes.io/tls", "data": {"tls.crt": "YQ=="}}),
    "secret docker config": (
        "Secret",
        {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "bm90IGpzb24="}},
    ),
    "secret basic auth": ("Secret", {"type": "kubernetes.io/basic-auth"}),
    "secret account token": ("Secret", {"type": "kubernetes.io/service-account-token"}),
    "service without ports": ("Service", {"spec": {"selector": {"a": "b"}}}),
    "service bad port": ("Service", {"spec": {"clusterIP": "None", "ports": [{"port": 0}]}}),
    "service port too large": ("Service", {"spec": {"clusterIP": "None", "ports": [{"port": 70000}]}}),
    "service unnamed ports": ("Service", {"spec": {"clusterIP": "None", "ports": [{"port": 1}, {"port": 2}]}}),
    "service duplicate ports": (
        "Service",
        {"spec": {"clusterIP": "None", "ports": [{"name": "a", "port": 1}, {"name": "b", "port": 1}]}},
    ),
    "service duplicate names": (
        "Service",
        {"spec": {"clusterIP": "None", "ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]}},
    ),
    "service type": ("Service", {"spec": {"type": "Magic", "ports": [{"port": 1}]}}),
    "service protocol": ("Service", {"spec": {"clusterIP": "None", "ports": [{"port": 1, "protocol": "HTTP"}]}}),
    "service cluster ip": ("Service", {"spec": {"clusterIP": "no-ip", "ports": [{"port": 1}]}}),
    "service affinity": (
        "Service",
        {"spec": {"clusterIP": "None", "sessionAffinity": "Sticky", "ports": [{"port": 1}]}},
    ),
    "service external name missing": ("Service", {"spec": {"type": "ExternalName"}}),
    "service target port": (
        "Service",
        {"spec": {"clusterIP": "None", "ports": [{"port": 1, "targetPort": "NOT_A_NAME!"}]}},
    ),
    "endpoints loopback": ("Endpoints", {"subsets": [{"addresses": [{"ip": "127.0.0.1"}], "ports": [{"port": 80}]}]}),
    "endpoints no ip": ("Endpoints", {"subsets": [{"addresses": [{"ip": "x"}], "ports": [{"port": 80}]}]}),
    "slice without type": ("EndpointSlice", {"endpoints": []}),
    "slice odd address": ("EndpointSlice", {"addressType": "IPv4", "endpoints": [{"addresses": ["x"]}]}),
    "pod without containers": ("Pod", {"spec": {}}),
    "pod container without name": ("Pod", {"spec": {"containers": [{"image": "i"}]}}),
    "pod container without image": ("Pod", {"spec": {"containers": [{"name": "c"}]}}),
    "pod same container twice": (
        "Pod",
        {"spec": {"containers": [{"name": "c", "image": "i"}, {"name": "c", "image": "i"}]}},
    ),
    "pod container name": ("Pod", {"spec": {"containers": [{"name": "C_1", "image": "i"}]}}),
    "pod restart policy": ("Pod", {"spec": {**POD, "restartPolicy": "Sometimes"}}),
    "pod mount of nothing": (
        "Pod",
        {"spec": {"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/x"}]}]}},
    ),
    "pod volume without source": ("Pod", {"spec": {**POD, "volumes": [{"name": "v"}, {"name": "v"}]}}),
    "pod quantity": (
        "Pod",
        {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "lots"}}}]}},
    ),
    "pod request above limit": (
        "Pod",
        {
            "spec": {
                "containers": [
                    {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}
                ]
            }
        },
    ),
    "pod port": ("Pod", {"spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 0}]}]}}),
    "pod env": ("Pod", {"spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "", "value": "x"}]}]}}),
    "pod pull policy": ("Pod", {"spec": {"containers": [{"name": "c", "image": "i", "imagePullPolicy": "Maybe"}]}}),
    "node cidr": ("Node", {"spec": {"podCIDR": "x", "podCIDRs": ["x"]}}),
    "node taint": ("Node", {"spec": {"taints": [{"key": "k", "effect": "Explode"}]}}),
    "claim without modes": ("PersistentVolumeClaim", {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}),
    "claim without size": ("PersistentVolumeClaim", {"spec": {"accessModes": ["ReadWriteOnce"]}}),
    "claim mode": (
        "PersistentVolumeClaim",
        {"spec": {"accessModes": ["Anyhow"], "resources": {"requests": {"storage": "1Gi"}}}},
    ),
    "deployment without selector": ("Deployment", {"spec": {"template": TEMPLATE}}),
    "deployment selector does not match": (
        "Deployment",
        {"spec": {"selector": {"matchLabels": {"x": "y"}}, "template": TEMPLATE}},
    ),
    "deployment negative": ("Deployment", {"spec": {"replicas": -1, "selector": SELECTOR, "template": TEMPLATE}}),
    "deployment strategy": (
        "Deployment",
        {"spec": {"selector": SELECTOR, "template": TEMPLATE, "strategy": {"type": "Magic"}}},
    ),
    "deployment surge": (
        "Deployment",
        {
            "spec": {
                "selector": SELECTOR,
                "template": TEMPLATE,
                "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}},
            }
        },
    ),
    "deployment restart policy": (
        "Deployment",
        {
            "spec": {
                "selector": SELECTOR,
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {**POD, "restartPolicy": "Never"}},
            }
        },
    ),
    "deployment empty": ("Deployment", {}),
    "stateful set empty": ("StatefulSet", {"spec": {}}),
    "stateful set negative": (
        "StatefulSet",
        {"spec": {"replicas": -1, "selector": SELECTOR, "serviceName": "s", "template": TEMPLATE}},
    ),
    "daemon set empty": ("DaemonSet", {"spec": {}}),
    "replica set empty": ("ReplicaSet", {"spec": {}}),
    "job always": ("Job", {"spec": {"template": {"spec": {**POD, "restartPolicy": "Always"}}}}),
    "job negative": ("Job", {"spec": {"parallelism": -1, "template": {"spec": {**POD, "restartPolicy": "Never"}}}}),
    "lease duration": ("Lease", {"spec": {"leaseDurationSeconds": 0}}),
    "lease time": ("Lease", {"spec": {"renewTime": "now"}}),
    "event elsewhere": ("Event", {"involvedObject": {"kind": "Pod", "namespace": "other", "name": "p"}}),
    "hook without side effects": (
        "ValidatingWebhookConfiguration",
        {"webhooks": [{k: v for k, v in HOOK.items() if k != "sideEffects"}]},
    ),
    "hook name": ("ValidatingWebhookConfiguration", {"webhooks": [{**HOOK, "name": "short"}]}),
    "hook over http": (
        "ValidatingWebhookConfiguration",
        {"webhooks": [{**HOOK, "clientConfig": {"url": "http://example.com"}}]},
    ),
    "hook operation": (
        "MutatingWebhookConfiguration",
        {"webhooks": [{**HOOK, "rules": [{**HOOK["rules"][0], "operations": ["EAT"]}]}]},
    ),
    "hook timeout": ("MutatingWebhookConfiguration", {"webhooks": [{**HOOK, "timeoutSeconds": 99}]}),
    "wrong type deep inside": (
        "Deployment",
        {"spec": {"replicas": "three", "selector": SELECTOR, "template": TEMPLATE}},
    ),
    "object for text": ("Pod", {"spec": {"containers": [{"name": {"a": "b"}, "image": "i"}]}}),
    "text for list": ("Pod", {"spec": {"containers": "c"}}),
    "boolean for text": ("Pod", {"spec": {"containers": [{"name": "c", "image": True}]}}),
}


def build(api: Api, kind: Resource, body: dict[str, Any]) -> dict[str, Any]:
    meta = {"name": f"a-{api.ns}" if not kind.namespaced else "a"}
    if kind.namespaced:
        meta["namespace"] = api.ns
    if kind.kind == "Event" and body["involvedObject"]["namespace"] == "$ns":
        body = {**body, "involvedObject": {**body["involvedObject"], "namespace": api.ns}}
    return {"metadata": meta, **body}


@pytest.mark.parametrize("case", GOOD)
async def test_a_built_in_kind_gets_its_defaults(api: Api, case: str) -> None:
    name, body = GOOD[case]
    kind = KINDS[name]
    await api.outcome(case, api.client.create(build(api, kind, body), DRY, kind=kind))


@pytest.mark.parametrize("case", BAD)
async def test_a_built_in_kind_says_what_is_wrong(api: Api, case: str) -> None:
    name, body = BAD[case]
    kind = KINDS[name]
    await api.outcome(case, api.client.create(build(api, kind, body), DRY, kind=kind))


async def test_what_may_not_change_later(api: Api) -> None:
    async def change(label: str, name: str, body: dict[str, Any], patch: dict[str, Any]) -> None:
        kind = KINDS[name]
        obj = build(api, kind, body)
        obj["metadata"]["name"] = label.replace(" ", "-")
        await api.client.create(obj, kind=kind)
        await api.outcome(label, api.client.patch(kind, api.key(obj["metadata"]["name"]), MergePatch(patch), DRY))

    await change("secret type", "Secret", {"type": "example.com/a"}, {"type": "example.com/b"})
    await change(
        "headless to cluster ip", "Service", GOOD["headless service"][1], {"spec": {"clusterIP": "10.96.0.77"}}
    )
    await change("pod image", "Pod", {"spec": POD}, {"spec": {"containers": [{"name": "c", "image": "other"}]}})
    await change("pod node", "Pod", {"spec": POD}, {"spec": {"nodeName": "n"}})
    await change("pod containers", "Pod", {"spec": POD}, {"spec": {"containers": []}})
    await change(
        "deployment selector", "Deployment", GOOD["deployment"][1], {"spec": {"selector": {"matchLabels": {"x": "y"}}}}
    )
    await change("stateful set service", "StatefulSet", GOOD["stateful set"][1], {"spec": {"serviceName": "t"}})
    await change("claim mode", "PersistentVolumeClaim", GOOD["claim"][1], {"spec": {"accessModes": ["ReadOnlyMany"]}})
    await change("slice type", "EndpointSlice", GOOD["endpoint slice"][1], {"addressType": "IPv6"})
    job = {"spec": {"template": {"spec": {**POD, "restartPolicy": "Never"}}}}
    await change(
        "job template", "Job", job, {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}}
    )


async def test_a_service_gets_an_address_of_the_cluster(api: Api) -> None:
    kind = KINDS["Service"]
    made = await api.client.create(
        build(api, kind, {"spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}}), kind=kind
    )
    spec = made["spec"]
    assert spec["clusterIP"].count(".") == 3
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    api.golden.normal.words[spec["clusterIP"]] = "CLUSTER-IP"
    api.same("service", made)
    await api.refusal(
        "change", api.client.patch(kind, api.key("a"), MergePatch({"spec": {"clusterIP": "10.96.200.200"}}))
    )
    kept = await api.client.patch(kind, api.key("a"), MergePatch({"spec": {"ports": [{"port": 81}]}}))
    assert kept["spec"]["clusterIP"] == spec["clusterIP"]
    node_port = build(api, kind, {"spec": {"type": "NodePort", "ports": [{"port": 80}]}})
    node_port["metadata"]["name"] = "np"
    port = (await api.client.create(node_port, kind=kind))["spec"]["ports"][0]["nodePort"]
    assert 30000 <= port <= 32767


async def test_a_job_gets_its_labels(api: Api) -> None:
    kind = KINDS["Job"]
    obj = build(api, kind, {"spec": {"template": {"spec": {**POD, "restartPolicy": "Never"}}}})
    api.same("job", await api.client.create(obj, kind=kind))


async def test_events_of_both_groups_are_the_same(api: Api) -> None:
    new = Resource("events.k8s.io", "v1", "Event", "events")
    old = KINDS["Event"]
    body = {
        "metadata": {"name": "a", "namespace": api.ns},
        "eventTime": "2026-01-02T03:04:05.123456Z",
        "reportingController": "example.com/c",
        "reportingInstance": "c-0",
        "action": "Act",
        "reason": "Because",
        "regarding": {"kind": "Pod", "namespace": api.ns, "name": "p"},
        "note": "n",
        "type": "Normal",
    }
    api.same("new", await api.client.create(body, kind=new))
    api.same("as old", await api.client.get(old, api.key("a")))
    await api.outcome(
        "incomplete",
        api.client.create({**body, "metadata": {"name": "b", "namespace": api.ns}, "action": ""}, kind=new),
    )
    page = await api.client.list(old, api.query(fields="involvedObject.name=p,reason=Because"))
    assert [item.name for item in page.items] == ["a"]


async def test_the_namespace_is_labelled_with_its_name(api: Api) -> None:
    got = await api.client.get(KINDS["Namespace"], Key("", api.ns))
    assert got.metadata["labels"] == {"kubernetes.io/metadata.name": api.ns}
    patch = MergePatch({"metadata": {"labels": None}})
    again = await api.client.patch(KINDS["Namespace"], Key("", api.ns), patch)
    assert again.metadata["labels"] == {"kubernetes.io/metadata.name": api.ns}
    assert again["spec"] == {"finalizers": ["kubernetes"]}
    assert again["status"] == {"phase": "Active"}


async def test_the_first_objects_of_a_server_are_there(api: Api) -> None:
    for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
        assert (await api.client.get(KINDS["Namespace"], Key("", name))).name == name
    service = await api.client.get(KINDS["Service"], Key("default", "kubernetes"))
    assert service.metadata["labels"] == {"component": "apiserver", "provider": "kubernetes"}
    assert service["spec"]["ports"][0]["name"] == "https"
