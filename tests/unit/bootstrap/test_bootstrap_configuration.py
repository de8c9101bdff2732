from __future__ import annotations

import pytest

from homeport.bootstrap.kubeadm.configuration import (
    Api,
    UnsupportedVersion,
    cluster_configuration,
    go_duration,
    init_configuration,
    join_configuration,
    kubeadm_api,
)
from homeport.capi.version import parse
from unit.bootstrap.example import CLUSTER, INIT, JOIN, facts, init_documents, join_documents


@pytest.mark.parametrize(
    ("version", "api"),
    [
        ("v1.22.0", "v1beta3"),
        ("v1.30.14", "v1beta3"),
        ("v1.31.0-alpha.1", "v1beta4"),
        ("v1.31.0", "v1beta4"),
        ("v1.37.1", "v1beta4"),
    ],
)
def test_each_version_gets_the_configuration_that_its_kubeadm_reads(version: str, api: str) -> None:
    assert kubeadm_api(parse(version)) == api


def test_a_version_before_1_22_is_refused() -> None:
    with pytest.raises(UnsupportedVersion, match=r"v1\.21\.9 is too old"):
        kubeadm_api(parse("v1.21.9"))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (30, "30s"), (300, "5m0s"), (3661, "1h1m1s"), (86_400 * 365, "8760h0m0s"), (-90, "-1m30s")],
)
def test_durations_look_as_go_writes_them(seconds: int, text: str) -> None:
    assert go_duration(seconds) == text


def test_v1beta4_has_lists_of_arguments_timeouts_and_periods() -> None:
    cluster, init = init_documents("v1.33.0")
    assert cluster["apiServer"]["extraArgs"] == [{"name": "cloud-provider", "value": "external"}]
    assert cluster["apiServer"]["extraEnvs"] == [{"name": "HTTP_PROXY", "value": "http://proxy"}]
    assert "timeoutForControlPlane" not in cluster["apiServer"]
    assert cluster["certificateValidityPeriod"] == "8760h0m0s"
    assert cluster["caCertificateValidityPeriod"] == "87600h0m0s"
    assert cluster["encryptionAlgorithm"] == "ECDSA-P256"
    assert init["nodeRegistration"]["imagePullSerial"] is True
    assert init["bootstrapTokens"][0]["ttl"] == "1h0m0s"
    assert init["timeouts"] == {
        "controlPlaneComponentHealthCheck": "5m0s",
        "kubeletHealthCheck": "4m0s",
        "kubernetesAPICall": "1m30s",
        "etcdAPICall": "2m0s",
        "tlsBootstrap": "5m30s",
        "discovery": "1m0s",
    }


def test_v1beta3_has_maps_of_arguments_and_its_timeouts_elsewhere() -> None:
    cluster, init = init_documents("v1.30.0")
    assert cluster["apiServer"]["extraArgs"] == {"cloud-provider": "external"}
    assert cluster["apiServer"]["timeoutForControlPlane"] == "5m0s"
    assert cluster["etcd"]["local"]["extraArgs"] == {"quota-backend-bytes": "8589934592"}
    for gone in ("encryptionAlgorithm", "certificateValidityPeriod", "caCertificateValidityPeriod"):
        assert gone not in cluster
    assert "extraEnvs" not in cluster["apiServer"]
    assert "extraEnvs" not in cluster["etcd"]["local"]
    assert init["nodeRegistration"]["kubeletExtraArgs"] == {"cloud-provider": "external"}
    assert "imagePullSerial" not in init["nodeRegistration"]
    assert "timeouts" not in init
    (join,) = join_documents("v1.30.0")
    assert join["discovery"]["timeout"] == "5m30s"


def test_the_cluster_tells_what_the_config_does_not_know() -> None:
    cluster, _ = init_documents("v1.33.0")
    assert cluster["clusterName"] == "one"
    assert cluster["kubernetesVersion"] == "v1.33.0"
    assert cluster["controlPlaneEndpoint"] == "10.1.2.3:6443"
    assert cluster["networking"] == {
        "dnsDomain": "a.local",
        "podSubnet": "10.0.0.0/16,fd00::/48",
        "serviceSubnet": "10.96.0.0/12,fd01::/112",
    }


def test_an_endpoint_of_the_user_wins() -> None:
    made = cluster_configuration({"controlPlaneEndpoint": "mine:6443"}, {}, facts("v1.33.0"), "v1beta4")
    assert made["controlPlaneEndpoint"] == "mine:6443"


@pytest.mark.parametrize("api", ["v1beta3", "v1beta4"])
def test_an_empty_list_of_taints_is_said_and_no_list_is_not(api: Api) -> None:
    assert init_configuration({"nodeRegistration": {"taints": []}}, api)["nodeRegistration"] == {"taints": []}
    assert "nodeRegistration" not in init_configuration({"nodeRegistration": {}}, api)


def test_an_argument_without_a_value_is_an_empty_one() -> None:
    given = {"scheduler": {"extraArgs": [{"name": "a", "value": ""}, {"name": "b"}]}}
    assert cluster_configuration(given, {}, facts("v1.33.0"), "v1beta4")["scheduler"]["extraArgs"] == [
        {"name": "a", "value": ""},
        {"name": "b", "value": ""},
    ]
    assert cluster_configuration(given, {}, facts("v1.29.0"), "v1beta3")["scheduler"]["extraArgs"] == {"a": "", "b": ""}


def test_an_external_etcd_is_passed_on_whole() -> None:
    external = {"endpoints": ["https://a:2379"], "caFile": "/a", "certFile": "/b", "keyFile": "/c"}
    made = cluster_configuration({"etcd": {"external": external}}, {}, facts("v1.33.0"), "v1beta4")
    assert made["etcd"] == {"external": external}


def test_the_content_of_a_discovery_file_is_not_kubeadms() -> None:
    file = {"kubeConfigPath": "/a", "kubeConfig": {"user": {"exec": {"command": "x"}}}}
    assert join_configuration({"discovery": {"file": file}}, "v1beta4")["discovery"] == {
        "file": {"kubeConfigPath": "/a"}
    }


def test_what_was_given_is_not_changed() -> None:
    before = repr((CLUSTER, INIT, JOIN))
    init_documents("v1.30.0")
    join_documents("v1.30.0")
    assert repr((CLUSTER, INIT, JOIN)) == before
