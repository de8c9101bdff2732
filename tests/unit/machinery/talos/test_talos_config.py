"""Machine configuration of Talos, field by field."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest

from homeport.machinery import yaml
from homeport.machinery.talos.config import ClusterShape, ConfigError, Patch
from homeport.machinery.talos.vip import VirtualAddress, default_interface
from unit.machinery.talos.talos_kit import bundle, document, needs_reference, schema_errors, shape

VIP = VirtualAddress("10.40.0.200", "ens3")


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def test_a_control_plane_has_all_keys_of_the_cluster() -> None:
    made, secrets = document("controlplane"), bundle()
    assert made["version"] == "v1alpha1"
    assert made["machine"]["type"] == "controlplane"
    assert made["machine"]["token"] == secrets.trustd_token
    assert made["machine"]["ca"] == {"crt": b64(secrets.os.certificate), "key": b64(secrets.os.key)}
    cluster = made["cluster"]
    assert cluster["ca"] == {"crt": b64(secrets.kubernetes.certificate), "key": b64(secrets.kubernetes.key)}
    assert cluster["aggregatorCA"]["key"] == b64(secrets.aggregator.key)
    assert cluster["etcd"]["ca"]["key"] == b64(secrets.etcd.key)
    assert cluster["serviceAccount"] == {"key": b64(secrets.service_account)}
    assert cluster["secretboxEncryptionSecret"] == secrets.secretbox_key
    assert (cluster["id"], cluster["secret"]) == (secrets.cluster_id, secrets.cluster_secret)
    assert cluster["token"] == secrets.bootstrap_token
    assert cluster["discovery"] == {"enabled": False}


def test_a_worker_gets_no_private_key() -> None:
    made = document("worker")
    assert made["machine"]["type"] == "worker"
    assert made["machine"]["ca"] == {"crt": b64(bundle().os.certificate), "key": ""}
    assert made["cluster"]["ca"] == {"crt": b64(bundle().kubernetes.certificate), "key": ""}
    for secret in ("aggregatorCA", "serviceAccount", "etcd", "secretboxEncryptionSecret", "apiServer"):
        assert secret not in made["cluster"]
    assert b64(bundle().os.key) not in orjson.dumps(made).decode()


def test_the_versions_and_the_network_are_those_of_the_cluster() -> None:
    made = document("controlplane", shape(pod_subnets=("10.1.0.0/16",), service_subnets=("10.2.0.0/16",)))
    assert made["machine"]["kubelet"]["image"].endswith(":v1.32.4")
    assert made["cluster"]["apiServer"]["image"].endswith(":v1.32.4")
    assert made["cluster"]["controlPlane"] == {"endpoint": "https://10.40.0.200:6443"}
    network = made["cluster"]["network"]
    assert (network["podSubnets"], network["serviceSubnets"]) == (["10.1.0.0/16"], ["10.2.0.0/16"])
    assert network["cni"] == {"name": "none"}
    assert made["cluster"]["proxy"] == {"disabled": True}
    assert made["machine"]["network"]["hostname"] == "mgmt-cp-0"


def test_an_ipv6_endpoint_is_a_valid_url() -> None:
    assert document("worker", shape(endpoint="fd00::1"))["cluster"]["controlPlane"] == {
        "endpoint": "https://[fd00::1]:6443"
    }


def test_certificates_are_good_for_the_endpoint_and_each_control_plane_once() -> None:
    made = document("controlplane", shape(cert_sans=("10.40.0.11", "10.40.0.200", "10.40.0.12")))
    wanted = ["10.40.0.200", "10.40.0.11", "10.40.0.12"]
    assert made["machine"]["certSANs"] == wanted
    assert made["cluster"]["apiServer"]["certSANs"] == wanted


def test_pods_run_on_control_planes_where_there_are_no_workers() -> None:
    label = "node.kubernetes.io/exclude-from-external-load-balancers"
    alone = document("controlplane", shape(pods_on_control_planes=True))
    assert alone["cluster"]["allowSchedulingOnControlPlanes"] is True
    assert label not in alone["machine"].get("nodeLabels", {})
    with_workers = document("controlplane")
    assert "allowSchedulingOnControlPlanes" not in with_workers["cluster"]
    assert label in with_workers["machine"]["nodeLabels"]


def test_kube_vip_is_a_daemon_set_that_reaches_the_api_without_services() -> None:
    made = document("controlplane", shape(vip=VIP))
    (manifest,) = made["cluster"]["inlineManifests"]
    objects = {each["kind"]: each for each in yaml.load_all(manifest["contents"])}
    assert set(objects) == {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "DaemonSet"}
    pod = objects["DaemonSet"]["spec"]["template"]["spec"]
    env = {each["name"]: each["value"] for each in pod["containers"][0]["env"]}
    assert (env["address"], env["vip_interface"], env["port"]) == ("10.40.0.200", "ens3", "6443")
    assert (env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"]) == ("localhost", "7445")
    assert pod["hostNetwork"] is True
    assert "interfaces" not in made["machine"]["network"]


def test_talos_holds_the_address_itself_when_asked() -> None:
    made = document("controlplane", shape(vip=VirtualAddress("10.40.0.200", "enp1s0", "talos")))
    assert made["machine"]["network"]["interfaces"] == [
        {"interface": "enp1s0", "dhcp": True, "vip": {"ip": "10.40.0.200"}}
    ]
    assert "inlineManifests" not in made["cluster"]


def test_a_worker_never_holds_the_virtual_address() -> None:
    for holder in ("kube-vip", "talos"):
        made = document("worker", shape(vip=VirtualAddress("10.40.0.200", "eth0", holder)))
        assert "10.40.0.200" not in orjson.dumps(made["machine"]).decode()
        assert "inlineManifests" not in made["cluster"]


@pytest.mark.parametrize(
    ("provider", "interface"),
    [("nutanix", "ens3"), ("harvester", "enp1s0"), ("proxmox", "eth0"), ("gcp", "ens4"), ("other", "eth0")],
)
def test_each_hypervisor_has_its_interface(provider: str, interface: str) -> None:
    assert default_interface(provider) == interface


def test_patches_of_the_user_are_applied_in_order() -> None:
    made = document(
        "controlplane",
        shape(
            patches=(
                Patch("add", "/machine/sysctls", "{net.core.somaxconn: '65535'}"),
                Patch("replace", "/machine/install/wipe", "true"),
                Patch("remove", "/cluster/apiServer/auditPolicy"),
            )
        ),
    )
    assert made["machine"]["sysctls"] == {"net.core.somaxconn": "65535"}
    assert made["machine"]["install"]["wipe"] is True
    assert "auditPolicy" not in made["cluster"]["apiServer"]


@pytest.mark.parametrize("patch", [Patch("remove", "/machine/nothing"), Patch("add", "/machine/env", "{a: [")])
def test_a_patch_that_does_not_apply_is_named(patch: Patch) -> None:
    given = shape(patches=(Patch("remove", "/machine/install"), patch))
    with pytest.raises(ConfigError, match=r"talos.configPatches\[1\] \(\w+ /machine/\w+\) can't be applied"):
        document("controlplane", given)


SHAPES: list[ClusterShape] = [
    shape(),
    shape(vip=VIP, pods_on_control_planes=True, cert_sans=("10.40.0.11",), time_servers=("pool.ntp.org",)),
    shape(vip=VirtualAddress("10.40.0.200", "ens3", "talos"), cni="flannel", kube_proxy=True),
]


def drop_deprecated(made: dict[str, Any]) -> None:
    """Fields that Talos 1.13 still reads, though its schema no longer lists them."""
    for field in ("network", "time"):
        made["machine"].pop(field, None)
    for field in ("rbac", "stableHostname", "apidCheckExtKeyUsage"):
        made["machine"]["features"].pop(field)
    made["cluster"].get("apiServer", {}).pop("disablePodSecurityPolicy", None)


@needs_reference
@pytest.mark.parametrize("release", ["v1.9", "v1.13"])
@pytest.mark.parametrize("role", ["controlplane", "worker"])
@pytest.mark.parametrize("cluster", SHAPES)
def test_talos_own_schema_accepts_the_configuration(release: str, role: Any, cluster: ClusterShape) -> None:
    made = document(role, cluster)
    if release == "v1.13":
        drop_deprecated(made)
    assert schema_errors(release, made) == []
