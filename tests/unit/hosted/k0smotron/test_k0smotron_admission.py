"""What k0smotron's kinds may say."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from homeport.hosted.k0smotron.admission import (
    default_cluster,
    default_control_plane,
    default_join_token,
    validate,
    validate_join_token,
    validate_template,
    warn,
)
from homeport.hosted.k0smotron.name import CONTROL_PLANE_FINALIZER, FINALIZER, JOIN_TOKEN_FINALIZER

Json = dict[str, Any]


def cluster(**spec: Any) -> Json:
    return {"metadata": {"name": "a", "namespace": "ns"}, "spec": {"version": "v1.34.1+k0s.0", **spec}}


def fields(obj: Json, old: Json | None = None) -> dict[str, str]:
    return {cause.field: cause.message for cause in validate(obj, old)}


def test_what_a_user_leaves_out_is_filled_in_once() -> None:
    obj: Json = {"metadata": {"name": "a"}, "spec": {"ingress": {"apiHost": "a", "konnectivityHost": "b"}}}
    default_cluster(obj, None)
    assert obj["metadata"]["finalizers"] == [FINALIZER]
    assert obj["spec"]["replicas"] == 1
    assert obj["spec"]["version"] == "v1.27.9-k0s.0"
    assert obj["spec"]["ingress"]["deploy"] is True
    again = copy.deepcopy(obj)
    default_cluster(again, obj)
    assert again == obj


def test_each_kind_gets_its_finalizer_when_it_is_created_and_not_later() -> None:
    for default, finalizer in (
        (default_cluster, FINALIZER),
        (default_control_plane, CONTROL_PLANE_FINALIZER),
        (default_join_token, JOIN_TOKEN_FINALIZER),
    ):
        created: Json = {"metadata": {"name": "a"}}
        default(created, None)
        assert created["metadata"]["finalizers"] == [finalizer]
        released: Json = {"metadata": {"name": "a"}}
        default(released, created)
        assert "finalizers" not in released["metadata"]


def test_zero_replicas_are_a_wish_and_stay() -> None:
    obj = cluster(replicas=0)
    default_cluster(obj, None)
    assert obj["spec"]["replicas"] == 0
    assert fields(obj) == {}


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        ({"version": "1.34"}, "spec.version", "expected for example v1.33.4+k0s.0"),
        ({"replicas": -1}, "spec.replicas", "not a number of Pods"),
        ({"storage": {"type": "kine"}}, "spec.storage.kine", "dataSourceSecretName"),
        (
            {"replicas": 3, "storage": {"type": "kine", "kine": {"dataSourceURL": "sqlite:///db"}}},
            "spec.replicas",
            "can't share a sqlite database",
        ),
        ({"persistence": {"type": "pvc"}}, "spec.persistence.persistentVolumeClaim", "claim"),
        ({"persistence": {"type": "tape"}}, "spec.persistence.type", "choose emptyDir, hostPath or pvc"),
        ({"persistence": {"type": "hostPath", "hostPath": "k0s"}}, "spec.persistence.hostPath", "absolute"),
        (
            {"persistence": {"type": "hostPath", "hostPath": "/k"}, "replicas": 2},
            "spec.persistence.type",
            "same folder",
        ),
        ({"service": {"apiPort": 70000}}, "spec.service.apiPort", "between 1 and 65535"),
        ({"service": {"apiPort": 6443, "konnectivityPort": 6443}}, "spec.service.konnectivityPort", "same as apiPort"),
        ({"k0sConfig": {"apiVersion": "k0s.k0sproject.io/v1"}}, "spec.k0sConfig.apiVersion", "v1beta1"),
        ({"k0sConfig": {"kind": "Config"}}, "spec.k0sConfig.kind", "ClusterConfig"),
        ({"version": "v1.34.0+k0s.0", "ingress": {"apiHost": "a"}}, "spec.ingress", "v1.34.1+k0s.0 or later"),
        ({"manifests": [{"name": "a"}, {"name": "a"}]}, "spec.manifests[1].name", "another volume"),
        ({"patches": [{"patch": {"content": "{a: "}}]}, "spec.patches[0].patch.content", "neither valid YAML"),
    ],
)
def test_a_wrong_value_is_refused_at_its_field(spec: Json, field: str, words: str) -> None:
    found = fields(cluster(**spec))
    assert list(found) == [field]
    assert words in found[field]


@pytest.mark.parametrize(
    "spec",
    [
        {"replicas": 3},
        {"replicas": 3, "storage": {"type": "kine", "kine": {"dataSourceSecretName": "db"}}},
        {"replicas": 3, "storage": {"type": "kine", "kine": {"dataSourceURL": "postgres://db/k0s"}}},
        {"replicas": 1, "storage": {"type": "kine", "kine": {"dataSourceURL": "sqlite:///db"}}},
        {"replicas": 3, "storage": {"type": "nats"}},
        {"k0sConfig": {"spec": {"network": {"provider": "calico"}}}},
        {"version": "v1.34.1-k0s.0", "ingress": {"apiHost": "a", "konnectivityHost": "b"}},
    ],
)
def test_replicas_may_share_etcd_nats_or_a_database_server(spec: Json) -> None:
    assert fields(cluster(**spec)) == {}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("v1.32.4+k0s.0", "v1.33.1+k0s.0", ""),
        ("v1.32.4+k0s.0", "v1.33.1-k0s.0", ""),
        ("v1.32.4+k0s.0", "v1.32.9+k0s.1", ""),
        ("v1.32.9+k0s.0", "v1.32.4+k0s.0", ""),
        ("v1.32.4-k0s.0", "v1.32.4+k0s.0", ""),
        ("v1.32.4+k0s.0", "v1.34.0+k0s.0", "v1.33 is next"),
        ("v1.33.4+k0s.0", "v1.32.9+k0s.0", "can't downgrade"),
        ("v1.33.4+k0s.0", "v2.0.0+k0s.0", "can't upgrade"),
    ],
)
def test_an_upgrade_goes_one_minor_version_at_a_time(before: str, after: str, words: str) -> None:
    found = fields(cluster(version=after), cluster(version=before))
    assert list(found) == (["spec.version"] if words else [])
    assert words in "".join(found.values())


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        ({"storage": {"type": "etcd"}}, {"storage": {"type": "nats"}}, "spec.storage.type"),
        (
            {"storage": {"type": "etcd", "etcd": {"persistence": {"size": "1Gi"}}}},
            {"storage": {"type": "etcd", "etcd": {"persistence": {"size": "2Gi"}}}},
            "spec.storage.etcd.persistence",
        ),
        (
            {},
            {"remoteHostCluster": {"kubeconfigRef": {"name": "a", "namespace": "b"}}},
            "spec.remoteHostCluster",
        ),
        ({"storage": {"type": "nats"}, "replicas": 1}, {"storage": {"type": "nats"}, "replicas": 3}, "spec.replicas"),
        (
            {"persistence": {"type": "emptyDir"}},
            {"persistence": {"type": "pvc", "persistentVolumeClaim": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
            "spec.persistence",
        ),
    ],
)
def test_what_exists_with_a_value_keeps_it(before: Json, after: Json, field: str) -> None:
    assert list(fields(cluster(**after), cluster(**before))) == [field]
    going = cluster(**after)
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert fields(going, cluster(**before)) == {}


def test_the_service_can_be_changed_until_somebody_uses_its_address() -> None:
    before, after = cluster(service={"type": "ClusterIP"}), cluster(service={"type": "LoadBalancer"})
    assert fields(after, before) == {}
    after["status"] = {"initialization": {"controlPlaneInitialized": True}}
    assert list(fields(after, before)) == ["spec.service"]


def test_a_template_is_immutable_and_checked_like_a_control_plane() -> None:
    template = {"spec": {"template": {"spec": {"version": "v1.33.1"}}}}
    assert validate_template(template, None) == []
    [cause] = validate_template({"spec": {"template": {"spec": {"version": "new"}}}}, None)
    assert cause.field == "spec.template.spec.version"
    [cause] = validate_template({"spec": {"template": {"spec": {"version": "v1.33.2"}}}}, template)
    assert (cause.field, "new template" in cause.message) == ("spec.template.spec", True)


@pytest.mark.parametrize(("expiry", "good"), [("0s", True), ("24h", True), ("", True), ("soon", False), ("-1h", False)])
def test_the_expiry_of_a_token_is_a_duration(expiry: str, good: bool) -> None:
    found = validate_join_token({"spec": {"clusterName": "a", "expiry": expiry}}, None)
    assert [cause.field for cause in found] == ([] if good else ["spec.expiry"])


def test_a_token_that_was_made_can_not_become_another() -> None:
    [cause] = validate_join_token({"spec": {"clusterName": "a", "role": "controller"}}, {"spec": {"clusterName": "a"}})
    assert "create another JoinTokenRequest" in cause.message


def test_a_user_is_warned_of_a_missing_suffix_and_of_passwords() -> None:
    kine = {"type": "kine", "kine": {"dataSourceURL": "postgres://me:secret@db/k0s"}}
    texts = warn(cluster(version="v1.34.1", storage=kine, ingress={"deploy": True}), None)
    assert [text.partition(":")[0] for text in texts] == [
        "spec.version",
        "spec.ingress.annotations",
        "spec.storage.kine.dataSourceURL",
    ]
    assert not any("secret" in text for text in texts)
    same = cluster(version="v1.34.1")
    assert warn(same, same) == []
