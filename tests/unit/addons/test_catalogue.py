"""The catalogue: every entry is complete, its templates render, and it has a stand-in that its values fit."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from homeport.addons.catalogue import Entry, catalogue, entries_before, near_match
from homeport.addons.catalogue.entry import parameter_errors, with_defaults
from homeport.addons.catalogue.standin import standin_chart
from homeport.addons.chart.values import parse_values
from homeport.addons.chart.version import parsed
from homeport.addons.facts import render_text
from homeport.machinery.chart import ReleaseInfo, load_chart, render
from homeport.machinery.manifest import parse_objects

ENTRIES = list(catalogue().values())
NAMES = [each.name for each in ENTRIES]
FACTS = {
    "name": "one",
    "namespace": "default",
    "host": "10.0.0.1",
    "port": 6443,
    "podCIDR": "10.244.0.0/16,fd00::/64",
    "serviceCIDR": "10.96.0.0/12",
    "serviceDomain": "cluster.local",
    "version": "v1.30.0",
    "provider": "nutanix",
    "kubeProxy": True,
}
GIVEN: dict[str, Any] = {
    "metallb": {"addresses": ["10.0.0.240-10.0.0.250"]},
    "nutanix-csi": {"credentialsSecret": "prism", "storageContainer": "default"},
    "harvester-csi": {"credentialsSecret": "harvester"},
}


def data(entry: Entry, **parameters: Any) -> dict[str, Any]:
    given = {**GIVEN.get(entry.name, {}), **parameters}
    return {"Facts": FACTS, "Parameters": with_defaults(entry, given), "Namespace": entry.namespace}


def test_the_catalogue_has_what_users_look_for() -> None:
    assert set(NAMES) >= {
        "cilium", "calico", "flannel", "kube-vip", "metallb", "cert-manager", "traefik", "longhorn", "metrics-server",
        "flux", "argo-cd", "nutanix-csi", "harvester-csi",
    }  # fmt: skip


@pytest.mark.parametrize("entry", ENTRIES, ids=NAMES)
def test_an_entry_is_complete(entry: Entry) -> None:
    assert entry.chart.repository.startswith("https://")
    assert entry.description.endswith(".")
    versions = [parsed(each) for each in entry.versions]
    assert versions == sorted(versions, reverse=True), "newest first"
    if entry.one_minor_at_a_time:
        minors = sorted({each[:2] for each in versions})
        assert all(b == (a[0], a[1] + 1) for a, b in itertools.pairwise(minors)), "a step is missing"
    assert not parameter_errors(entry, GIVEN.get(entry.name, {}))
    assert all(each.name != "" and each.description for each in entry.parameters)


@pytest.mark.parametrize("entry", ENTRIES, ids=NAMES)
def test_its_templates_render_and_its_stand_in_takes_the_values(entry: Entry) -> None:
    values = parse_values(render_text(entry.values, data(entry), "values"), "values")
    for text in (entry.before, entry.manifests):
        if text:
            assert parse_objects({"text": render_text(text, data(entry), "manifests").encode()})
    chart = load_chart(standin_chart(entry, entry.newest))
    assert (chart.metadata.name, chart.version) == (entry.chart.name, entry.newest)
    made = render(chart, values, ReleaseInfo(entry.release_name, entry.namespace))
    objects = [each.object for each in made.manifests]
    assert {"Deployment", "DaemonSet", "StatefulSet"} & {each["kind"] for each in objects}
    unmarked = [each for each in objects if each["metadata"]["labels"].get("addons.homeport.dev/simulated") != "true"]
    assert not unmarked, "a stand-in says what it is"
    assert "stand-in" in made.notes


@pytest.mark.parametrize("entry", ENTRIES, ids=NAMES)
def test_values_of_the_catalogue_are_keys_that_the_stand_in_knows(entry: Entry) -> None:
    """The stand-in has the keys of the real chart: a typing error in a key of the catalogue would be without effect."""
    chart = load_chart(standin_chart(entry, entry.newest))
    free = {"preUpgradeChecker", "frrk8s"}
    values = parse_values(render_text(entry.values, data(entry), "values"), "values")
    unknown = [key for key in values if key not in chart.values and key not in free]
    assert not unknown


def test_a_network_comes_before_its_users_and_a_load_balancer_before_an_ingress() -> None:
    assert entries_before("metallb") == {"cilium", "calico", "flannel"}
    assert {"metallb", "kube-vip", "cert-manager", "cilium"} <= entries_before("traefik")
    assert entries_before("cilium") == frozenset()


@pytest.mark.parametrize(
    ("typed", "meant"), [("cillium", "cilium"), ("metal-lb", "metallb"), ("certmanager", "cert-manager"), ("zzz", "")]
)
def test_a_near_match_is_found(typed: str, meant: str) -> None:
    assert near_match(typed) == meant


def test_parameters_are_checked_with_their_field() -> None:
    entry = catalogue()["metallb"]
    assert [(field, what) for field, _, what in parameter_errors(entry, {})] == [("addresses", "Required")]
    ((field, why, what),) = parameter_errors(entry, {"addresses": "10.0.0.1"})
    assert (field, what) == ("addresses", "Invalid")
    assert "a list of texts" in why
    assert [field for field, _, _ in parameter_errors(entry, {**GIVEN["metallb"], "pol": "x"})] == ["pol"]


def test_cilium_finds_the_api_without_kube_proxy() -> None:
    entry = catalogue()["cilium"]
    facts = {**data(entry), "Facts": {**FACTS, "kubeProxy": False}}
    values = parse_values(render_text(entry.values, facts, "values"), "values")
    assert (values["kubeProxyReplacement"], values["k8sServiceHost"], values["k8sServicePort"]) == (
        True,
        "10.0.0.1",
        6443,
    )
