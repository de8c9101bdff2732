"""A ProviderConfig's part for Nutanix and its Secret, in every spelling, become one site."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixMachineTemplate
from homeport.capi.platform import ClusterRequest, ExtraDisk, Origin, Shape
from homeport.infra.error import Misconfigured
from homeport.providers.nutanix.platform import PLATFORM
from homeport.providers.nutanix.site import NutanixSite, parse_address, read_site

ORIGIN = Origin("spec.nutanix", "Secret butler-system/nutanix-credentials", "spec.nutanix.prismCentral.insecure")
UUID = "00061f7f-0001-4a01-8001-7cc255860001"
OTHER = "00061f7f-0002-4a02-8002-7cc255860002"
GUIDE: dict[str, Any] = {
    "credentialsRef": {"name": "nutanix-credentials"},
    "prismCentral": {"address": "prism-central.example.com", "port": 9440, "insecure": False},
    "cluster": {"name": "cluster-01"},
    "subnet": {"name": "workload-subnet"},
    "image": {"name": "talos-1.9"},
}
UPSTREAM: dict[str, Any] = {
    "endpoint": "https://prism-central.example.com",
    "port": 9440,
    "clusterUUID": UUID,
    "subnetUUID": UUID,
    "imageUUID": UUID,
}
SECRET = {
    "NUTANIX_USER": "admin",
    "NUTANIX_PASSWORD": "your-password",
    "NUTANIX_ENDPOINT": "prism-central.example.com",
    "NUTANIX_PORT": "9440",
    "NUTANIX_INSECURE": "false",
}


def site(part: dict[str, Any], secret: dict[str, str] | None = None) -> NutanixSite:
    return read_site(part, SECRET if secret is None else secret, ORIGIN)


def test_the_guides_spelling_is_read() -> None:
    made = site(GUIDE)
    assert (made.address, made.port, made.insecure) == ("prism-central.example.com", 9440, False)
    assert made.cluster == {"type": "name", "name": "cluster-01"}
    assert made.subnets == [{"type": "name", "name": "workload-subnet"}]
    assert (made.image, made.server) == ("talos-1.9", "Prism Central prism-central.example.com:9440")
    assert (made.credentials.username, made.credentials.password) == ("admin", "your-password")


def test_upstreams_spelling_means_the_same() -> None:
    made = site(UPSTREAM, {"username": "admin", "password": "your-password"})
    assert (made.address, made.port, made.insecure) == ("prism-central.example.com", 9440, False)
    assert made.cluster == {"type": "uuid", "uuid": UUID} == made.image_ref
    assert made.credentials.username == "admin"


def test_the_secret_fills_in_what_the_part_leaves_out() -> None:
    part = {name: GUIDE[name] for name in ("cluster", "subnet")}
    secret = SECRET | {
        "NUTANIX_ENDPOINT": "https://pc.example.com:9441/",
        "NUTANIX_PORT": "",
        "NUTANIX_INSECURE": "True",
    }
    made = site(part, secret)
    assert (made.address, made.port, made.insecure, made.image) == ("pc.example.com", 9441, True, "")


def test_the_part_wins_over_the_secret() -> None:
    made = site(
        GUIDE, SECRET | {"NUTANIX_ENDPOINT": "other.example.com", "NUTANIX_PORT": "1", "NUTANIX_INSECURE": "true"}
    )
    assert (made.address, made.port, made.insecure) == ("prism-central.example.com", 9440, False)


def test_a_uuid_wins_over_the_name_beside_it() -> None:
    made = site(GUIDE | {"cluster": {"name": "cluster-01", "uuid": UUID}})
    assert made.cluster == {"type": "uuid", "uuid": UUID}


@pytest.mark.parametrize("key", ["ca.pem", "ca.crt"])
def test_a_certificate_authority_is_read_from_the_secret(key: str) -> None:
    assert site(GUIDE, SECRET | {key: "PEM"}).bundle == "PEM"


def test_credentials_of_cluster_api_and_api_keys_work_as_well() -> None:
    listed = [{"type": "basic_auth", "data": {"prismCentral": {"username": "u", "password": "p"}}}]
    assert site(GUIDE, {"credentials": json.dumps(listed)}).credentials.username == "u"
    assert site(GUIDE, {"NUTANIX_API_KEY": "k"}).credentials.api_key == "k"


REFUSED: dict[str, tuple[dict[str, Any], dict[str, str], list[str]]] = {
    "no cluster": (
        {name: value for name, value in GUIDE.items() if name != "cluster"},
        SECRET,
        ["spec.nutanix.cluster: name the cluster", "cluster.name or cluster.uuid"],
    ),
    "no subnet": ({**GUIDE, "subnet": {}}, SECRET, ["spec.nutanix.subnet: name the subnet"]),
    "a placeholder": (
        {**GUIDE, "cluster": {"uuid": "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"}},
        SECRET,
        ["spec.nutanix.cluster.uuid", "is not a valid UUID"],
    ),
    "two addresses": (
        {**GUIDE, "endpoint": "https://other.example.com"},
        SECRET,
        ["spec.nutanix.endpoint: contradicts prismCentral.address"],
    ),
    "two ports": ({**GUIDE, "port": 9441}, SECRET, ["spec.nutanix.port: contradicts prismCentral.port"]),
    "two clusters": (
        {**GUIDE, "cluster": {"uuid": UUID}, "clusterUUID": OTHER},
        SECRET,
        ["spec.nutanix.clusterUUID: contradicts cluster.uuid"],
    ),
    "plain HTTP": (
        {**GUIDE, "prismCentral": {"address": "http://pc.example.com"}},
        SECRET,
        ["spec.nutanix.prismCentral.address", "serves HTTPS only: write https://pc.example.com"],
    ),
    "no address at all": (
        {name: value for name, value in GUIDE.items() if name != "prismCentral"},
        {"username": "u", "password": "your-password"},
        ["spec.nutanix.prismCentral.address", "has no key NUTANIX_ENDPOINT"],
    ),
    "no password": (GUIDE, {"NUTANIX_USER": "admin"}, ["nutanix-credentials has no key NUTANIX_PASSWORD"]),
    "two passwords": (
        GUIDE,
        SECRET | {"password": "another-one"},
        ["the keys password and NUTANIX_PASSWORD have different values"],
    ),
    "insecure is a word": (
        {name: value for name, value in GUIDE.items() if name != "prismCentral"},
        SECRET | {"NUTANIX_INSECURE": "maybe"},
        ["key NUTANIX_INSECURE: must be true or false"],
    ),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_can_not_be_used_is_named_and_no_secret_is_shown(case: str) -> None:
    part, secret, words = REFUSED[case]
    with pytest.raises(Misconfigured) as error:
        site(part, secret)
    assert [word for word in words if word not in error.value.message] == []
    assert not [value for name, value in secret.items() if "PASS" in name.upper() and value in error.value.message]


def test_all_faults_are_reported_at_once() -> None:
    found = PLATFORM.faults({"prismCentral": {"address": "not a host", "port": 0}})
    assert {each.field for each in found} == {"prismCentral.address", "prismCentral.port", "cluster", "subnet"}
    assert not PLATFORM.faults(GUIDE)
    assert not PLATFORM.faults(UPSTREAM)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("pc.example.com", "pc.example.com", 0),
        ("pc.example.com:9441", "pc.example.com", 9441),
        ("https://10.0.0.1:9440/", "10.0.0.1", 9440),
        ("[fd00::1]:9440", "fd00::1", 9440),
        ("fd00::1", "fd00::1", 0),
    ],
)
def test_addresses_are_read_as_people_write_them(text: str, host: str, port: int) -> None:
    assert parse_address(text) == (host, port)


# -- Cluster API objects ---------------------------------------------------------------------------------------------


def test_a_cluster_gets_a_secret_and_a_nutanix_cluster() -> None:
    request = ClusterRequest(name="one", namespace="one-1234", endpoint=("10.0.0.9", 6443), labels={"a": "b"})
    secret, infra = PLATFORM.cluster_objects(site(GUIDE, SECRET | {"ca.pem": "PEM"}), request)
    assert json.loads(secret["stringData"]["credentials"])[0]["data"]["prismCentral"]["password"] == "your-password"
    made = msgspec.convert(infra, NutanixCluster)
    assert made.spec.prism_central is not None
    assert made.spec.prism_central.credential_ref is not None
    assert made.spec.prism_central.credential_ref.name == secret["metadata"]["name"]
    assert made.spec.prism_central.additional_trust_bundle is not None
    assert (made.spec.control_plane_endpoint.host, made.spec.control_plane_endpoint.port) == ("10.0.0.9", 6443)
    assert infra["metadata"]["labels"] == {"a": "b", "cluster.x-k8s.io/cluster-name": "one"}


def test_without_an_endpoint_the_control_plane_supplies_it() -> None:
    infra = PLATFORM.cluster_objects(site(GUIDE), ClusterRequest(name="one", namespace="x"))[-1]
    assert "controlPlaneEndpoint" not in infra["spec"]


def test_a_machine_template_has_the_shape() -> None:
    shape = Shape(cpu=4, memory="8Gi", disk="40Gi", image=UUID, extra_disks=(ExtraDisk("20Gi", "gold"),))
    template = PLATFORM.machine_template(site(GUIDE), shape)
    spec = msgspec.convert(template, NutanixMachineTemplate).spec.template.spec
    assert (spec.vcpu_sockets, spec.memory_size, spec.system_disk_size) == (4, "8Gi", "40Gi")
    assert spec.image is not None
    assert spec.image.uuid == UUID
    assert spec.data_disks[0].storage_config is not None
    assert spec.data_disks[0].storage_config.storage_container is not None
    assert spec.data_disks[0].storage_config.storage_container.name == "gold"
    same = PLATFORM.machine_template(site(GUIDE), Shape(cpu=4, memory="8Gi", disk="40Gi"))
    assert same["spec"]["template"]["spec"]["image"] == {"type": "name", "name": "talos-1.9"}
