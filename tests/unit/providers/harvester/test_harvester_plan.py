"""From a KubevirtMachine to the objects of its VM."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import yaml

from homeport.infra.error import Misconfigured
from homeport.infra.protocol import StaticAddress
from homeport.providers.harvester.image import Image
from homeport.providers.harvester.machine.plan import Material, capacity_of, data_source, render_secret, render_vm
from unit.providers.harvester.machine_kit import IMAGE, UID, scope_of, vm_template

NETWORK = {"name": "nic-0", "multus": {"networkName": "workloads"}}


def inner_of(vm: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = vm["spec"]["template"]["spec"]
    return found


def claims_of(vm: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(vm["metadata"]["annotations"]["harvesterhci.io/volumeClaimTemplates"])
    return found


def test_a_boot_disk_is_a_claim_of_the_images_class_and_boots_first() -> None:
    scope = scope_of(spec={"bootDisk": {"image": "default/rocky-9-cloud", "size": "40Gi"}})
    vm = render_vm(scope, Material(IMAGE), "NoCloud")
    (claim,) = claims_of(vm)
    assert claim["metadata"]["name"] == "m1-boot"
    assert claim["metadata"]["annotations"] == {"harvesterhci.io/imageId": "default/rocky-9-cloud"}
    assert claim["spec"]["storageClassName"] == "lh-1234"
    assert claim["spec"]["resources"]["requests"]["storage"] == "40Gi"
    first = inner_of(vm)["domain"]["devices"]["disks"][0]
    assert (first["name"], first["bootOrder"]) == ("boot", 1)
    assert inner_of(vm)["volumes"][0]["persistentVolumeClaim"] == {"claimName": "m1-boot"}


def test_a_boot_disk_without_a_size_is_as_large_as_its_image_and_never_smaller() -> None:
    scope = scope_of(spec={"bootDisk": {"image": "x"}})
    large = Image(IMAGE.key, "x", "lh", 30 * 2**30)
    assert claims_of(render_vm(scope, Material(large), "NoCloud"))[0]["spec"]["resources"]["requests"] == {
        "storage": "30Gi"
    }
    small = scope_of(spec={"bootDisk": {"image": "x", "size": "20Gi"}})
    with pytest.raises(Misconfigured, match=r"spec\.bootDisk\.size"):
        render_vm(small, Material(large), "NoCloud")


def test_everything_carries_the_machines_uid() -> None:
    scope = scope_of(spec={"bootDisk": {"image": "x"}, "dataDisks": [{"name": "data", "size": "5Gi"}]})
    vm, secret = render_vm(scope, Material(IMAGE), "NoCloud"), render_secret(scope, Material(IMAGE), "NoCloud")
    labelled = [vm["metadata"], secret["metadata"], vm["spec"]["template"]["metadata"]]
    labelled += [each["metadata"] for each in claims_of(vm)]
    assert {each["labels"]["infrastructure.homeport.dev/machine-uid"] for each in labelled} == {UID}
    assert vm["metadata"]["labels"]["capk.cluster.x-k8s.io/kubevirt-machine-name"] == "m1"
    assert inner_of(vm)["domain"]["firmware"]["uuid"] == UID


def test_volumes_of_a_template_are_made_once_for_each_machine() -> None:
    claim = {"metadata": {"name": "root"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    template: dict[str, Any] = {
        "metadata": {"annotations": {"harvesterhci.io/volumeClaimTemplates": json.dumps([claim])}},
        "spec": {
            "dataVolumeTemplates": [{"metadata": {"name": "disk"}, "spec": {}}],
            "template": {
                "spec": {
                    "volumes": [
                        {"name": "root", "persistentVolumeClaim": {"claimName": "root"}},
                        {"name": "disk", "dataVolume": {"name": "disk"}},
                        {"name": "shared", "persistentVolumeClaim": {"claimName": "of-the-user"}},
                    ]
                }
            },
        },
    }
    vm = render_vm(scope_of(spec={"virtualMachineTemplate": template}), Material(), "NoCloud")
    assert claims_of(vm)[0]["metadata"]["name"] == "m1-root"
    assert vm["spec"]["dataVolumeTemplates"][0]["metadata"]["name"] == "m1-disk"
    volumes = {each["name"]: each for each in inner_of(vm)["volumes"]}
    assert volumes["root"]["persistentVolumeClaim"]["claimName"] == "m1-root"
    assert volumes["disk"]["dataVolume"]["name"] == "m1-disk"
    assert volumes["shared"]["persistentVolumeClaim"]["claimName"] == "of-the-user"
    assert template["spec"]["dataVolumeTemplates"] == [{"metadata": {"name": "disk"}, "spec": {}}], "not changed"


def test_networks_get_a_card_and_their_full_name() -> None:
    template = vm_template(networks=[NETWORK, {"name": "pods", "pod": {}}])
    vm = render_vm(scope_of(spec={"virtualMachineTemplate": template}), Material(), "NoCloud")
    assert inner_of(vm)["networks"][0]["multus"]["networkName"] == "vms/workloads"
    assert inner_of(vm)["domain"]["devices"]["interfaces"] == [
        {"name": "nic-0", "model": "virtio", "bridge": {}},
        {"name": "pods", "model": "virtio", "masquerade": {}},
    ]


@pytest.mark.parametrize("source", ["NoCloud", "ConfigDrive"])
def test_a_static_address_is_given_to_the_card_with_its_mac(source: str) -> None:
    template = vm_template(networks=[NETWORK], dnsConfig={"nameservers": ["10.40.0.1"]})
    address = StaticAddress("10.40.1.10", 16, "10.40.0.1", "InClusterIPPool p")
    scope = scope_of(spec={"virtualMachineTemplate": template}, addresses=(address,))
    vm, secret = render_vm(scope, Material(), source), render_secret(scope, Material(), source)
    (card,) = inner_of(vm)["domain"]["devices"]["interfaces"]
    data = yaml.safe_load(base64.b64decode(secret["data"]["networkdata"]))
    if source == "NoCloud":
        assert data["ethernets"]["nic-0"] == {
            "match": {"macaddress": card["macAddress"]},
            "addresses": ["10.40.1.10/16"],
            "routes": [{"to": "0.0.0.0/0", "via": "10.40.0.1"}],
            "nameservers": {"addresses": ["10.40.0.1"]},
        }
    else:
        assert data["links"][0]["ethernet_mac_address"] == card["macAddress"]
        assert (data["networks"][0]["ip_address"], data["networks"][0]["netmask"]) == ("10.40.1.10", "255.255.0.0")
    kind = "cloudInitNoCloud" if source == "NoCloud" else "cloudInitConfigDrive"
    assert inner_of(vm)["volumes"][-1][kind]["networkDataSecretRef"] == {"name": "m1-cloud-init"}


def test_more_addresses_than_networks_are_refused() -> None:
    scope = scope_of(addresses=(StaticAddress("10.40.1.10", 16),))
    with pytest.raises(Misconfigured, match=r"spec\.addressesFromPools: 1 pools for 0 networks"):
        render_vm(scope, Material(), "NoCloud")


def test_a_zone_is_required_in_addition_to_what_the_user_requires() -> None:
    own = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [own]}}
    template = vm_template(affinity={"nodeAffinity": required})
    vm = render_vm(scope_of(spec={"virtualMachineTemplate": template}, failure_domain="a"), Material(), "NoCloud")
    (term,) = inner_of(vm)["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert [each["key"] for each in term["matchExpressions"]] == ["disk", "topology.kubernetes.io/zone"]


def test_keys_are_added_to_cloud_config_and_nothing_else() -> None:
    scope = scope_of(user_data=b"#cloud-config\nruncmd: [ls]\n")
    secret = render_secret(scope, Material(keys=[("default/butler-ssh", "ssh-ed25519 AAAA x\n")]), "NoCloud")
    made = yaml.safe_load(base64.b64decode(secret["data"]["userdata"]))
    assert made == {"runcmd": ["ls"], "ssh_authorized_keys": ["ssh-ed25519 AAAA x"]}
    talos = scope_of(user_data=b"version: v1alpha1\n")
    secret = render_secret(talos, Material(keys=[("default/butler-ssh", "ssh-ed25519 AAAA x")]), "NoCloud")
    assert base64.b64decode(secret["data"]["userdata"]) == b"version: v1alpha1\n"


@pytest.mark.parametrize(
    ("harvester", "chosen", "url", "form", "expected"),
    [
        (True, "", "https://x/nocloud-amd64.raw.xz", "", "NoCloud"),
        (True, "", "https://x/openstack-amd64.raw.xz", "", "ConfigDrive"),
        (True, "NoCloud", "https://x/openstack-amd64.raw.xz", "", "NoCloud"),
        (True, "", "https://x/flatcar.img", "ignition", "ConfigDrive"),
        (False, "", "", "", "ConfigDrive"),
    ],
)
def test_the_data_source_is_the_one_that_the_image_reads(
    harvester: bool, chosen: str, url: str, form: str, expected: str
) -> None:
    scope = scope_of(harvester=harvester, spec={"userDataSource": chosen}, format=form)
    image = Image(IMAGE.key, "talos", "lh", 1, url) if harvester else None
    assert data_source(scope, image) == expected


def test_harvester_gets_limits_and_plain_kubevirt_gets_data_volumes() -> None:
    spec = {
        "virtualMachineTemplate": vm_template(domain={"cpu": {"cores": 2, "sockets": 2}, "memory": {"guest": "8Gi"}}),
        "dataDisks": [{"name": "data", "size": "5Gi", "storageClassName": "fast"}],
    }
    on_harvester = render_vm(scope_of(spec=spec), Material(), "NoCloud")
    assert inner_of(on_harvester)["domain"]["resources"]["limits"] == {"cpu": "4", "memory": "8Gi"}
    assert claims_of(on_harvester)[0]["spec"]["storageClassName"] == "fast"
    plain = render_vm(scope_of(harvester=False, spec=spec), Material(), "ConfigDrive")
    assert "resources" not in inner_of(plain)["domain"]
    (volume,) = plain["spec"]["dataVolumeTemplates"]
    assert volume["metadata"]["name"] == "m1-data"
    assert "harvesterhci.io/volumeClaimTemplates" not in plain["metadata"]["annotations"]


def test_data_disks_come_after_the_volume_that_a_template_boots_from() -> None:
    template = vm_template(volumes=[{"name": "root", "containerDisk": {"image": "example.com/capk/ubuntu:v1.30.0"}}])
    spec = {"virtualMachineTemplate": template, "dataDisks": [{"name": "data", "size": "5Gi"}]}
    vm = render_vm(scope_of(harvester=False, spec=spec), Material(), "ConfigDrive")
    assert [each["name"] for each in inner_of(vm)["volumes"]] == ["root", "data", "cloudinitvolume"]
    assert [each["name"] for each in inner_of(vm)["domain"]["devices"]["disks"]] == ["root", "data", "cloudinitvolume"]


def test_an_image_needs_harvester() -> None:
    scope = scope_of(harvester=False, spec={"bootDisk": {"image": "x"}})
    with pytest.raises(Misconfigured, match="dataVolumeTemplates"):
        render_vm(scope, Material(), "ConfigDrive")


def test_a_template_tells_autoscalers_what_its_machines_have() -> None:
    from homeport.api.kubevirt.v1alpha1 import KubevirtMachineTemplate

    template = KubevirtMachineTemplate()
    template.spec.template.spec.virtual_machine_template.spec = vm_template(
        domain={"cpu": {"cores": 2, "sockets": 2}, "resources": {"requests": {"memory": "4Gi"}}}
    )["spec"]
    assert capacity_of(template) == {"cpu": "4", "memory": "4Gi"}
