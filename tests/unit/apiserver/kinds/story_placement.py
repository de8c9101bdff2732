"""Stories about Pods: where they may run, as whom, and what their volumes are made of."""

from __future__ import annotations

from collections.abc import Iterator

from unit.apiserver.kinds.kind_story import Json, Step, Story, check, merge, post, strategic
from unit.apiserver.kinds.story_pod import PODS, C, pod

FIRST = "of several mistakes in one name the first is reported (causes, message)"
SELECTOR: Json = {"matchLabels": {"a": "b"}}
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def affinity() -> Iterator[Step]:
    yield pod(containers=[C], affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}})
    rules: list[Json] = [
        {"key": "a", "operator": "In"},
        {"key": "a", "operator": "Exists", "values": ["b"]},
        {"key": "a", "operator": "Gt", "values": ["1", "2"]},
        {"key": "a b", "operator": "X", "values": ["a b"]},
        {"key": "a", "operator": "NotIn", "values": ["_", "fine"]},
    ]
    fields: list[Json] = [
        {"key": "metadata.name", "operator": "In", "values": ["a", "b"]},
        {"key": "metadata.name", "operator": "Exists"},
        {"key": "metadata.uid", "operator": "In", "values": ["a"]},
        {"key": "metadata.name", "operator": "In", "values": ["A_"]},
    ]
    terms = [{"matchExpressions": rules, "matchFields": fields}]
    yield pod(containers=[C], affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}})
    preferred = [{"weight": 0, "preference": terms[0]}, {"weight": 101, "preference": {}}]
    yield pod(containers=[C], affinity={"nodeAffinity": {PREFERRED: preferred}})
    yield pod(containers=[C], affinity={"podAffinity": {REQUIRED: [{}]}}, differs=FIRST)
    pods: list[Json] = [
        {"topologyKey": "a b", "namespaces": ["A_"], "labelSelector": {"matchLabels": {"a b": "_"}}},
        {"topologyKey": "zone", "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]},
        {"topologyKey": "zone", "labelSelector": SELECTOR, "matchLabelKeys": ["a b"], "mismatchLabelKeys": ["a b"]},
        {"topologyKey": "zone", "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
    ]
    for part in ("podAffinity", "podAntiAffinity"):
        yield pod(containers=[C], affinity={part: {REQUIRED: pods}})
        weighted = [{"weight": -1, "podAffinityTerm": term} for term in pods[:2]]
        yield pod(containers=[C], affinity={part: {PREFERRED: weighted}})
    good = {"topologyKey": "zone", "labelSelector": SELECTOR}
    yield pod(
        containers=[C],
        affinity={
            "nodeAffinity": {
                REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}
            },
            "podAntiAffinity": {PREFERRED: [{"weight": 100, "podAffinityTerm": good}], REQUIRED: [good]},
        },
    )


def spreading() -> Iterator[Step]:
    good = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
    constraints: list[Json] = [
        {"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "X"},
        {**good, "minDomains": 0, "nodeAffinityPolicy": "X", "nodeTaintsPolicy": "Y"},
        {**good, "maxSkew": -1},
        {**good, "topologyKey": "b", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2},
        {"maxSkew": 1, "topologyKey": "c", "whenUnsatisfiable": "ScheduleAnyway", "matchLabelKeys": ["a"]},
        {**good, "topologyKey": "d", "labelSelector": {"matchLabels": {"a b": "c"}}},
    ]
    yield pod(containers=[C], topologySpreadConstraints=constraints)
    yield pod(containers=[C], topologySpreadConstraints=[good, {**good, "topologyKey": "host"}])


def security() -> Iterator[Step]:
    wrong: Json = {
        "fsGroup": -1,
        "runAsUser": -1,
        "runAsGroup": 2**31,
        "supplementalGroups": [1, -1],
        "fsGroupChangePolicy": "X",
        "supplementalGroupsPolicy": "Y",
        "seLinuxChangePolicy": "Z",
        "seccompProfile": {"type": "X"},
        "appArmorProfile": {"type": "Y"},
        "sysctls": [
            {"name": "", "value": "1"},
            {"name": "A_", "value": "1"},
            {"name": "kernel.shm_rmid_forced", "value": "1"},
            {"name": "kernel.shm_rmid_forced", "value": "1"},
        ],
    }
    yield pod(containers=[C], securityContext=wrong)
    profiles: list[Json] = [
        {"type": ""},
        {"type": "Localhost"},
        {"type": "Localhost", "localhostProfile": "/a"},
        {"type": "Localhost", "localhostProfile": "../a"},
        {"type": "RuntimeDefault", "localhostProfile": "a"},
        {"type": "Localhost", "localhostProfile": " a"},
    ]
    for profile in profiles:
        yield pod(containers=[C], securityContext={"seccompProfile": profile, "appArmorProfile": profile})
        yield pod(containers=[{**C, "securityContext": {"seccompProfile": profile, "appArmorProfile": profile}}])
    net, ipc = {"name": "net.ipv4.ip_forward", "value": "1"}, {"name": "kernel.sem", "value": "1"}
    slashes = {"name": "net/ipv4/conf/eth0.1/forwarding", "value": "1"}
    yield pod(containers=[C], hostNetwork=True, hostIPC=True, securityContext={"sysctls": [net, ipc, slashes]})
    for context in (
        {"runAsUser": -1, "runAsGroup": -1, "procMount": "X"},
        {"procMount": "Unmasked"},
        {"allowPrivilegeEscalation": False, "privileged": True},
        {"allowPrivilegeEscalation": False, "capabilities": {"add": ["CAP_SYS_ADMIN"], "drop": ["ALL"]}},
        {"windowsOptions": {"runAsUserName": "", "gmsaCredentialSpecName": "A_", "gmsaCredentialSpec": ""}},
        {"windowsOptions": {"runAsUserName": "a\\b\\c"}},
        {"windowsOptions": {"runAsUserName": "..."}},
        {"windowsOptions": {"runAsUserName": "x\\a?"}},
        {"windowsOptions": {"hostProcess": True}},
    ):
        yield pod(containers=[{**C, "securityContext": context}])
    yield pod(containers=[C], securityContext={"windowsOptions": {"hostProcess": True}}, hostNetwork=True)
    yield pod(containers=[C], hostUsers=False, hostNetwork=True, hostPID=True, hostIPC=True)
    yield pod(containers=[C], shareProcessNamespace=True, hostPID=True)
    yield pod(containers=[C], os={"name": ""})
    yield pod(containers=[C], os={"name": "plan9"})
    everything = {"runAsUser": 1, "seccompProfile": {"type": "RuntimeDefault"}, "fsGroup": 1}
    own = {"capabilities": {"drop": ["ALL"]}, "privileged": False, "readOnlyRootFilesystem": True}
    yield pod(containers=[{**C, "securityContext": own}], securityContext=everything, os={"name": "windows"})
    options = {"windowsOptions": {"runAsUserName": "a"}}
    yield pod(containers=[{**C, "securityContext": options}], securityContext=options, os={"name": "linux"})
    yield pod(
        containers=[{**C, "securityContext": {**own, "allowPrivilegeEscalation": False, "runAsNonRoot": True}}],
        securityContext={**everything, "sysctls": [{"name": "net.core.somaxconn", "value": "1"}]},
        os={"name": "linux"},
    )


def details() -> Iterator[Step]:
    yield pod(containers=[C], readinessGates=[{"conditionType": "a b"}, {"conditionType": "x.com/ready"}])
    yield pod(containers=[C], hostnameOverride="A_", setHostnameAsFQDN=True, hostNetwork=True)
    yield pod(containers=[C], overhead={"cpu": "1"})
    yield pod(containers=[C], runtimeClassName="nosuch")
    policies: list[Json] = [
        {"resourceName": "cpu", "restartPolicy": "NotRequired"},
        {"resourceName": "cpu", "restartPolicy": "RestartContainer"},
        {"resourceName": "disk", "restartPolicy": "X"},
    ]
    yield pod(containers=[{**C, "resizePolicy": policies}], restartPolicy="Never")
    yield pod(containers=[{**C, "resizePolicy": policies[:1]}])
    yield pod(containers=[C], initContainers=[{**C, "name": "i", "resizePolicy": policies[1:2]}])
    yield pod(containers=[{**C, "restartPolicy": "X"}])
    rules: list[Json] = [{"action": "X"}, {"action": "Restart", "exitCodes": {"operator": "Y", "values": [1]}}]
    yield pod(containers=[{**C, "restartPolicyRules": rules}])
    yield pod(containers=[{**C, "restartPolicy": "Never", "restartPolicyRules": rules}])
    mounts: list[Json] = [
        {"name": "v", "mountPath": "/a", "subPath": "/x", "subPathExpr": "../y"},
        {"name": "v", "mountPath": "/b", "mountPropagation": "X"},
        {"name": "v", "mountPath": "/c", "mountPropagation": "Bidirectional"},
        {"name": "v", "mountPath": "/d", "recursiveReadOnly": "Enabled", "mountPropagation": "HostToContainer"},
        {"name": "v", "mountPath": "/e", "recursiveReadOnly": "X"},
    ]
    yield pod(containers=[{**C, "volumeMounts": mounts}], volumes=[{"name": "v"}])
    devices: list[Json] = [
        {"name": "v", "devicePath": "/a"},
        {"name": "c", "devicePath": "/b/../c"},
        {"name": "c", "devicePath": ""},
        {"name": "x", "devicePath": "/d"},
        {"name": "", "devicePath": "/d"},
    ]
    claim = {"name": "c", "persistentVolumeClaim": {"claimName": "c"}}
    mounted = [{"name": "v", "mountPath": "/a"}]
    yield pod(containers=[{**C, "volumeDevices": devices, "volumeMounts": mounted}], volumes=[{"name": "v"}, claim])
    headers = {"httpGet": {"port": 80, "httpHeaders": [{"name": "a b", "value": "c"}]}}
    yield pod(containers=[{**C, "livenessProbe": {**headers, "terminationGracePeriodSeconds": 0}}])
    stop: Json = {"preStop": {"sleep": {"seconds": 60}}, "postStart": {"sleep": {"seconds": -1}}}
    yield pod(containers=[{**C, "lifecycle": stop}])
    yield pod(containers=[{**C, "lifecycle": {"stopSignal": "SIGTERM"}}])
    huge = {"hugepages-2Mi": "3Mi"}
    yield pod(containers=[{**C, "resources": {"limits": huge}}])
    yield pod(containers=[{**C, "resources": {"limits": {"kubernetes.io/x": "1", "requests.a.com/b": "1"}}}])
    yield pod(containers=[{**C, "resources": {"claims": [{"name": "x"}, {"name": ""}]}}])
    env: list[Json] = [
        {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "cpu"}}},
        {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}},
        {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1m"}}},
        {"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}},
        {"name": "E", "valueFrom": {"secretKeyRef": {"name": "s", "key": "a b"}}},
    ]
    yield pod(containers=[{**C, "env": env}])


def projections() -> Iterator[Step]:
    def projected(*sources: Json) -> Step:
        return pod(containers=[C], volumes=[{"name": "v", "projected": {"sources": list(sources)}}])

    token = {"path": "token"}
    yield projected({"serviceAccountToken": token})
    yield projected({"serviceAccountToken": {"path": "", "expirationSeconds": 599}})
    yield projected({"serviceAccountToken": {"path": "../t", "expirationSeconds": 2**32 + 1}})
    yield projected({"serviceAccountToken": {"path": "..t"}})
    yield projected({"serviceAccountToken": token, "secret": {"name": "s"}}, {})
    item = {"key": "k", "path": "p"}
    yield projected({"secret": {"items": [item]}}, {"configMap": {"name": "c", "items": [item, {}]}})
    files: list[Json] = [
        {"path": "a", "fieldRef": {"fieldPath": "status.podIP"}},
        {"path": "b", "resourceFieldRef": {"resource": "limits.cpu"}},
        {"path": "/c", "mode": 4096},
        {"path": "a", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "d", "resourceFieldRef": {"resource": "x", "containerName": "c"}},
    ]
    yield projected({"downwardAPI": {"items": files}})
    yield pod(containers=[C], volumes=[{"name": "v", "downwardAPI": {"items": files, "defaultMode": -1}}])
    yield projected({"clusterTrustBundle": {}}, {"clusterTrustBundle": {"signerName": "x", "path": "/a"}})


def templates() -> Iterator[Step]:
    spec: Json = {"containers": [C], "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}}

    def deployment(meta: Json | None = None, **more: object) -> Step:
        labelled = {"labels": {"a": "b"}, **(meta or {})}
        found = {"selector": SELECTOR, "template": {"metadata": labelled, "spec": {"containers": [C], **more}}}
        return check(DEPLOYMENTS, {"metadata": {"name": "x"}, "spec": found})

    yield deployment(**{**spec, "securityContext": {"runAsUser": -5}})
    yield deployment(ephemeralContainers=[{"name": "e", "image": "x"}])
    yield deployment(
        {"annotations": {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}},
        securityContext={"seccompProfile": {"type": "RuntimeDefault"}},
    )
    yield check("/api/v1/namespaces/default/podtemplates", {"metadata": {"name": "x"}, "template": {"spec": {}}})
    made = {"metadata": {"name": "t"}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [C]}}}
    yield post("/api/v1/namespaces/default/podtemplates", made)
    path = "/api/v1/namespaces/default/podtemplates/t"
    yield strategic(path, {"template": {"spec": {"containers": [{"name": "c", "image": "j"}]}}})
    yield merge(path, {"template": {"spec": {"affinity": spec["affinity"]}}})
    yield merge(path, {"metadata": {"labels": {"x": "y"}}})


def debugging() -> Iterator[Step]:
    yield post(PODS, {"metadata": {"name": "p"}, "spec": {"serviceAccountName": "default", "containers": [C]}})
    e: Json = {"name": "e", "image": "x"}
    wrong: list[Json] = [
        {**e, "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1"}}, "targetContainerName": "nosuch"},
        {**C},
        {"name": "f", "image": " x", "lifecycle": {"preStop": {"exec": {"command": ["a"]}}}},
        {"name": "g", "image": "x", "securityContext": {"runAsUser": -1}},
    ]
    yield merge(f"{PODS}/p/ephemeralcontainers", {"spec": {"ephemeralContainers": wrong}})
    yield merge(f"{PODS}/p/ephemeralcontainers", {"spec": {"ephemeralContainers": [{**e, "targetContainerName": "c"}]}})


STORIES: dict[str, Story] = {
    story.__name__: story for story in (affinity, spreading, security, details, projections, templates, debugging)
}
