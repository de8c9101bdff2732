"""Real kubectl against a plane, and the same commands against a real kube-apiserver: the same words come back."""

from __future__ import annotations

import json
import signal
import stat
from pathlib import Path

import pytest

from e2e.cluster import Pair, finish, stop

CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: a, labels: {app: x}}
data: {k: v}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, labels: {app: d}}
spec:
  replicas: 2
  selector: {matchLabels: {app: d}}
  template:
    metadata: {labels: {app: d}}
    spec:
      containers:
      - {name: c, image: "example.com/c:1", ports: [{containerPort: 80}], env: [{name: A, value: "1"}]}
"""
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.e2e.example.com}
spec:
  group: e2e.example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, shortNames: [gd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    - {name: Note, type: string, jsonPath: .spec.note, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        description: A gadget is a thing for tests.
        properties:
          spec:
            type: object
            description: What is wanted.
            required: [size]
            properties:
              size: {type: integer, minimum: 1, description: How large it is.}
              replicas: {type: integer, default: 1}
              note: {type: string}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [port]
                items: {type: object, required: [port], properties: {port: {type: integer}, name: {type: string}}}
          status:
            type: object
            properties:
              replicas: {type: integer}
              phase: {type: string}
              conditions: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
GADGET = """
apiVersion: e2e.example.com/v1
kind: Gadget
metadata: {name: g}
spec: {size: 3, note: hello, ports: [{port: 80, name: web}]}
"""


@pytest.fixture
def gadgets(both: Pair) -> Pair:
    for cluster in (both.ours, both.real):
        if cluster is not None:
            cluster.ok("apply", "-f", "-", stdin=CRD)
            cluster.ok("wait", "--for=condition=Established", "crd/gadgets.e2e.example.com", "--timeout=20s")
    if both.real is not None:
        # It publishes the schema a moment after it serves the kind.
        for _ in range(100):
            if both.real.run("explain", "gadget.spec").code == 0:
                break
    return both


def test_apply_create_change_and_nothing(both: Pair) -> None:
    assert both.ok("apply", "-f", "-", stdin=CONFIG) == "configmap/a created\n"
    assert both.ok("apply", "-f", "-", stdin=CONFIG) == "configmap/a unchanged\n"
    assert both.ok("apply", "-f", "-", stdin=CONFIG.replace("k: v", "k: w")) == "configmap/a configured\n"
    both.ok("get", "cm", "a", "-o", "yaml")
    assert both.ok("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/d created\n"
    changed = DEPLOYMENT.replace('value: "1"', 'value: "2"').replace("replicas: 2", "replicas: 3")
    assert both.ok("apply", "-f", "-", stdin=changed) == "deployment.apps/d configured\n"
    both.ok("get", "deployment", "d", "-o", "yaml")
    assert both.ok("apply", "view-last-applied", "cm/a")


def test_apply_of_a_custom_kind(gadgets: Pair) -> None:
    assert gadgets.ok("apply", "-f", "-", stdin=GADGET) == "gadget.e2e.example.com/g created\n"
    assert gadgets.ok("apply", "-f", "-", stdin=GADGET) == "gadget.e2e.example.com/g unchanged\n"
    changed = GADGET.replace("size: 3", "size: 4")
    assert gadgets.ok("apply", "-f", "-", stdin=changed) == "gadget.e2e.example.com/g configured\n"
    gadgets.ok("get", "gadget", "g", "-o", "yaml")
    bad = gadgets.run("apply", "-f", "-", stdin=GADGET.replace("size: 3", "size: 0"))
    assert bad.code == 1
    assert "spec.size in body should be greater than or equal to 1" in bad.err
    unknown = gadgets.run("apply", "-f", "-", stdin=GADGET.replace("note:", "nonsense:"))
    assert 'unknown field "spec.nonsense"' in unknown.err


def test_server_side_apply(gadgets: Pair) -> None:
    server = ("--server-side", "--field-manager=one")
    assert gadgets.ok("apply", *server, "-f", "-", stdin=GADGET) == "gadget.e2e.example.com/g serverside-applied\n"
    conflict = gadgets.run(
        "apply", "--server-side", "--field-manager=two", "-f", "-", stdin=GADGET.replace("size: 3", "size: 5")
    )
    assert conflict.code == 1
    assert 'conflict with "one": .spec.size' in conflict.err
    gadgets.ok(
        "apply",
        "--server-side",
        "--field-manager=two",
        "--force-conflicts",
        "-f",
        "-",
        stdin=GADGET.replace("size: 3", "size: 5"),
    )
    gadgets.ok("get", "gadget", "g", "-o", "yaml", "--show-managed-fields")
    gadgets.ok("apply", *server, "-f", "-", stdin=DEPLOYMENT)
    gadgets.ok("get", "deployment", "d", "-o", "yaml", "--show-managed-fields")


def test_dry_runs_leave_nothing(both: Pair) -> None:
    for mode in ("client", "server"):
        assert both.ok(
            "apply", f"--dry-run={mode}", "-f", "-", stdin=CONFIG
        ) == f"configmap/a created ({mode} dry run)\n".replace("client ", "")
        both.ok("create", f"--dry-run={mode}", "-f", "-", "-o", "yaml", stdin=DEPLOYMENT)
    assert both.run("get", "cm", "a").code == 1
    both.ok("apply", "-f", "-", stdin=CONFIG)
    assert "(server dry run)" in both.ok("delete", "cm", "a", "--dry-run=server")
    assert both.ok("get", "cm", "a", "-o", "name") == "configmap/a\n"


def test_create_in_its_many_forms(both: Pair) -> None:
    both.ok("create", "configmap", "c", "--from-literal=a=b")
    both.ok("create", "secret", "generic", "s", "--from-literal=p=x")
    both.ok("create", "serviceaccount", "robot")
    both.ok("create", "deployment", "web", "--image=example.com/web:1", "--replicas=2")
    both.ok("create", "job", "j", "--image=example.com/j:1")
    both.ok("create", "role", "r", "--verb=get,list", "--resource=pods,deployments.apps")
    both.ok("create", "rolebinding", "rb", "--role=r", "--serviceaccount=default:robot")
    both.ok("create", "service", "clusterip", "svc", "--clusterip=None", "--tcp=80:8080")
    both.ok("run", "p", "--image=example.com/p:1")
    again = both.run("create", "configmap", "c")
    assert again.code == 1
    assert again.err == 'error: failed to create configmap: configmaps "c" already exists\n'
    for kind in ("configmap/c", "secret/s", "role/r", "rolebinding/rb", "service/svc", "pod/p", "deployment/web"):
        both.ok("get", kind, "-o", "yaml")


@pytest.fixture
def filled(gadgets: Pair) -> Pair:
    gadgets.ok("create", "-f", "-", stdin="---".join((CONFIG, DEPLOYMENT, GADGET)))
    gadgets.ok("run", "p", "--image=example.com/p:1", "--labels=app=p")
    gadgets.ok("create", "secret", "generic", "s", "--from-literal=p=x")
    gadgets.ok("create", "service", "clusterip", "svc", "--clusterip=None", "--tcp=80:8080")
    gadgets.ok("create", "serviceaccount", "robot")
    return gadgets


@pytest.mark.parametrize("kind", ["cm/a", "deployment/d", "pod/p", "gadget/g", "secret/s", "svc/svc", "sa/robot"])
def test_get_in_every_output(filled: Pair, kind: str) -> None:
    for output in (
        "yaml",
        "json",
        "wide",
        "name",
        "jsonpath={.metadata.name} {.kind}",
        "custom-columns=NAME:.metadata.name,LABELS:.metadata.labels",
        "go-template={{.metadata.name}}/{{.kind}}",
    ):
        filled.ok("get", kind, "-o", output)
    filled.ok("get", kind)
    filled.ok("get", kind, "--show-labels")
    filled.ok("get", kind, "--no-headers")


def test_lists_of_kinds(filled: Pair) -> None:
    filled.ok("get", "all")
    filled.ok("get", "cm,secret,gd")
    filled.ok("get", "pods,deployments", "-o", "wide")
    filled.ok("get", "pods", "-l", "app=p", "-o", "name")
    filled.ok("get", "pods", "--field-selector=metadata.name=p", "-o", "name")
    filled.ok("get", "gadgets", "--sort-by=.spec.size")
    filled.ok("get", "gadgets", "-L", "app")
    filled.ok("get", "gadgets", "--chunk-size=1", "-o", "name")
    assert filled.run("get", "pods", "none").err == 'Error from server (NotFound): pods "none" not found\n'
    assert filled.run("get", "nonsense").code == 1
    assert filled.ok("get", "leases") == ""
    assert json.loads(filled.ok("get", "cm", "-o", "json", "-l", "app=x"))["kind"] == "List"


def test_watching_with_get(both: Pair) -> None:
    only = ("--field-selector=metadata.name=w", "--no-headers", "--output-watch-events")
    watching = both.ours.start("get", "cm", "-n", both.ns, "--watch", *only)
    try:
        assert watching.stdout is not None
        for command, event in (
            (("create", "configmap", "w"), "ADDED"),
            (("label", "cm", "w", "a=b"), "MODIFIED"),
            (("delete", "cm", "w"), "DELETED"),
        ):
            both.ours.ok(*command, "-n", both.ns)
            assert watching.stdout.readline().split()[:2] == [event, "w"]
        watching.send_signal(signal.SIGINT)
        finish(watching)
    finally:
        stop(watching)


@pytest.mark.parametrize("kind", ["cm/a", "deployment/d", "pod/p", "gadget/g", "secret/s", "svc/svc", "sa/robot"])
def test_describe(filled: Pair, kind: str) -> None:
    filled.ok("describe", kind)


def test_describe_of_a_namespace(both: Pair) -> None:
    both.ok("describe", "namespace", both.ns, namespaced=False)


def test_explain_of_a_custom_kind(gadgets: Pair) -> None:
    for path in ("gadget.spec", "gadget.spec.size", "gadget.spec.ports"):
        gadgets.ok("explain", path, namespaced=False)
    gadgets.ok("explain", "gadget", "--recursive", namespaced=False)
    assert gadgets.run("explain", "gadget.nonsense", namespaced=False).code == 1
    # Of the fields that every object has, the words are our own.
    assert "A gadget is a thing for tests." in gadgets.ours.ok("explain", "gadget")


def test_explain_of_built_in_kinds(both: Pair) -> None:
    """The words are our own, so only ours is asked; the fields are the real ones."""
    text = both.ours.ok("explain", "deployment.spec")
    for field in (
        "replicas\t<integer>",
        "selector\t<LabelSelector> -required-",
        "template\t<PodTemplateSpec> -required-",
    ):
        assert field in text
    recursive = both.ours.ok("explain", "pod", "--recursive")
    assert "terminationGracePeriodSeconds\t<integer>" in recursive
    if both.real is not None:
        real = both.real.ok("explain", "pod", "--recursive")
        fields = [line for line in real.splitlines() if "\t<" in line]
        assert fields == [line for line in recursive.splitlines() if "\t<" in line]


def test_diff(both: Pair) -> None:
    both.ok("apply", "-f", "-", stdin=CONFIG)
    same = both.run("diff", "-f", "-", stdin=CONFIG)
    assert (same.code, same.out) == (0, "")
    other = both.run("diff", "-f", "-", stdin=CONFIG.replace("k: v", "k: w"))
    assert other.code == 1
    assert "-  k: v" in other.out
    assert "+  k: w" in other.out
    assert both.run("diff", "--server-side", "-f", "-", stdin=CONFIG.replace("app: x", "app: z")).code == 1


def test_patches_of_all_kinds(filled: Pair) -> None:
    filled.ok(
        "patch", "deployment", "d", "-p", '{"spec":{"template":{"spec":{"containers":[{"name":"s","image":"i"}]}}}}'
    )
    filled.ok("patch", "deployment", "d", "--type=merge", "-p", '{"spec":{"replicas":5}}')
    filled.ok("patch", "deployment", "d", "--type=json", "-p", '[{"op":"replace","path":"/spec/replicas","value":6}]')
    filled.ok("get", "deployment", "d", "-o", "yaml")
    filled.ok("patch", "gadget", "g", "--type=merge", "-p", '{"spec":{"size":9}}')
    assert filled.run("patch", "gadget", "g", "-p", '{"spec":{"size":9}}').code == 1
    filled.ok("patch", "gadget", "g", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Up"}}')
    assert filled.ok("get", "gadget", "g", "--subresource=status", "-o", "jsonpath={.status.phase}") == "Up"
    assert "patched (no change)" in filled.ok("patch", "gadget", "g", "--type=merge", "-p", '{"spec":{"size":9}}')


def test_scale_label_annotate(filled: Pair) -> None:
    filled.ok("scale", "deployment", "d", "--replicas=7")
    filled.ok("scale", "gadget/g", "--replicas=2")
    assert filled.ok("get", "gadget", "g", "-o", "jsonpath={.spec.replicas}") == "2"
    assert filled.run("scale", "deployment", "d", "--current-replicas=1", "--replicas=2").code == 1
    filled.ok("label", "cm", "a", "x=1", "y=2")
    assert filled.run("label", "cm", "a", "x=2").code == 1
    filled.ok("label", "cm", "a", "x=2", "--overwrite")
    filled.ok("label", "cm", "a", "y-")
    filled.ok("annotate", "cm", "a", "note=hello world")
    filled.ok("annotate", "cm", "--all", "more=x")
    filled.ok("get", "cm", "a", "-o", "yaml")


def test_edit_and_replace(both: Pair, tmp_path: Path) -> None:
    both.ok("create", "-f", "-", stdin=CONFIG)
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/k: v/k: edited/" "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    assert both.ok("edit", "cm", "a", env={"EDITOR": str(editor)}) == "configmap/a edited\n"
    assert both.ok("get", "cm", "a", "-o", "jsonpath={.data.k}") == "edited"
    assert both.ok("replace", "-f", "-", stdin=CONFIG) == "configmap/a replaced\n"
    assert both.ok("get", "cm", "a", "-o", "jsonpath={.data.k}") == "v"
    assert both.run("replace", "-f", "-", stdin=CONFIG.replace("name: a", "name: none")).code == 1
    assert both.ok("replace", "--force", "-f", "-", stdin=CONFIG).endswith("configmap/a replaced\n")


def test_wait_for_conditions_and_deletion(gadgets: Pair) -> None:
    gadgets.ok("create", "-f", "-", stdin=GADGET)
    both_wait = gadgets.run("wait", "--for=condition=Ready", "gadget/g", "--timeout=1s")
    assert both_wait.code == 1
    assert "timed out waiting for the condition" in both_wait.err
    waiting = gadgets.ours.start("wait", "--for=condition=Ready", "gadget/g", "--timeout=20s", "-n", gadgets.ns)
    path = gadgets.ours.start(
        "wait", "--for=jsonpath={.status.phase}=Up", "gadget/g", "--timeout=20s", "-n", gadgets.ns
    )
    gone = gadgets.ours.start("wait", "--for=delete", "gadget/g", "--timeout=20s", "-n", gadgets.ns)
    status = '{"status":{"phase":"Up","conditions":[{"type":"Ready","status":"True"}]}}'
    gadgets.ok("patch", "gadget", "g", "--subresource=status", "--type=merge", "-p", status)
    assert finish(waiting).out == "gadget.e2e.example.com/g condition met\n"
    assert finish(path).out == "gadget.e2e.example.com/g condition met\n"
    gadgets.ok("delete", "gadget", "g")
    assert finish(gone).code == 0


def test_delete_in_its_forms(both: Pair) -> None:
    both.ok("create", "-f", "-", stdin=CONFIG)
    both.ok("delete", "-f", "-", stdin=CONFIG)
    assert both.run("delete", "cm", "a").code == 1
    assert both.ok("delete", "cm", "a", "--ignore-not-found") == ""
    for name in ("a", "b"):
        both.ok("create", "configmap", name)
        both.ok("label", "cm", name, "group=x")
    both.ok("delete", "cm", "-l", "group=x")
    both.ok("run", "p", "--image=i")
    both.ok("delete", "pod", "p", "--now")
    both.ok("run", "p", "--image=i")
    both.ok("delete", "pod", "p", "--force", "--grace-period=0")


def test_delete_supports_each_cascade_mode(both: Pair) -> None:
    """Only a plane has a garbage collector here; the bare real server has no controllers."""
    ours, ns = both.ours, both.ns

    def family(name: str) -> None:
        ours.ok("create", "configmap", name, "-n", ns)
        uid = ours.ok("get", "cm", name, "-n", ns, "-o", "jsonpath={.metadata.uid}")
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": True}
        child = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"{name}-child", "ownerReferences": [owner]},
        }
        ours.ok("create", "-n", ns, "-f", "-", stdin=json.dumps(child))

    for cascade in ("background", "foreground"):
        family(cascade)
        ours.ok("delete", "cm", cascade, f"--cascade={cascade}", "-n", ns, "--timeout=20s")
        ours.ok("wait", "--for=delete", f"secret/{cascade}-child", "-n", ns, "--timeout=20s")
        assert ours.run("get", "secret", f"{cascade}-child", "-n", ns).code == 1
    family("orphan")
    ours.ok("delete", "cm", "orphan", "--cascade=orphan", "-n", ns, "--timeout=20s")
    left = json.loads(ours.ok("get", "secret", "orphan-child", "-n", ns, "-o", "json"))
    assert "ownerReferences" not in left["metadata"]


def test_a_namespace_goes_with_all_it_holds(both: Pair) -> None:
    ours = both.ours
    ours.ok("create", "-f", "-", "-n", both.ns, stdin=CONFIG)
    ours.ok("delete", "namespace", both.ns, "--timeout=30s")
    assert ours.run("get", "namespace", both.ns).code == 1
    assert ours.run("get", "cm", "a", "-n", both.ns).code == 1


def test_discovery_commands(gadgets: Pair) -> None:
    table = gadgets.ours.ok("api-resources")
    for name in ("configmaps", "deployments", "gadgets", "leases", "customresourcedefinitions"):
        assert name in table
    assert gadgets.ok("api-resources", "--api-group=e2e.example.com", namespaced=False)
    assert gadgets.ok("api-resources", "--api-group=apps", "-o", "wide", namespaced=False)
    assert "e2e.example.com/v1" in gadgets.ours.ok("api-versions").split()
    assert "is running at" in gadgets.ours.ok("cluster-info")
    version = json.loads(gadgets.ours.ok("version", "-o", "json"))
    assert version["serverVersion"]["major"] == "1"


def test_who_may_do_what(both: Pair) -> None:
    assert both.ok("auth", "can-i", "create", "pods") == "yes\n"
    stranger = ("--as=jane", "--as-group=developers")
    assert both.run("auth", "can-i", "create", "pods", *stranger).out == "no\n"
    both.ok("create", "role", "reader", "--verb=get,list", "--resource=configmaps")
    both.ok("create", "rolebinding", "reader", "--role=reader", "--user=jane")
    both.ok("get", "cm", "-o", "name", "--as=jane")
    denied = both.run("get", "secrets", "--as=jane")
    assert denied.err == (
        f'Error from server (Forbidden): secrets is forbidden: User "jane" cannot list resource "secrets" '
        f'in API group "" in the namespace "{both.ns}"\n'
    )
    assert "kubernetes-admin" in both.ours.ok("auth", "whoami")
    assert "configmaps" in both.ours.ok("auth", "can-i", "--list", "--as=jane", "-n", both.ns)


def test_tokens_and_config(both: Pair) -> None:
    both.ok("create", "serviceaccount", "robot")
    token = both.ours.ok("create", "token", "robot", "-n", both.ns).strip()
    assert token.count(".") == 2
    who = both.ours.ok(
        "auth",
        "whoami",
        "-o",
        "jsonpath={.status.userInfo.username}",
        "--token",
        token,
        env={"KUBECONFIG": str(both.ours.kubeconfig)},
    )
    assert who in (f"system:serviceaccount:{both.ns}:robot", "kubernetes-admin")  # a certificate wins over a token
    assert both.ours.ok("config", "current-context").strip()
    assert "DATA+OMITTED" in both.ours.ok("config", "view")


def test_events(both: Pair) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": both.ns},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": both.ns},
        "reason": "Tested",
        "message": "it works",
        "type": "Normal",
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
    }
    both.ok("create", "-f", "-", stdin=json.dumps(event))
    assert "it works" in both.ours.ok("get", "events", "-n", both.ns)
    assert "it works" in both.ours.ok("events", "-n", both.ns)


def test_the_log_of_a_pod_without_a_node_is_empty(both: Pair) -> None:
    both.ok("run", "p", "--image=example.com/p:1")
    assert both.run("logs", "none").code == 1
    assert both.ok("logs", "p") == ""  # no node has it yet


def test_raw_paths(both: Pair) -> None:
    assert both.ok("get", "--raw", "/healthz", namespaced=False) == "ok"
    assert both.ok("get", "--raw", "/readyz", namespaced=False) == "ok"
    assert json.loads(both.ours.ok("get", "--raw", "/version"))["major"] == "1"
