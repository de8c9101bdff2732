"""`homeport dashboard --serve` on a real kube-apiserver, in a browser: whoever logs in sees what they may."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.sync_api import Browser, expect

from e2e.browsing import MARKS, ROOT, log_in
from e2e.cluster import Cluster
from realkube import RealKube

pytestmark = MARKS
SPACE = "dashboard-e2e"
KINDS = ("clusters", "machines", "machinedeployments", "machinesets")


@pytest.fixture(scope="module")
def kube(binaries: dict[str, Path] | str, kubectl: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The definitions of Cluster API, and clusters that nobody reconciles."""
    if isinstance(binaries, str):
        pytest.skip(binaries)
    with RealKube(binaries) as started:
        made = Cluster("real", kubectl, started.kubeconfig, tmp_path_factory.mktemp("home"))
        for kind in KINDS:
            made.ok("apply", "--server-side", "-f", str(ROOT / f"config/crds/cluster.x-k8s.io_{kind}.yaml"))
        made.ok("create", "namespace", SPACE)
        for kind in KINDS:  # after all of them: some kubectl fail on a definition that has no conditions yet
            made.ok("wait", f"crd/{kind}.cluster.x-k8s.io", "--for=condition=Established", "--timeout=30s")
        for space in (SPACE, "default"):
            made.ok("apply", "-f", "-", stdin=json.dumps(cluster(space)))
        yield made


def cluster(space: str) -> dict[str, Any]:
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": f"quay-{space}", "namespace": space},
        "spec": {
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io",
                "kind": "NutanixCluster",
                "name": "quay",
            }
        },
    }


@contextmanager
def served(kubeconfig: Path) -> Iterator[str]:
    """The link that the command prints, while it runs."""
    command = [sys.executable, "-m", "homeport", "dashboard", "--serve", "--kubeconfig", str(kubeconfig)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        link = process.stdout.readline().strip()
        assert link.startswith("http://127.0.0.1:"), link
        yield link
    finally:
        process.terminate()
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert "Traceback" not in said


def test_a_client_certificate_logs_in_and_sees_all_namespaces(kube: Cluster, browser: Browser) -> None:
    view = yaml.safe_load(kube.kubeconfig.read_text())
    assert "client-certificate-data" in view["users"][0]["user"] or "client-certificate" in view["users"][0]["user"]
    with served(kube.kubeconfig) as link:
        visit = log_in(browser, link)
        for space in (SPACE, "default"):
            expect(visit.page.locator("main")).to_contain_text(f"quay-{space}")
        condition = {"type": "Available", "status": "False", "reason": "Broken", "message": "the quay is flooded"}
        status = {"status": {"conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}
        kube.ok(
            *("patch", f"cluster/quay-{SPACE}", "-n", SPACE, "--subresource=status", "--type=merge"),
            *("-p", json.dumps(status)),
        )
        expect(visit.page.locator("article.sick", has_text=f"quay-{SPACE}")).to_contain_text("the quay is flooded")
        visit.go(f"#/object/cluster.x-k8s.io/clusters/{SPACE}/quay-{SPACE}")
        text = visit.page.locator("textarea")
        expect(text).to_be_visible()
        text.fill(text.input_value().replace("metadata:\n", "metadata:\n  labels:\n    example.com/tide: high\n", 1))
        visit.page.get_by_role("button", name="Review the change").click()
        visit.page.get_by_role("button", name="Apply").click()
        expect(visit.page.locator(".notice.good")).to_contain_text("was changed")
        label = ("get", f"cluster/quay-{SPACE}", "-n", SPACE, "-o", "jsonpath={.metadata.labels.example\\.com/tide}")
        assert kube.ok(*label) == "high"
        visit.page.context.close()


def test_a_restricted_token_sees_its_namespace_and_no_refusal(kube: Cluster, browser: Browser, tmp_path: Path) -> None:
    kube.ok("create", "serviceaccount", "jane", "-n", SPACE)
    kube.ok("create", "role", "jane", "-n", SPACE, "--verb=get,list,watch", "--resource=*.cluster.x-k8s.io")
    kube.ok("create", "rolebinding", "jane", "-n", SPACE, "--role=jane", f"--serviceaccount={SPACE}:jane")
    token = kube.ok("create", "token", "jane", "-n", SPACE).strip()
    view = json.loads(kube.ok("config", "view", "--raw", "--minify", "--flatten", "-o", "json"))
    view["users"] = [{"name": "jane", "user": {"token": token}}]
    view["contexts"] = [
        {"name": "jane", "context": {"cluster": view["clusters"][0]["name"], "user": "jane", "namespace": SPACE}}
    ]
    view["current-context"] = "jane"
    file = tmp_path / "jane.json"
    file.write_text(json.dumps(view))
    file.chmod(0o600)
    with served(file) as link:
        visit = log_in(browser, link)
        expect(visit.page.locator(".who")).to_have_text(f"system:serviceaccount:{SPACE}:jane")
        expect(visit.page.locator("main")).to_contain_text(f"quay-{SPACE}")
        assert "quay-default" not in visit.text("body")
        assert [each for each in visit.answers if each[0] == 403] == []
        visit.go("#/object/cluster.x-k8s.io/clusters/default/quay-default")
        expect(visit.page.get_by_role("alert")).to_contain_text("forbidden")
        kube.ok("delete", "rolebinding", "jane", "-n", SPACE)
        visit.go("#/")
        expect(visit.page.locator("main")).not_to_contain_text(f"quay-{SPACE}")
        kube.ok("create", "rolebinding", "jane", "-n", SPACE, "--role=jane", f"--serviceaccount={SPACE}:jane")
        expect(visit.page.locator("main")).to_contain_text(f"quay-{SPACE}")
        visit.page.context.close()
