from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from homeport.controlplane.kubeadm.admission import default, validate, validate_template
from unit.controlplane.kubeadm.sample_kcp import raw_kcp


def made(**spec: Any) -> dict[str, Any]:
    obj = raw_kcp(**spec)
    default(obj, None)
    return obj


def fields(obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [cause.field for cause in validate(obj, old)]


def configuration(**parts: Any) -> dict[str, Any]:
    return {"kubeadmConfigSpec": {"clusterConfiguration": parts}}


EXTERNAL = {"etcd": {"external": {"endpoints": ["https://e:2379"], "caFile": "a", "certFile": "b", "keyFile": "c"}}}


def test_defaults_are_filled_in_once() -> None:
    obj = raw_kcp(version="1.30.2")
    del obj["spec"]["replicas"]
    default(obj, None)
    assert obj["spec"]["replicas"] == 1
    assert obj["spec"]["version"] == "v1.30.2"
    assert obj["spec"]["rollout"]["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}
    assert obj["metadata"]["finalizers"] == ["kubeadm.controlplane.cluster.x-k8s.io"]
    again = deepcopy(obj)
    default(again, obj)
    assert again == obj
    assert validate(obj, None) == []


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"replicas": 0}, "spec.replicas"),
    ({"replicas": -1}, "spec.replicas"),
    ({"replicas": 2}, "spec.replicas"),
    ({"version": "v1.30"}, "spec.version"),
    (
        {"kubeadmConfigSpec": {"files": [{"path": "/a", "content": "1"}, {"path": "/a", "content": "2"}]}},
        "spec.kubeadmConfigSpec.files[1].path",
    ),
    (
        {"machineTemplate": {"spec": {"infrastructureRef": {"apiGroup": "a", "kind": "B"}}}},
        "spec.machineTemplate.spec.infrastructureRef.name",
    ),
    ({"rollout": {"strategy": {"type": "OnDelete"}}}, "spec.rollout.strategy.type"),
    ({"rollout": {"strategy": {"rollingUpdate": {"maxSurge": 2}}}}, "spec.rollout.strategy.rollingUpdate.maxSurge"),
    (
        {"replicas": 1, "rollout": {"strategy": {"rollingUpdate": {"maxSurge": 0}}}},
        "spec.rollout.strategy.rollingUpdate.maxSurge",
    ),
    ({"machineNaming": {"template": "{{ .cluster.name }}"}}, "spec.machineNaming.template"),
    ({"machineNaming": {"template": "{{ .machineSet.name }}-{{ .random }}"}}, "spec.machineNaming.template"),
    (configuration(dns={"imageTag": "latest"}), "spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag"),
    (
        configuration(etcd={"local": {"dataDir": "/d"}, **EXTERNAL["etcd"]}),
        "spec.kubeadmConfigSpec.clusterConfiguration.etcd.local",
    ),
    (
        configuration(certificateValidityPeriodDays=400, caCertificateValidityPeriodDays=365),
        "spec.kubeadmConfigSpec.clusterConfiguration.certificateValidityPeriodDays",
    ),
    (
        {"rollout": {"before": {"certificatesExpiryDays": 90}}, **configuration(certificateValidityPeriodDays=90)},
        "spec.rollout.before.certificatesExpiryDays",
    ),
]


@pytest.mark.parametrize(("spec", "field"), REFUSED)
def test_what_can_not_work_is_refused(spec: dict[str, Any], field: str) -> None:
    assert fields(made(**spec)) == [field]


def test_an_even_number_is_fine_beside_an_external_etcd() -> None:
    assert fields(made(replicas=2, **configuration(**EXTERNAL))) == []


TAINT = "node.cluster.x-k8s.io/uninitialized"


@pytest.mark.parametrize(
    ("key", "refused"),
    [
        (TAINT, True),
        ("node.kubernetes.io/not-ready", True),
        ("node.kubernetes.io/out-of-service", False),
        ("own/key", False),
    ],
)
def test_taints_of_kubernetes_are_its_own(key: str, refused: bool) -> None:
    template = {
        "spec": {**raw_kcp()["spec"]["machineTemplate"]["spec"], "taints": [{"key": key, "effect": "NoSchedule"}]}
    }
    assert bool(fields(made(machineTemplate=template))) is refused


@pytest.mark.parametrize(
    ("was", "wanted", "refused"),
    [
        ("v1.30.2", "v1.31.0", False),
        ("v1.30.2", "v1.32.0", True),
        ("v1.30.2", "v1.30.1", False),
        ("v1.30.2", "v1.29.9", False),
        ("v1.30.2", "v1.28.0", True),
        ("v1.30.2", "v2.0.0", True),
    ],
)
def test_versions_go_step_by_step(was: str, wanted: str, refused: bool) -> None:
    assert fields(made(version=wanted), made(version=was)) == (["spec.version"] if refused else [])


def test_a_running_cluster_keeps_its_kind_of_etcd_and_what_its_machines_were_made_with() -> None:
    assert fields(made(**configuration(**EXTERNAL)), made()) == ["spec.kubeadmConfigSpec.clusterConfiguration.etcd"]
    assert fields(made(**configuration(certificatesDir="/x")), made()) == [
        "spec.kubeadmConfigSpec.clusterConfiguration.certificatesDir"
    ]
    assert fields(made(**configuration(imageRepository="own")), made()) == []


def test_coredns_does_not_go_back_unless_nobody_looks_after_it() -> None:
    old, new = made(**configuration(dns={"imageTag": "v1.11.3"})), made(**configuration(dns={"imageTag": "v1.10.1"}))
    assert fields(new, old) == ["spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag"]
    new["metadata"]["annotations"] = {"controlplane.cluster.x-k8s.io/skip-coredns": ""}
    assert fields(new, old) == []


def template(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "t"}, "spec": {"template": {"spec": spec}}}


def test_a_template_does_not_change() -> None:
    old = template(kubeadmConfigSpec={"preKubeadmCommands": ["a"]})
    assert validate_template(old, None) == []
    assert validate_template(deepcopy(old), old) == []
    changed = template(kubeadmConfigSpec={"preKubeadmCommands": ["b"]})
    assert [cause.field for cause in validate_template(changed, old)] == ["spec.template.spec"]
    dns = template(
        kubeadmConfigSpec={"preKubeadmCommands": ["a"], "clusterConfiguration": {"dns": {"imageTag": "v1.11.3"}}}
    )
    assert validate_template(dns, old)
    filled_in = template(
        kubeadmConfigSpec={"preKubeadmCommands": ["a"], "format": "cloud-config"},
        rollout={"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
    )
    assert validate_template(old, filled_in) == []
    assert validate_template(template(machineNaming={"template": "x"}), None)
