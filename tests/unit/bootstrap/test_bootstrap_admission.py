from __future__ import annotations

from typing import Any

import pytest

from homeport.bootstrap.kubeadm.admission import register
from homeport.capi.kubeadmconfig import validate
from homeport.runtime.webhook.hook import Hooks


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"files": [{"path": "/a", "content": "x"}, {"path": "/a", "content": "y"}]}, "spec.files[1].path"),
        (
            {"files": [{"path": "/a", "content": "x", "contentFrom": {"secret": {"name": "a", "key": "b"}}}]},
            "spec.files[0]",
        ),
        ({"files": [{"path": "/a", "contentFrom": {"secret": {"name": "a"}}}]}, "spec.files[0].contentFrom.secret.key"),
        (
            {"users": [{"name": "a", "passwd": "x", "passwdFrom": {"secret": {"name": "a", "key": "b"}}}]},
            "spec.users[0]",
        ),
        ({"users": [{"name": "a", "passwdFrom": {"secret": {"key": "a"}}}]}, "spec.users[0].passwdFrom.secret.name"),
        ({"ignition": {"containerLinuxConfig": {"strict": True}}}, "spec.format"),
        ({"format": "ignition", "users": [{"name": "a", "inactive": True}]}, "spec.users[0].inactive"),
        ({"format": "ignition", "files": [{"path": "/a", "encoding": "gzip"}]}, "spec.files[0].encoding"),
        ({"format": "ignition", "bootCommands": ["a"]}, "spec.bootCommands"),
        (
            {"format": "ignition", "diskSetup": {"partitions": [{"device": "/a", "layout": True, "tableType": "mbr"}]}},
            "spec.diskSetup.partitions[0].tableType",
        ),
        (
            {"format": "ignition", "diskSetup": {"filesystems": [{"device": "/a", "replaceFS": "ntfs"}]}},
            "spec.diskSetup.filesystems[0].replaceFS",
        ),
        (
            {"diskSetup": {"partitions": [{"device": "/a", "diskLayout": [{"percentage": 60}, {"percentage": 41}]}]}},
            "spec.diskSetup.partitions[0].diskLayout",
        ),
        (
            {
                "joinConfiguration": {
                    "discovery": {
                        "file": {"kubeConfig": {"user": {"authProvider": {"name": "a"}, "exec": {"command": "b"}}}}
                    }
                }
            },
            "spec.joinConfiguration.discovery.file.kubeConfig.user",
        ),
    ],
)
def test_what_cannot_work_is_refused_with_the_field(spec: dict[str, Any], field: str) -> None:
    assert [cause.field for cause in validate(spec, "spec")] == [field]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {
            "files": [
                {"path": "/a", "content": "x"},
                {"path": "/b", "contentFrom": {"secret": {"name": "a", "key": "b"}}},
            ]
        },
        {"format": "ignition", "ignition": {"containerLinuxConfig": {"strict": True}}, "users": [{"name": "a"}]},
        {"diskSetup": {"partitions": [{"device": "/a", "diskLayout": [{"percentage": 60}, {"percentage": 40}]}]}},
    ],
)
def test_valid_specs_are_accepted(spec: dict[str, Any]) -> None:
    assert list(validate(spec, "spec")) == []


async def test_templates_are_held_to_the_same() -> None:
    hooks = Hooks()
    register(hooks)
    spec = {"template": {"spec": {"format": "ignition", "bootCommands": ["a"]}}}
    kind = hooks.find("bootstrap.cluster.x-k8s.io", "kubeadmconfigtemplates")
    assert kind is not None
    (cause,) = await kind.find_causes({"spec": spec}, None)
    assert cause.field == "spec.template.spec.bootCommands"
