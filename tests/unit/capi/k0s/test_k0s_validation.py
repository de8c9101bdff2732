"""What is refused in the settings of a k0s machine."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.capi.k0s.validation import validate_host


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"version": "v1.33.4+k0s.0"},
        {"version": "v1.33.4-k0s.0"},
        {"version": "v1.33.4"},
        {"downloadURL": "oci://registry.example/k0s:v1", "args": ["--labels=a=b"]},
        {"k0s": {"spec": {"network": {}}}, "provisioner": {"type": "cloud-config", "platform": "linux"}},
        {"k0s": {"spec": {"aFieldOfALaterRelease": {}, "network": None, "api": {"extraArgs": {"v": "5"}}}}},
        {"files": [{"path": "/a", "contentFrom": {"secretRef": {"name": "a", "key": "b"}}}]},
    ],
)
def test_what_is_right_is_accepted(spec: dict[str, Any]) -> None:
    assert list(validate_host(spec, "spec")) == []


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        ({"version": "1.33"}, "spec.version", "expected for example v1.33.4+k0s.0"),
        ({"downloadURL": "mirror.example/k0s"}, "spec.downloadURL", "start it with"),
        ({"args": ["--taints=a"]}, "spec.args", "KEY=VALUE:EFFECT"),
        ({"files": [{"path": "a"}]}, "spec.files[0].path", "absolute"),
        ({"files": [{"path": "/a"}, {"path": "/a"}]}, "spec.files[1].path", "unique"),
        ({"files": [{"path": "/a", "contentFrom": {}, "content": "x"}]}, "", ""),
        ({"files": [{"path": "/a", "contentFrom": {"x": 1}}]}, "spec.files[0].contentFrom", "either"),
        ({"provisioner": {"type": "powershell"}}, "spec.provisioner.type", "use cloud-config"),
        ({"provisioner": {"platform": "windows"}}, "spec.provisioner.platform", "Linux"),
        ({"tunneling": {"enabled": True}}, "spec.tunneling.enabled", "not supported"),
        ({"k0s": {"kind": "Cluster"}}, "spec.k0s.kind", "ClusterConfig"),
        ({"k0s": {"apiVersion": "v1"}}, "spec.k0s.apiVersion", "k0s.k0sproject.io/v1beta1"),
        ({"k0sInstallDir": "bin"}, "spec.k0sInstallDir", "absolute"),
        ({"k0s": {"spec": []}}, "spec.k0s.spec", "must be a map"),
        ({"k0s": {"spec": {"api": {"extraArg": {}}}}}, "spec.k0s.spec.api.extraArg", 'did you mean "extraArgs"?'),
        ({"k0s": {"spec": {"api": {"port": "x"}}}}, "spec.k0s.spec.api.port", "must be a whole number"),
        ({"k0s": {"spec": {"api": {"sans": [1]}}}}, "spec.k0s.spec.api.sans[0]", "must be a text"),
        ({"k0s": {"spec": {"network": {"provider": "calicoo"}}}}, "spec.k0s.spec.network.provider", "calico"),
        ({"k0s": {"spec": {"api": {"extraArgs": {"v": 5}}}}}, "spec.k0s.spec.api.extraArgs.v", "must be a text"),
    ],
)
def test_what_is_wrong_is_named_with_its_field(spec: dict[str, Any], field: str, words: str) -> None:
    found = list(validate_host(spec, "spec"))
    assert [each.field for each in found] == ([field] if field else [])
    assert all(words in each.message for each in found)
