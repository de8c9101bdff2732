"""A VM that somebody created in Harvester, read as the spec of a machine that would make one like it."""

from __future__ import annotations

import json
from typing import Any

from homeport.api.meta import Unstructured
from homeport.providers.harvester.importer import _holder, machine_spec


def vm(labels: dict[str, str] | None = None, *, claims: bool = True) -> Unstructured:
    listed: list[dict[str, Any]] = [
        {
            "metadata": {"name": "web-disk-0-x1", "annotations": {"harvesterhci.io/imageId": "default/image-abc"}},
            "spec": {"resources": {"requests": {"storage": "40Gi"}}, "storageClassName": "longhorn-image-abc"},
        },
        {
            "metadata": {"name": "web-disk-1-x2"},
            "spec": {"resources": {"requests": {"storage": "100Gi"}}, "storageClassName": "harvester-longhorn"},
        },
    ]
    inner = {
        "hostname": "web",
        "networks": [{"name": "default", "multus": {"networkName": "default/workloads"}}],
        "domain": {
            "cpu": {"cores": 2, "sockets": 2},
            "firmware": {"uuid": "5d1c7a52-0a4e-4a63-9c3d-2f6f1f0c8f11", "bootloader": {"efi": {}}},
            "devices": {
                "disks": [
                    {"name": "data", "disk": {"bus": "virtio"}},
                    {"name": "root", "disk": {"bus": "virtio"}, "bootOrder": 1},
                    {"name": "iso", "cdrom": {"bus": "sata"}, "bootOrder": 2},
                ],
                "interfaces": [{"name": "default", "bridge": {}, "macAddress": "52:54:00:00:00:01"}],
            },
            "resources": {"limits": {"cpu": "4", "memory": "8Gi"}, "requests": {"cpu": "250m"}},
        },
        "volumes": [
            {"name": "root", "persistentVolumeClaim": {"claimName": "web-disk-0-x1"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "web-disk-1-x2"}},
            {"name": "cloudinitdisk", "cloudInitNoCloud": {"secretRef": {"name": "web"}}},
        ],
    }
    annotations = {"harvesterhci.io/volumeClaimTemplates": json.dumps(listed)} if claims else {}
    meta = {"name": "web", "namespace": "prod", "uid": "u", "labels": labels or {}, "annotations": annotations}
    return Unstructured(
        {"metadata": meta, "spec": {"runStrategy": "RerunOnFailure", "template": {"metadata": {}, "spec": inner}}}
    )


def test_disks_network_and_size_are_read_and_nothing_that_is_the_vms_own() -> None:
    spec, missing = machine_spec(vm())
    assert missing == ()
    assert spec["bootDisk"] == {"image": "default/image-abc", "size": "40Gi"}
    assert spec["dataDisks"] == [{"name": "disk-1", "size": "100Gi", "storageClassName": "harvester-longhorn"}]
    template = spec["virtualMachineTemplate"]
    assert template["metadata"] == {"namespace": "prod"}
    assert template["spec"]["runStrategy"] == "RerunOnFailure"
    assert template["spec"]["template"]["spec"] == {
        "networks": [{"name": "default", "multus": {"networkName": "default/workloads"}}],
        "domain": {
            "cpu": {"cores": 2, "sockets": 2},
            "firmware": {"bootloader": {"efi": {}}},
            "devices": {"interfaces": [{"name": "default", "bridge": {}}]},
            "resources": {"limits": {"cpu": "4", "memory": "8Gi"}},
        },
    }


def test_an_image_that_is_not_shown_has_to_be_named() -> None:
    spec, missing = machine_spec(vm(claims=False))
    assert missing == ("bootDisk.image",)
    assert "bootDisk" not in spec


def test_vms_of_rancher_and_of_cluster_api_are_managed_by_others() -> None:
    assert _holder(vm()) == ""
    assert _holder(vm({"harvesterhci.io/creator": "harvester"})) == ""
    assert "Rancher manages it" in _holder(vm({"harvesterhci.io/creator": "docker-machine-driver-harvester"}))
    named = {
        "capk.cluster.x-k8s.io/kubevirt-machine-name": "a",
        "capk.cluster.x-k8s.io/kubevirt-machine-namespace": "b",
    }
    assert _holder(vm(named)).startswith("belongs to machine b/a")
