"""Stories about Pods: what is refused, what is filled in, what may change, and how they leave."""

from __future__ import annotations

from collections.abc import Iterator

from unit.apiserver.kinds.kind_story import Json, Step, Story, check, delete, get, merge, post, strategic

PODS = "/api/v1/namespaces/default/pods"
C: Json = {"name": "c", "image": "i"}
OWN_WORDS = "the real server gives a 500 without a reason (code, message, causes)"


def pod(*, differs: str = "", **spec: object) -> Step:
    # The account is named because the plugin that would name it is off in the recorded server.
    return check(PODS, {"metadata": {"name": "x"}, "spec": {"serviceAccountName": "default", **spec}}, differs=differs)


def containers() -> Iterator[Step]:
    images = ("a/b:1.0", "r:5000/x", "x@sha256:" + "a" * 64, "x:latest", "r:5000/x:1")
    yield pod(containers=[{"name": f"c{i}", "image": image} for i, image in enumerate(images)])
    yield pod()
    yield pod(containers=[{}])
    yield pod(containers=[{"name": "A_", "image": " "}, C, C])
    ports: list[Json] = [
        {"containerPort": 0},
        {"containerPort": 99999, "protocol": "X", "name": "THIS_IS_TOO_LONG_"},
        {"containerPort": 1, "name": "a"},
        {"containerPort": 2, "name": "a", "hostPort": 5},
        {"containerPort": 3, "hostPort": 5},
    ]
    yield pod(containers=[{**C, "imagePullPolicy": "x", "terminationMessagePolicy": "y", "ports": ports}])
    env: list[Json] = [
        {"name": ""},
        {"name": "a=b"},
        {"name": "A", "value": "x", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "B", "valueFrom": {}},
        {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "spec.foo"}}},
        {"name": "D", "valueFrom": {"configMapKeyRef": {}}},
        {"name": "E", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}},
    ]
    yield pod(containers=[{**C, "env": env}])
    yield pod(containers=[{**C, "envFrom": [{}, {"configMapRef": {}}, {"prefix": "a=", "secretRef": {"name": "x"}}]}])
    requests = {"cpu": "2", "memory": "1Gi", "foo": "1", "nvidia.com/gpu": "1.5"}
    yield pod(containers=[{**C, "resources": {"requests": requests, "limits": {"cpu": "1", "memory": "-1"}}}])
    yield pod(containers=[{**C, "resources": {"limits": {"cpu": 0.5, "memory": "1.5Gi", "nvidia.com/gpu": 2}}}])
    yield pod(containers=[{**C, "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}])
    yield pod(containers=[{**C, "resources": {"requests": {"cpu": "1"}}}, {"name": "d", "image": "x"}])
    yield pod(
        containers=[
            {
                **C,
                "livenessProbe": {},
                "readinessProbe": {"exec": {}, "httpGet": {"port": 0}},
                "startupProbe": {"tcpSocket": {"port": "x_"}, "periodSeconds": -1},
            }
        ]
    )
    twice = {"exec": {"command": ["a"]}, "successThreshold": 2}
    lifecycle: Json = {"preStop": {"httpGet": {"port": 80}}, "postStart": {}}
    yield pod(containers=[{**C, "livenessProbe": twice, "lifecycle": lifecycle}])
    yield pod(containers=[{**C, "livenessProbe": {"grpc": {"port": 5}}, "securityContext": {}}])
    once = {"exec": {"command": ["a"]}}
    yield pod(containers=[C], initContainers=[{**C, "livenessProbe": once}, {**C, "name": "i"}, {**C, "name": "i"}])


def pods() -> Iterator[Step]:
    yield pod(
        containers=[C],
        restartPolicy="x",
        dnsPolicy="y",
        nodeName="A_",
        hostname="A_",
        subdomain="B_",
        activeDeadlineSeconds=0,
        nodeSelector={"a b": "c"},
        imagePullSecrets=[{"name": "x"}],
    )
    yield pod(
        containers=[C],
        tolerations=[
            {"operator": "Equal"},
            {"key": "a b", "operator": "Exists"},
            {"key": "a", "operator": "Exists", "value": "x"},
            {"key": "a", "operator": "Foo"},
            {"key": "a", "effect": "X"},
            {"key": "a", "tolerationSeconds": 5},
        ],
    )
    yield pod(containers=[C], tolerations=[{"operator": "Exists"}])
    soon = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10}
    yield pod(containers=[C], tolerations=[soon])
    yield pod(containers=[C], dnsPolicy="None")
    yield pod(containers=[C], dnsPolicy="None", dnsConfig={"nameservers": ["x"]})
    yield pod(containers=[{**C, "ports": [{"containerPort": 80}]}], hostNetwork=True)
    yield pod(containers=[{**C, "ports": [{"containerPort": 80, "hostPort": 81}]}], hostNetwork=True)
    yield pod(containers=[C], ephemeralContainers=[{"name": "e", "image": "x"}])
    yield pod(containers=[C], schedulingGates=[{"name": "a"}, {"name": "a"}], nodeName="n")
    yield pod(containers=[C], terminationGracePeriodSeconds=-5)
    yield pod(containers=[C], priorityClassName="system-node-critical")
    yield pod(containers=[C], priorityClassName="nosuch")
    yield pod(containers=[C], priority=5)
    spread = {"maxSkew": 1, "topologyKey": "x", "whenUnsatisfiable": "DoNotSchedule"}
    yield pod(containers=[C], topologySpreadConstraints=[spread], affinity={"nodeAffinity": {}})
    mounts = [
        {"name": "v", "mountPath": "/a"},
        {"name": "v", "mountPath": "/a"},
        {"name": "x", "mountPath": ""},
        {"name": "", "mountPath": "/b"},
    ]
    yield pod(containers=[{**C, "volumeMounts": mounts}], volumes=[{"name": "v"}])
    yield pod(
        containers=[C],
        volumes=[
            {"name": "v", "emptyDir": {}},
            {"name": "v", "emptyDir": {}},
            {"name": "A_"},
            {},
            {"name": "h", "hostPath": {}},
            {"name": "s", "secret": {}},
            {"name": "m", "configMap": {}},
            {"name": "p", "persistentVolumeClaim": {}},
            {"name": "two", "emptyDir": {}, "hostPath": {"path": "/x"}},
        ],
    )
    field = {"items": [{"path": "x", "fieldRef": {"fieldPath": "metadata.name"}}]}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    yield pod(
        containers=[C],
        volumes=[
            {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}, {"downwardAPI": field}]}},
            {"name": "d", "downwardAPI": {}},
            {"name": "h", "hostPath": {"path": "/x"}},
            {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}},
        ],
    )


def pod_changes() -> Iterator[Step]:
    one = f"{PODS}/p"
    body: Json = {
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {"serviceAccountName": "default", "containers": [C]},
    }
    yield post(PODS, body)
    yield merge(one, {"spec": {"containers": [{"name": "c", "image": "j"}]}})
    yield strategic(one, {"spec": {"containers": [{"name": "c", "image": "k"}]}})
    yield strategic(one, {"spec": {"activeDeadlineSeconds": 5}})
    yield strategic(one, {"spec": {"activeDeadlineSeconds": 6}})
    yield strategic(one, {"spec": {"tolerations": [{"key": "x", "operator": "Exists"}]}})
    yield strategic(one, {"spec": {"containers": [{"name": "d", "image": "j"}]}})
    yield strategic(f"{one}/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "e", "image": "j"}]}})
    yield strategic(f"{one}/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "c", "image": "j"}]}})
    ready = {"phase": "Running", "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}
    yield merge(f"{one}/status", {"status": ready})
    yield post(f"{one}/binding", {"metadata": {"name": "q"}, "target": {"name": "n1"}})
    yield post(f"{one}/binding", {"metadata": {"name": "p"}, "target": {"kind": "Foo", "name": ""}}, differs=OWN_WORDS)
    for _ in range(2):
        yield post(f"{one}/binding", {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}})
    yield get(f"{PODS}?fieldSelector=status.phase=Running,spec.nodeName=n1")
    yield get(f"{PODS}?fieldSelector=spec.foo=x")
    yield get(f"{one}/log?container=zz")
    yield delete(one)
    yield delete(f"{one}?gracePeriodSeconds=0")
    yield get(one)
    yield post(PODS, {**body, "metadata": {"name": "unbound"}})
    yield delete(f"{PODS}/unbound")


def evictions() -> Iterator[Step]:
    budgets, one = "/apis/policy/v1/namespaces/default/poddisruptionbudgets", f"{PODS}/p"
    body: Json = {
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {"serviceAccountName": "default", "containers": [C]},
    }
    yield post(PODS, {**body, "spec": {**body["spec"], "nodeName": "n1"}})
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    yield merge(f"{one}/status", {"status": ready})
    yield post(
        budgets, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}
    )
    leave: Json = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    yield post(f"{one}/eviction", leave)
    short = {
        "observedGeneration": 1,
        "disruptionsAllowed": 0,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
    }
    yield merge(f"{budgets}/b/status", {"status": short})
    yield post(f"{one}/eviction", leave)
    yield merge(f"{budgets}/b/status", {"status": {"disruptionsAllowed": 1, "currentHealthy": 2}})
    yield post(f"{one}/eviction", {**leave, "metadata": {"name": "q"}})
    yield post(f"{one}/eviction", leave)
    yield get(f"{budgets}/b")
    yield get(one)
    yield post(f"{PODS}/nosuch/eviction", {**leave, "metadata": {"name": "nosuch"}})


STORIES: dict[str, Story] = {
    "containers": containers,
    "pods": pods,
    "pod_changes": pod_changes,
    "evictions": evictions,
}
