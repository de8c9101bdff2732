"""Stories about ConfigMaps, Secrets, Namespaces, Nodes, quotas, volumes, and about what decoding makes of a body."""

from __future__ import annotations

from collections.abc import Iterator

from unit.apiserver.kinds.kind_story import Json, Step, Story, check, delete, get, merge, post, put

NS = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default/deployments"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
SHORT = "the real server adds a diff of Go structs (message, causes)"


def decoding() -> Iterator[Step]:
    def deployment(**spec: object) -> Step:
        return check(APPS, {"metadata": {"name": "x"}, "spec": spec})

    def container(**fields: object) -> Step:
        return deployment(template={"spec": {"containers": [{"name": "x", **fields}]}})

    yield deployment(replicas="3")
    yield deployment(replicas=3.5)
    yield deployment(replicas=99999999999)
    yield container(name=5)
    yield deployment(template={"spec": {"containers": {"name": 5}}})
    yield container(ports=[{"containerPort": "80"}])
    yield container(livenessProbe={"httpGet": {"port": {}}})
    yield container(livenessProbe={"httpGet": {"port": 5.5}})
    yield container(livenessProbe={"httpGet": 5})
    yield container(resources={"requests": {"cpu": "abc"}})
    yield container(resources={"requests": "x"})
    yield container(args=[1])
    yield container(env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": 5}}}])
    yield deployment(template={"spec": {"volumes": [{"name": "a", "configMap": {"name": 5}}]}})
    yield deployment(template={"spec": {"restartPolicy": 5}})
    yield check(APPS, {"metadata": {"name": "x"}, "spec": "x"})
    yield check(APPS, {"metadata": {"name": "x", "labels": {"a": 1}}, "spec": {}})
    yield check(APPS, {"metadata": {"name": "x", "creationTimestamp": "nope"}, "spec": {}})
    yield check(APPS, {"metadata": {"name": "x", "ownerReferences": [{"controller": "yes"}]}, "spec": {}})
    for value in (5, "YQ", "YWJ", "ab-_", "%"):
        yield check(f"{NS}/secrets", {"metadata": {"name": "x"}, "data": {"a": value}})
    yield check(f"{NS}/secrets", {"metadata": {"name": "x"}, "data": {"a": "YQ==\n", "b": None, "c": ""}})
    yield check(f"{NS}/secrets", {"metadata": {"name": "x"}, "immutable": "no"})
    for moment in ("2020-01-01", "2020-01-01T00:00:00+02:00", "2020-01-01T00:00:00.000001+02:00"):
        yield check(LEASES, {"metadata": {"name": "x"}, "spec": {"renewTime": moment}})
    yield check(LEASES, {"metadata": {"name": "x"}, "spec": {"leaseDurationSeconds": "x"}})
    yield check(LEASES, {"metadata": {"name": "x"}, "spec": None})
    yield check(f"{NS}/services", {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80, "targetPort": True}]}})
    yield check(f"{NS}/services", {"metadata": {"name": "x"}, "spec": {"ports": [80]}})
    body: Json = {"name": "x", "labels": {"a": None}, "annotations": {}}
    yield check(
        f"{NS}/configmaps", {"metadata": body, "data": {"a": None, "b": ""}, "binaryData": {}, "immutable": False}
    )
    yield check("/api/v1/nodes", {"metadata": {"name": "x"}, "status": {"capacity": {"cpu": "x"}}})


def configuration() -> Iterator[Step]:
    maps, secrets = f"{NS}/configmaps", f"{NS}/secrets"
    yield post(maps, {"metadata": {"name": "Bad_Name"}, "data": {"bad key": "v"}})
    yield post(maps, {"metadata": {"name": "i"}, "immutable": True, "data": {"a": "b"}})
    yield merge(f"{maps}/i", {"data": {"a": "c"}, "immutable": False})
    yield merge(f"{maps}/i", {"metadata": {"labels": {"a": "b"}}})
    yield delete(f"{maps}/i")
    yield post(maps, {"metadata": {"name": "d"}, "data": {"a": "b"}, "binaryData": {"a": "YQ=="}})
    yield post(maps, {"metadata": {"name": "big"}, "data": {"a": "x" * (1024 * 1024 + 1)}})
    yield put(f"{maps}/nosuch", {"metadata": {"name": "nosuch"}})
    for kind, data in (
        ("kubernetes.io/tls", {}),
        ("kubernetes.io/dockerconfigjson", {}),
        ("kubernetes.io/basic-auth", {}),
        ("kubernetes.io/ssh-auth", {}),
        ("kubernetes.io/service-account-token", {}),
        ("my/type", {"a b": "YQ=="}),
    ):
        yield post(secrets, {"metadata": {"name": "t"}, "type": kind, "data": data})
    yield post(
        secrets, {"metadata": {"name": "s"}, "stringData": {"a": "ü", "b": ""}, "data": {"a": "YQ==", "c": "YQ=="}}
    )
    yield merge(f"{secrets}/s", {"type": "foo"})
    yield merge(f"{secrets}/s", {"stringData": {"a": "new"}})
    yield put(f"{secrets}/s", {"metadata": {"name": "s"}, "data": {"x": "YQ=="}})
    yield get(f"{secrets}?fieldSelector=type=Opaque")
    yield get(f"{secrets}?fieldSelector=foo=x")
    yield get(f"{maps}?fieldSelector=data=x")
    yield merge(f"{secrets}/s", {"immutable": True})
    yield merge(f"{secrets}/s", {"data": {"x": "Yg=="}})
    yield delete(f"{secrets}/s")
    limits: list[Json] = [
        {
            "type": "Container",
            "max": {"cpu": "2"},
            "min": {"cpu": "100m", "memory": "1Gi"},
            "default": {"memory": "2Gi"},
        },
        {"type": "Pod", "max": {"cpu": "1"}, "min": {"cpu": "2"}},
    ]
    yield post(f"{NS}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": limits}})
    yield post(f"{NS}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": limits[:1]}})
    yield post(f"{NS}/limitranges", {"metadata": {"name": "m"}})
    yield post(f"{NS}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"cpu": "1", "pods": "10"}}})
    account: Json = {"metadata": {"name": "a"}, "secrets": [{"name": "x"}], "automountServiceAccountToken": False}
    yield post(f"{NS}/serviceaccounts", account)
    yield delete(f"{NS}/serviceaccounts/a")


def namespaces() -> Iterator[Step]:
    all_, one = "/api/v1/namespaces", "/api/v1/namespaces/nn"
    yield post(all_, {"metadata": {"name": "x.y"}})
    yield post(
        all_,
        {
            "metadata": {"name": "nn", "labels": {"kubernetes.io/metadata.name": "other"}},
            "spec": {"finalizers": ["example.com/a"]},
            "status": {"phase": "Terminating"},
        },
    )
    yield merge(one, {"spec": {"finalizers": None}, "metadata": {"labels": None}})
    yield merge(f"{one}/status", {"status": {"phase": "Terminating"}})
    yield put(f"{one}/finalize", {"metadata": {"name": "nn"}, "spec": {"finalizers": ["bad"]}})
    yield put(
        f"{one}/finalize", {"metadata": {"name": "nn", "labels": {"x": "y"}}, "spec": {"finalizers": ["kubernetes"]}}
    )
    yield get(f"{all_}?fieldSelector=status.phase=Active")
    yield get(f"{all_}?fieldSelector=name=default")
    yield delete(one)
    yield post(f"{one}/configmaps", {"metadata": {"name": "late"}})
    yield put(f"{one}/finalize", {"metadata": {"name": "nn"}, "spec": {}})
    yield get(one)
    yield delete(f"{all_}/default")
    yield post("/api/v1/namespaces/nosuch/configmaps", {"metadata": {"name": "x"}})


def nodes() -> Iterator[Step]:
    all_, one = "/api/v1/nodes", "/api/v1/nodes/n1"
    taints: list[Json] = [
        {"key": "k", "effect": "NoSchedule"},
        {"key": "k", "effect": "NoSchedule"},
        {"key": "a b", "effect": "X"},
    ]
    yield post(all_, {"metadata": {"name": "n1"}, "spec": {"taints": taints}})
    spec: Json = {
        "providerID": "a://b",
        "podCIDR": "10.0.0.0/24",
    }
    yield post(
        all_,
        {
            "metadata": {"name": "n1"},
            "spec": spec,
            "status": {
                "capacity": {"cpu": "1.5", "memory": "1500Mi"},
                "conditions": [{"type": "Ready", "status": "False"}],
            },
        },
    )
    yield merge(one, {"spec": {"providerID": "a://c"}})
    yield merge(one, {"spec": {"providerID": None}})
    yield merge(one, {"spec": {"podCIDR": "10.0.1.0/24", "podCIDRs": ["10.0.1.0/24"]}})
    yield merge(one, {"spec": {"unschedulable": True}})
    addresses = [{"type": "InternalIP", "address": "1.2.3.4"}]
    yield merge(f"{one}/status", {"status": {"addresses": addresses, "nodeInfo": {"kubeletVersion": "v1"}}})
    yield get(f"{all_}?fieldSelector=spec.unschedulable=true")
    yield get(f"{all_}?fieldSelector=foo=x")


def volumes() -> Iterator[Step]:
    claims, disks = f"{NS}/persistentvolumeclaims", "/api/v1/persistentvolumes"
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    gib = {"requests": {"storage": "1Gi"}}
    yield check(claims, {"metadata": {"name": "a"}})
    wrong: Json = {"accessModes": ["X"], "resources": {"requests": {"storage": "-1"}}, "volumeMode": "x"}
    yield check(claims, {"metadata": {"name": "a"}, "spec": {**wrong, "storageClassName": "A_"}})
    modes = ["ReadWriteOnce", "ReadWriteOncePod"]
    yield check(claims, {"metadata": {"name": "a"}, "spec": {"accessModes": modes, "resources": gib}})
    yield check(disks, {"metadata": {"name": "a"}})
    yield check(
        disks,
        {
            "metadata": {"name": "a"},
            "spec": {
                "accessModes": ["X"],
                "capacity": {"cpu": "1"},
                "hostPath": {"path": "/x"},
                "nfs": {"server": "a", "path": "/b"},
                "persistentVolumeReclaimPolicy": "x",
            },
        },
    )
    spec: Json = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    yield check(disks, {"metadata": {"name": "a"}, "spec": {**spec, "csi": {"driver": "x"}}})
    yield check(classes, {"metadata": {"name": "a"}})
    bad: Json = {"provisioner": "A_", "reclaimPolicy": "x", "volumeBindingMode": "y", "parameters": {"": "x"}}
    yield check(classes, {"metadata": {"name": "a"}, **bad})
    mark = {"storageclass.kubernetes.io/is-default-class": "true"}
    yield post(classes, {"metadata": {"name": "fast", "annotations": mark}, "provisioner": "a/b"})
    yield merge(f"{classes}/fast", {"provisioner": "c/d", "parameters": {"a": "b"}, "reclaimPolicy": "Retain"})
    claim: Json = {"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": gib}}
    yield post(claims, claim)
    yield merge(f"{claims}/c", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}, differs=SHORT)
    yield merge(f"{claims}/c", {"spec": {"accessModes": ["ReadWriteMany"]}}, differs=SHORT)
    yield merge(f"{claims}/c", {"spec": {"volumeName": "v"}})
    yield post(disks, {"metadata": {"name": "v"}, "spec": {**spec, "hostPath": {"path": "/x"}}})
    yield merge(f"{disks}/v", {"spec": {"hostPath": {"path": "/y"}}}, differs=SHORT)
    yield merge(f"{disks}/v/status", {"status": {"phase": "Available"}})
    yield delete(f"{classes}/fast")
    storage = "/apis/storage.k8s.io/v1"
    yield check(f"{storage}/volumeattachments", {"metadata": {"name": "a"}})
    source = {"persistentVolumeName": "p"}
    yield check(
        f"{storage}/volumeattachments",
        {"metadata": {"name": "a"}, "spec": {"attacher": "a.b", "nodeName": "n", "source": source}},
    )
    yield check(f"{storage}/csidrivers", {"metadata": {"name": "a"}})
    yield check(
        f"{storage}/csidrivers",
        {"metadata": {"name": "a"}, "spec": {"volumeLifecycleModes": ["x"], "fsGroupPolicy": "y"}},
    )
    drivers = [{"name": "", "nodeID": ""}, {"name": "x", "nodeID": "n"}, {"name": "x", "nodeID": "n"}]
    yield check(f"{storage}/csinodes", {"metadata": {"name": "a"}, "spec": {"drivers": drivers}})
    yield check(f"{storage}/csinodes", {"metadata": {"name": "a"}})


def storage_capacities() -> Iterator[Step]:
    url = "/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities"
    yield check(url, {"metadata": {"name": "a"}})
    yield check(url, {"metadata": {"name": "a"}, "storageClassName": "A_"})
    yield check(
        url, {"metadata": {"name": "a"}, "storageClassName": "s", "capacity": "-1", "maximumVolumeSize": "-2Gi"}
    )
    wrong = {"matchExpressions": [{"key": "a", "operator": "In"}]}
    yield check(url, {"metadata": {"name": "a"}, "storageClassName": "s", "nodeTopology": wrong})
    yield post(
        url,
        {
            "metadata": {"name": "a"},
            "storageClassName": "s",
            "capacity": "10Gi",
            "nodeTopology": {"matchLabels": {"zone": "a"}},
        },
    )
    yield merge(f"{url}/a", {"capacity": "5Gi"})
    yield merge(f"{url}/a", {"storageClassName": "t"})
    yield merge(f"{url}/a", {"nodeTopology": {"matchLabels": {"zone": "b"}}})


STORIES: dict[str, Story] = {
    "decoding": decoding,
    "configuration": configuration,
    "namespaces": namespaces,
    "nodes": nodes,
    "volumes": volumes,
    "storage_capacities": storage_capacities,
}
