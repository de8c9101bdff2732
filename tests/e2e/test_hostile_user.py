"""A hostile or careless user on an installation with webhooks, on a real kube-apiserver: others notice nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from capikit.installed import COMBINED, running
from capikit.podnetwork import NetworkedKube
from e2e.test_install_on_kubernetes import homeport, ok
from e2e.test_installed_webhook import CLUSTER, CLUSTERS, known, until

pytestmark = [pytest.mark.timeout(600)]

V1BETA2 = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default"
GARBAGE: tuple[Any, ...] = ("text", [], 7, True, None, {"a": {"b": None}})
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def kube(binaries: dict[str, Path] | str) -> Iterator[NetworkedKube]:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    with NetworkedKube(binaries) as made:
        homeport("install", "--kubeconfig", str(made.kubeconfig))
        with running(made) as log:
            yield made
        assert "Traceback" not in log.read_text()


def answers(kube: NetworkedKube) -> bool:
    """An honest user's object, in an older version: converted, defaulted and checked."""
    return kube.request(CLUSTERS, "POST", CLUSTER)[0] == 201


def served(kube: NetworkedKube) -> list[tuple[str, str, str]]:
    """Path, apiVersion and kind of everything that is defined, in every version."""
    found = []
    for crd in json.loads(ok(kube, "get", "crds", "-o", "json"))["items"]:
        spec = crd["spec"]
        place = "namespaces/default/" if spec["scope"] == "Namespaced" else ""
        for version in (each["name"] for each in spec["versions"] if each["served"]):
            api = f"{spec['group']}/{version}"
            found.append((f"/apis/{api}/{place}{spec['names']['plural']}", api, spec["names"]["kind"]))
    return found


def test_garbage_of_every_kind_is_refused_with_the_field_that_is_wrong(kube: NetworkedKube) -> None:
    kinds = served(kube)
    assert len(kinds) > 80
    failed = []
    for number, (path, api, kind) in enumerate(kinds):
        spec = GARBAGE[number % len(GARBAGE)]
        body = {"apiVersion": api, "kind": kind, "metadata": {"name": "garbage"}, "spec": spec}
        code, said = kube.request(f"{path}?dryRun=All", "POST", body)
        if code >= 500:
            failed.append((kind, api, spec, said.decode()))
    assert failed == []
    assert answers(kube)


def test_a_huge_object_is_stored_or_refused_and_others_are_still_listed(kube: NetworkedKube) -> None:
    variables = [{"name": f"v{n}", "value": "x" * 1000} for n in range(900)]
    huge = {"topology": {"classRef": {"name": "none"}, "version": "v1.32.0", "variables": variables}}
    body = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "huge"}, "spec": huge}
    code, said = kube.request(f"{V1BETA2}/clusters", "POST", body)
    assert code in (201, 413, 422), said
    body["metadata"] = {"name": "larger", "annotations": {"a": "x" * 300_000}}
    assert kube.request(f"{V1BETA2}/clusters", "POST", body)[0] in (413, 422)
    for version in ("v1beta1", "v1beta2"):
        assert kube.request(f"/apis/cluster.x-k8s.io/{version}/clusters")[0] == 200
    assert answers(kube)
    kube.request(f"{V1BETA2}/clusters/huge", "DELETE")


def test_lost_certificates_come_back(kube: NetworkedKube) -> None:
    (before,) = known(kube)
    ok(kube, "delete", "secret", "homeport-webhook", "-n", "homeport-system")
    wrong = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").decode()
    name = "homeport-webhook.homeport-system"
    for kind in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
        path = f"/apis/admissionregistration.k8s.io/v1/{kind}/{name}"
        found = json.loads(kube.request(path)[1])
        for each in found["webhooks"]:
            each["clientConfig"].pop("caBundle", None)
        assert kube.request(path, "PUT", found)[0] == 200
    crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusters.cluster.x-k8s.io"
    conversion = {"webhook": {"clientConfig": {"caBundle": wrong}}}
    kube.request(crd, "PATCH", {"spec": {"conversion": conversion}}, Content_Type=MERGE)
    until(lambda: known(kube) == {before}, "the CA is in every object again")
    until(lambda: answers(kube), "objects are accepted again")


def test_an_installation_over_a_half_removed_one_mends_it(kube: NetworkedKube) -> None:
    namespace, _, name = COMBINED.partition("/")
    for what in (
        ("clusterrole", name),
        ("clusterrolebinding", name),
        ("service", "homeport-webhook", "-n", namespace),
        ("deployment", name, "-n", namespace),
        ("crd", "machinedrainrules.cluster.x-k8s.io"),
        ("validatingwebhookconfiguration", f"homeport-webhook.{namespace}"),
        ("configmap", "homeport-dashboard", "-n", "homeport-dashboard"),
    ):
        ok(kube, "delete", *what)
    homeport("install", "--kubeconfig", str(kube.kubeconfig))
    ok(kube, "wait", "crd/machinedrainrules.cluster.x-k8s.io", "--for=condition=Established", "--timeout=50s")
    with running(kube):  # it stops at once if any permission is missing
        until(lambda: answers(kube), "objects are accepted again")
    again = homeport("install", "--kubeconfig", str(kube.kubeconfig))
    assert "removed" not in again
