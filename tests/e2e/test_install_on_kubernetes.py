"""`homeport install` on a real kube-apiserver, and the controllers as its Deployments describe them.

They run with the ServiceAccount's token: whatever the installed roles do not allow is refused and found in their log.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import audit
from capikit.installed import COMBINED, refusals, running
from capikit.podnetwork import NetworkedKube
from e2e.newer_version import VERSION
from e2e.test_clusterctl import ROOT
from e2e.test_homeport_on_cluster import Replica, fetch
from homeport.app.kubernetes.layout import placements
from homeport.app.platform import chosen
from realkube import RealKube, free_port
from scenario.nutanix import manifest
from seeds.shell import Shell, opened

pytestmark = [pytest.mark.timeout(600)]

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
HOOKS = "validatingwebhookconfigurations"
EXAMPLE = ROOT / "examples" / "02-cluster" / "cluster.yaml"


def homeport(*arguments: str) -> str:
    command = [sys.executable, "-m", "homeport", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def site(kubectl: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A plane whose simulated infrastructure the controllers use."""
    with opened(tmp_path_factory.mktemp("site"), kubectl, "--sim") as made:
        yield made


@pytest.fixture
def kube(binaries: dict[str, Path] | str) -> Iterator[RealKube]:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    with NetworkedKube(binaries) as made:
        yield made


def infrastructure(site: Shell) -> tuple[str, ...]:
    line = next(line for line in site.setup.splitlines() if "HTTPS_PROXY=" in line)
    proxy = line.partition("HTTPS_PROXY=")[2].partition(";")[0]
    return ("--proxy", proxy, "--trust", str(site.data / "sim" / "prism" / "ca.crt"))


def ok(kube: RealKube, *arguments: str) -> str:
    done = kube.kubectl(*arguments)
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def await_all(kube: RealKube, what: str, condition: str) -> None:
    for _ in range(4):  # kubectl of RealKube ends after a minute
        waited = kube.kubectl("wait", what, f"--for={condition}", "--timeout=50s")
        if waited.returncode == 0:
            return
    pytest.fail(f"{waited.stderr}{ok(kube, 'get', what, '-o', 'yaml')}")


def machines(kube: RealKube) -> dict[str, str]:
    """Name > uid and VM: who is replaced has another."""
    found = json.loads(ok(kube, "get", "machines", "-o", "json"))["items"]
    return {each["metadata"]["name"]: f"{each['metadata']['uid']} {each['spec'].get('providerID')}" for each in found}


def judge_older(kube: RealKube) -> None:
    """A manifest of the older version becomes a cluster, and a write in it loses nothing of a newer object."""
    reference = os.environ.get("HOMEPORT_REFERENCE", "")
    text = Path(reference).read_text() if reference else yaml.safe_dump_all(manifest.cluster_objects())
    assert "cluster.x-k8s.io/v1beta1" in text
    applied = kube.kubectl("apply", "-f", "-", stdin=text)
    assert applied.returncode == 0, applied.stderr
    await_all(kube, "cluster/my-nutanix-cluster", "condition=Available")
    await_all(kube, "kubeadmcontrolplane/my-nutanix-cluster-kcp", "jsonpath={.status.availableReplicas}=3")
    await_all(kube, "machinedeployment/my-nutanix-cluster-md-0", "jsonpath={.status.availableReplicas}=3")

    newer = ("get", "kubeadmcontrolplanes.v1beta2.controlplane.cluster.x-k8s.io", "harbour", "-o", "json")
    before = json.loads(ok(kube, *newer))
    older = "kubeadmcontrolplanes.v1beta1.controlplane.cluster.x-k8s.io"
    ok(kube, "annotate", older, "harbour", "team=blue")
    after = json.loads(ok(kube, *newer))
    assert after["metadata"]["annotations"]["team"] == "blue"
    assert after["spec"] == before["spec"]
    assert json.loads(ok(kube, "get", older, "harbour", "-o", "json"))["apiVersion"].endswith("/v1beta1")


def judge_scale(kube: RealKube) -> None:
    """An even number of control planes loses the quorum of etcd sooner than one less: refused however it is written."""
    for name in ("kubeadmcontrolplane", "kubeadmcontrolplanes.v1beta1.controlplane.cluster.x-k8s.io"):
        scaled = kube.kubectl("scale", f"{name}/harbour", "--replicas=2")
        assert scaled.returncode == 1
        assert "etcd" in scaled.stderr, scaled.stderr
    assert ok(kube, "get", "kubeadmcontrolplane/harbour", "-o", "jsonpath={.spec.replicas}") == "3"


def test_one_file_is_enough_for_an_empty_cluster(kube: RealKube, site: Shell, tmp_path: Path) -> None:
    """And an upgrade to this version, in the other layout, replaces no machine."""
    file = tmp_path / "install.yaml"
    file.write_text(homeport("install", "--dry-run", "-o", "yaml", "--image", "registry.example/homeport:old"))
    ok(kube, "apply", "-f", str(file))
    with running(kube, *infrastructure(site)) as log:
        ok(kube, "apply", "-f", str(EXAMPLE))
        await_all(kube, "cluster/harbour", "condition=Available")
        await_all(kube, "kubeadmcontrolplane/harbour", "jsonpath={.status.availableReplicas}=3")
        # Nobody but the controllers could create these: their kinds were new.
        assert "cluster-api" in ok(kube, "get", "providers", "-n", "homeport-system", "-o", "name")
        assert "kcm" in ok(kube, "get", "management", "-o", "name")
        judge_older(kube)
        judge_scale(kube)
    assert not refusals(log)
    before = machines(kube)
    assert len(before) == 11

    said = homeport("install", "--kubeconfig", str(kube.kubeconfig), "--layout", "split")
    assert "removed ClusterRole homeport-controller-manager-extensions, which this version does not have" in said
    with contextlib.ExitStack() as stack:
        names = ("capi", "capi-kubeadm-bootstrap", "capi-kubeadm-control-plane", "capx")
        places = (COMBINED, *(f"{name}-system/{name}-controller-manager" for name in names))  # the first has webhooks
        logs = [stack.enter_context(running(kube, *infrastructure(site), name=place)) for place in places]
        ok(kube, "scale", "machinedeployment/harbour-workers", "--replicas=3")
        await_all(kube, "machinedeployment/harbour-workers", "jsonpath={.status.availableReplicas}=3")
    assert not [line for log in logs for line in refusals(log)]
    after = machines(kube)
    assert before.items() <= after.items()
    assert len(after) == 12


def holder(kube: RealKube, lease: str) -> str:
    namespace, _, name = lease.partition("/")
    return ok(
        kube,
        "get",
        "leases",
        "-n",
        namespace,
        "-o",
        f"jsonpath={{.items[?(@.metadata.name=='{name}')].spec.holderIdentity}}",
    )


def await_holder(kube: RealKube, lease: str, wanted: re.Pattern[str]) -> None:
    deadline = time.monotonic() + 120
    while not wanted.fullmatch(found := holder(kube, lease)):
        assert time.monotonic() < deadline, f"{lease} is held by {found!r}"
        time.sleep(0.2)


def await_line(log: Path, *words: str) -> None:
    deadline = time.monotonic() + 120
    while not any(all(word in line for word in words) for line in log.read_text().splitlines()):
        assert time.monotonic() < deadline, f"{words}: {log.read_text()[-3000:]}"
        time.sleep(0.2)


def test_a_change_of_the_layout_never_has_controllers_of_both_at_work(
    kube: RealKube, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pods of the old one run until those of the new one are ready."""
    common, core = "homeport-system/homeport", "capi-system/capi-controller-manager"
    config, alone = ("--kubeconfig", str(kube.kubeconfig)), re.compile(r".+-\d+-\w{6}")
    homeport("install", *config)
    with contextlib.ExitStack() as old, contextlib.ExitStack() as new:
        old.enter_context(running(kube))
        await_holder(kube, common, alone)
        first = holder(kube, common)
        homeport("install", *config, "--layout", "split")
        log = new.enter_context(running(kube, name=core))
        await_line(log, "waiting for the lease", f'"holder":"{first}"')
        assert (holder(kube, common), holder(kube, core)) == (first, "")
        old.close()
        await_holder(kube, core, alone)
        assert holder(kube, common) == "split"
        assert not refusals(log)

        # Back, with kubectl, which adds Deployments and removes none.
        objects = yaml.safe_load_all(homeport("install", "--dry-run", "-o", "yaml"))
        text = yaml.safe_dump_all(each for each in objects if each["kind"] != "CustomResourceDefinition")
        applied = kube.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)
        assert applied.returncode == 0, applied.stderr
        monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
        with running(kube, "--plugin", "newer_version:install") as back:
            await_line(back, "waiting for the lease", f'"lease":"{core}"')
            assert holder(kube, common) == "split"
            new.close()
            assert holder(kube, common) != "split", "the last one did not give the Lease back"
            await_holder(kube, common, alone)
            await_noted(kube, common)
            # A Pod of the older version that comes back, in whatever layout, does not go on beside the newer one.
            with pytest.raises(AssertionError, match=f"Homeport {VERSION} has worked on this cluster"), running(kube):
                pass
        assert not refusals(log)


def await_noted(kube: RealKube, lease: str) -> None:
    namespace, _, name = lease.partition("/")
    deadline = time.monotonic() + 60
    while VERSION not in ok(kube, "get", "lease", name, "-n", namespace, "-o", "jsonpath={.metadata.annotations}"):
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_permissions_are_removed_when_the_pods_that_use_them_have_ended(kube: RealKube) -> None:
    """So that controllers finish, and give their Leases back. No kubelet runs here: the Pod is one by name."""
    config, role = ("--kubeconfig", str(kube.kubeconfig)), "clusterrole/homeport-capi-controller-manager"
    homeport("install", *config, "--layout", "split")
    place = ("deployment", "capi-controller-manager", "-n", "capi-system")
    template = json.loads(ok(kube, "get", *place, "-o", "json"))["spec"]["template"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "last", "namespace": "capi-system", **template["metadata"]},
        "spec": {"containers": [{"name": "manager", "image": "i"}], "automountServiceAccountToken": False},
    }
    made = kube.kubectl("create", "-f", "-", stdin=json.dumps(pod))
    assert made.returncode == 0, made.stderr
    command = [sys.executable, "-m", "homeport", "install", *config]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as installing:
        assert installing.stdout is not None
        said = ""
        while "waiting for Pods of removed Deployments to end: capi-system/last" not in said:
            line = installing.stdout.readline()
            assert line, said
            said += line
        assert kube.kubectl("get", *place).returncode == 1
        ok(kube, "get", role)
        ok(kube, "delete", "pod", "last", "-n", "capi-system")
        said += installing.stdout.read()
    assert installing.returncode == 0, said
    assert kube.kubectl("get", role).returncode == 1


def test_a_process_outside_and_the_installation_never_work_at_the_same_time(kube: RealKube) -> None:
    """Though each has a Lease of its own, in its own namespace."""
    common, own, alone = "homeport-system/homeport", "default/homeport", re.compile(r".+-\d+-\w{6}")
    homeport("install", "--kubeconfig", str(kube.kubeconfig))
    with contextlib.ExitStack() as inside:
        inside.enter_context(running(kube))
        await_holder(kube, common, alone)
        outside = Replica("--kubeconfig", str(kube.kubeconfig), "--namespace", "default")
        try:
            outside.until("waiting for the lease", common, holder(kube, common), seconds=120)
            assert holder(kube, own) == ""
            inside.close()
            await_holder(kube, own, alone)
            assert holder(kube, common) == own
            log = inside.enter_context(running(kube))
            await_line(log, "waiting for the lease", f'"holder":"{own}"')
            assert outside.terminate() == 0
        finally:
            outside.end()
        await_holder(kube, common, alone)


def test_an_installation_that_begins_while_a_process_outside_works_waits_for_it(kube: RealKube) -> None:
    """The process found no installation when it started, only the definitions."""
    common, own, alone = "homeport-system/homeport", "default/homeport", re.compile(r".+-\d+-\w{6}")
    ok(kube, "apply", "--server-side", "-f", str(ROOT / "config" / "crds"))
    outside = Replica("--kubeconfig", str(kube.kubeconfig), "--namespace", "default")
    try:
        await_holder(kube, own, alone)
        homeport("install", "--kubeconfig", str(kube.kubeconfig))
        with running(kube) as log:
            await_line(log, "waiting for the lease", f'"holder":"{own}"')
            assert holder(kube, common) == own
            assert alone.fullmatch(holder(kube, own))
            assert outside.terminate() == 0
            await_holder(kube, common, alone)
    finally:
        outside.end()


def test_a_replica_refuses_to_start_without_any_one_of_its_permissions(kube: RealKube) -> None:
    """Also those that only a reconciler uses, much later: the message has all of them."""
    homeport("install", "--kubeconfig", str(kube.kubeconfig))
    name = COMBINED.partition("/")[2]
    role = json.loads(ok(kube, "get", "clusterrole", name, "-o", "json"))
    taken = {("", "secrets", "delete"), ("cluster.x-k8s.io", "machines/status", "patch")}
    taken |= {("cluster.x-k8s.io", "machines", "create"), ("admissionregistration.k8s.io", HOOKS, "patch")}
    said = refused_with(kube, role, [each for rule in role["rules"] for each in lessened(rule, taken)])
    assert f"system:serviceaccount:{COMBINED.replace('/', ':')}' lacks permissions" in said
    lines = {line.strip().removeprefix("E").strip() for line in said.splitlines()}
    assert {
        "delete secrets",
        "create machines.cluster.x-k8s.io",
        "patch machines/status.cluster.x-k8s.io",
        f"patch {HOOKS}.admissionregistration.k8s.io homeport-webhook.homeport-system",
    } <= lines
    assert len([line for line in lines if line.split(" ")[0].rstrip(",") in VERBS]) == len(taken), said
    assert "'homeport install'" in said
    # And the other way round: with none at all, the message has everything that the role grants.
    granted = audit.granted([role])
    lacking = named_in(refused_with(kube, role, []), {each.verb for each in granted})
    assert sorted({str(each) for each in granted} - lacking) == []


def refused_with(kube: RealKube, role: dict[str, Any], rules: list[dict[str, Any]]) -> str:
    """What a replica says that does not start with these rules in its role."""
    done = kube.kubectl("replace", "-f", "-", stdin=json.dumps({**role, "rules": rules, "metadata": bare(role)}))
    assert done.returncode == 0, done.stderr
    with pytest.raises(AssertionError) as stopped, running(kube):
        pass
    return str(stopped.value)


def bare(role: dict[str, Any]) -> dict[str, Any]:
    """Without the revision: it is replaced whatever it is now."""
    return {name: value for name, value in role["metadata"].items() if name != "resourceVersion"}


def named_in(said: str, known: set[str]) -> set[str]:
    """`VERB RESOURCE.GROUP` of every missing permission: lines have several verbs, and several kinds after these."""
    found = set()
    for line in said.splitlines():
        words = line.strip().removeprefix("E").strip().partition(" in namespace ")[0].split(", ")
        verbs = [each.split(" ")[0] for each in words if each.split(" ")[0] in known]
        # The last verb and the first kind are one word of these; a kind may have the name of an object after it.
        kinds = [each.removeprefix(f"{verbs[-1]} ").split(" ")[0] for each in words[len(verbs) - 1 :] if verbs]
        found |= {f"{verb} {kind}" for verb in verbs for kind in kinds}
    return found


def lessened(rule: dict[str, Any], taken: set[tuple[str, str, str]]) -> Iterator[dict[str, Any]]:
    """One rule for each resource, without what was taken."""
    for resource in rule["resources"]:
        (group,) = rule["apiGroups"]
        verbs = [verb for verb in rule["verbs"] if (group, resource, verb) not in taken]
        if verbs:
            yield {**rule, "resources": [resource], "verbs": verbs}


def test_components_can_be_left_out_with_their_kinds(kube: RealKube) -> None:
    """Providers follow addresses and control planes of components that may not be there."""
    left_out = ("ipam", "k0rdent", "kubeadm-control-plane")
    homeport("install", "--kubeconfig", str(kube.kubeconfig), *(f"--without={name}" for name in left_out))
    found = ok(kube, "get", "crds", "-o", "name")
    assert "inclusterippools" not in found
    assert "kubeadmcontrolplanes" not in found
    port = free_port()
    with running(kube, f"--health=127.0.0.1:{port}") as log:
        deadline = time.monotonic() + 60
        while (said := fetch(f"http://127.0.0.1:{port}/readyz")) != (200, "ok"):
            assert time.monotonic() < deadline, said
            time.sleep(0.2)
    assert not refusals(log)


def test_every_deployment_of_the_split_layout_starts_with_its_own_role(kube: RealKube) -> None:
    homeport("install", "--kubeconfig", str(kube.kubeconfig), "--layout", "split")
    for place in placements(chosen().components, "split"):
        with running(kube, name=str(place)) as log:
            pass
        assert refusals(log) == [], place


def test_uninstall_keeps_what_users_have(kube: RealKube) -> None:
    config = ("--kubeconfig", str(kube.kubeconfig))
    homeport("install", *config)
    assert "failed calling webhook" in kube.kubectl("create", "-f", str(EXAMPLE)).stderr  # nobody answers yet
    with running(kube):
        ok(kube, "apply", "-f", str(EXAMPLE))
    refused = subprocess.run(
        [sys.executable, "-m", "homeport", "uninstall", *config, "--crds"], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 1
    assert "Cluster default/harbour" in refused.stderr
    assert "Nothing was removed" in refused.stderr
    assert COMBINED.partition("/")[2] in ok(kube, "get", "deployments", "-A", "-o", "name")

    assert "kept: CustomResourceDefinitions, all objects" in homeport("uninstall", *config)
    for kind in ("deployments", "serviceaccounts", "clusterroles", "clusterrolebindings", "networkpolicies"):
        assert ok(kube, "get", kind, "-A", "-l", "homeport.dev/installed", "-o", "name") == ""
    for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        assert ok(kube, "get", kind, "-o", "name") == ""
    assert "homeport-webhook" not in ok(kube, "get", "secrets", "-n", "homeport-system", "-o", "name")
    assert "harbour" in ok(kube, "get", "clusters", "-o", "name")
    # Nothing converts any more, so nothing is offered that would have to be; users can change and delete.
    assert ok(kube, "get", "crds", "-o", "jsonpath={.items[*].spec.conversion.webhook}") == ""
    assert kube.kubectl("get", "clusters.v1beta1.cluster.x-k8s.io").returncode == 1
    ok(kube, "annotate", "cluster", "harbour", "team=blue")
    ok(kube, "delete", "machinedeployment", "harbour-workers", "--wait=false")
    assert homeport("uninstall", *config).startswith("nothing is installed")


def test_definitions_go_when_no_object_of_a_user_is_left(kube: RealKube) -> None:
    config = ("--kubeconfig", str(kube.kubeconfig))
    homeport("install", *config)
    with running(kube):
        # The controllers have made objects themselves, which do not count.
        ok(kube, "wait", "management/kcm", "--for=create", "--timeout=55s")
        await_all(kube, "management/kcm", "condition=Ready")
    # What a user wrote with our own commands or the dashboard is theirs, and has no finalizer to show it.
    kind, path = "KubeadmConfigTemplate", "/apis/bootstrap.cluster.x-k8s.io/v1beta2/namespaces/default"
    body = {"kind": kind, "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "metadata": {"name": "mine"}}
    spec = {"template": {"spec": {"format": "cloud-config"}}}
    with running(kube):
        for manager in ("homeport-create", "homeport-dashboard", "homeport-move", "homeport"):
            where = f"{path}/kubeadmconfigtemplates"
            code, text = kube.request(f"{where}?fieldManager={manager}", "POST", {**body, "spec": spec})
            assert code == 201, text
            refused = subprocess.run(
                [sys.executable, "-m", "homeport", "uninstall", *config, "--crds"],
                capture_output=True,
                text=True,
                check=False,
            )
            assert refused.returncode == 1, manager
            assert f"--crds would delete 1 objects: {kind} default/mine. Nothing was removed" in refused.stderr
            assert kube.request(f"{where}/mine", "DELETE")[0] == 200
    said = homeport("uninstall", *config, "--crds")
    assert f"removed {len(chosen().definitions())} CustomResourceDefinitions" in said
    assert ok(kube, "get", "crds", "-o", "name") == ""  # it waits: an installation right after it starts anew
    assert "homeport-system" in ok(kube, "get", "namespaces", "-o", "name")


def test_controllers_of_others_are_not_joined(kube: RealKube) -> None:
    ok(kube, "create", "namespace", "capx-system")
    ok(kube, "create", "deployment", "capx-controller-manager", "-n", "capx-system", "--image=registry.example/capx:v1")
    command = [sys.executable, "-m", "homeport", "install", "--kubeconfig", str(kube.kubeconfig)]
    for layout, advice in (("combined", "kubectl scale -n capx-system"), ("split", "remove what created it")):
        done = subprocess.run([*command, "--layout", layout], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "Deployment capx-system/capx-controller-manager exists and was not created by 'homeport" in done.stderr
        assert advice in done.stderr
        assert ok(kube, "get", "crds", "-o", "name") == ""


def written(kube: RealKube) -> set[str]:
    kinds = "deployments,services,serviceaccounts,clusterroles,clusterrolebindings,roles,rolebindings,networkpolicies"
    return set(ok(kube, "get", kinds, "-A", "-l", "homeport.dev/installed", "-o", "name").split())


def test_an_installation_that_is_killed_or_disturbed_is_completed_by_the_next(kube: RealKube) -> None:
    command = [sys.executable, "-m", "homeport", "install", "--kubeconfig", str(kube.kubeconfig)]
    for wanted in (1, 40, 120):  # while CustomResourceDefinitions are created
        killed = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while killed.poll() is None and ok(kube, "get", "crds", "-o", "name").count("\n") < wanted:
            time.sleep(0.05)
        killed.kill()
        killed.wait()
    # One of another project, whose certificates cert-manager keeps: it would replace ours.
    ok(kube, "annotate", "crd", "clusters.cluster.x-k8s.io", "cert-manager.io/inject-ca-from=capi-system/cert")
    ok(kube, "annotate", "crd", "clusters.cluster.x-k8s.io", "homeport.dev/definition-")
    rule = {
        "apiGroups": ["cluster.x-k8s.io"],
        "apiVersions": ["*"],
        "operations": ["CREATE"],
        "resources": ["clusters"],
    }
    left = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "left-behind"},
        "webhooks": [
            {
                "name": "validation.cluster.x-k8s.io",
                "rules": [rule],
                "clientConfig": {"service": {"namespace": "capi-system", "name": "gone"}},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }
    assert kube.kubectl("create", "-f", "-", stdin=json.dumps(left)).returncode == 0
    told = homeport(*command[3:])
    assert "left-behind of another project is asked about cluster.x-k8s.io, too" in told
    ok(kube, "delete", "validatingwebhookconfiguration", "left-behind")
    first = written(kube)
    assert len(first) > 15
    assert "cert-manager" not in ok(kube, "get", "crd", "clusters.cluster.x-k8s.io", "-o", "jsonpath={.metadata}")

    # Two at once, with different options: what one removes, the other misses and says so, or it came first.
    options = (["--layout", "split"], ["--layout", "combined", "--no-dashboard"])
    both = [
        subprocess.Popen([*command, *each], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for each in options
    ]
    said = [each.communicate(timeout=200)[0] for each in both]
    for process, text in zip(both, said, strict=True):
        assert process.returncode == 0 or "by another 'homeport install'" in text, text
    homeport(*command[3:])
    assert written(kube) == first

    ok(kube, "delete", "namespace", "homeport-system", "--wait=false")
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "Namespace homeport-system is being deleted: wait until it is gone" in refused.stderr
