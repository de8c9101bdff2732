"""The objects of a control plane."""

from __future__ import annotations

import base64
import shlex
from typing import Any

import pytest

from homeport.capi.remote.pki import KeyPair
from homeport.hosted.endpoint import Endpoint
from homeport.hosted.k0smotron.pod.config import (
    KINE_PLACEHOLDER,
    dynamic_spec,
    render_config,
    render_config_map,
    static_digest,
)
from homeport.hosted.k0smotron.pod.entrypoint import render_entrypoint, render_script
from homeport.hosted.k0smotron.pod.etcd import plan_members, render_defrag, render_etcd, render_etcd_service
from homeport.hosted.k0smotron.pod.ingress import (
    render_ingress,
    render_ingress_certificates,
    render_ingress_manifests,
)
from homeport.hosted.k0smotron.pod.monitoring import render_monitoring
from homeport.hosted.k0smotron.pod.patch import PatchFailed, apply_patches
from homeport.hosted.k0smotron.pod.service import endpoint_of, render_endpoint_manifest, render_service
from homeport.hosted.k0smotron.pod.statefulset import render_statefulset
from homeport.hosted.k0smotron.pod.subject import Subject
from homeport.machinery import yaml
from present import present
from unit.hosted.k0smotron.k0smotron_subject import OWNER, subject

Json = dict[str, Any]
INGRESS = {"apiHost": "api.edge.example", "konnectivityHost": "kon.edge.example", "deploy": True}

# Facts of k0s' own definition of a ClusterConfig: the type of each field that we write.
K0S_FIELDS: dict[str, Any] = {
    "api": {"address": str, "externalAddress": str, "extraArgs": dict, "port": int, "sans": list},
    "konnectivity": {"adminPort": int, "agentPort": int, "externalAddress": str},
    "storage": {
        "type": str,
        "etcd": {
            "externalCluster": {
                "endpoints": list,
                "etcdPrefix": str,
                "caFile": str,
                "clientCertFile": str,
                "clientKeyFile": str,
            },
        },
        "kine": {"dataSource": str},
    },
    "network": {"podCIDR": str, "serviceCIDR": str, "clusterDomain": str, "provider": str},
}


def check_fields(found: Json, known: Json, path: str = "spec") -> None:
    for name, value in found.items():
        assert name in known, f"k0s does not know {path}.{name}"
        if isinstance(known[name], dict):
            check_fields(value, known[name], f"{path}.{name}")
        else:
            assert isinstance(value, known[name]), f"{path}.{name}"


def pod(statefulset: Json) -> Json:
    found: Json = statefulset["spec"]["template"]["spec"]
    return found


def mounts(container: Json) -> dict[str, Json]:
    return {each["mountPath"]: each for each in container["volumeMounts"]}


# -- k0s.yaml ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"storage": {"type": "kine", "kine": {"dataSourceURL": "postgres://db"}}},
        {"storage": {"type": "nats"}, "replicas": 3},
        {"ingress": INGRESS},
        {"k0sConfig": {"spec": {"network": {"podCIDR": "10.1.0.0/16", "provider": "calico"}}}},
    ],
)
def test_a_configuration_has_only_fields_that_k0s_knows(spec: Json) -> None:
    config = render_config(subject(**spec), "192.0.2.7", ["10.96.4.4"])
    assert (config["apiVersion"], config["kind"]) == ("k0s.k0sproject.io/v1beta1", "ClusterConfig")
    check_fields(config["spec"], K0S_FIELDS)


def test_a_configuration_says_where_the_control_plane_is_reached_and_where_its_objects_are() -> None:
    spec = render_config(subject(service={"type": "LoadBalancer", "apiPort": 6443}), "192.0.2.7", ["10.96.4.4"])["spec"]
    assert spec["api"]["port"] == 6443
    assert spec["api"]["externalAddress"] == "192.0.2.7"
    assert spec["api"]["sans"] == [
        "10.96.4.4",
        "192.0.2.7",
        "kmc-edge-lb",
        "kmc-edge-lb.tenants",
        "kmc-edge-lb.tenants.svc",
        "kmc-edge-lb.tenants.svc.cluster.local",
    ]
    assert spec["konnectivity"] == {"agentPort": 30132}
    external = spec["storage"]["etcd"]["externalCluster"]
    assert external["endpoints"] == ["https://kmc-edge-etcd:2379"]
    assert external["etcdPrefix"] == "edge"
    assert external["clientKeyFile"] == "/var/lib/k0s/pki/apiserver-etcd-client.key"


def test_what_the_user_wrote_is_kept_beside_it() -> None:
    own = {
        "metadata": {"name": "k0s"},
        "spec": {
            "api": {"sans": ["api.example.com"], "extraArgs": {"audit-log-path": "-"}, "port": 1},
            "storage": {"type": "etcd", "etcd": {"peerAddress": "10.0.0.1"}},
            "extensions": {"helm": {"charts": []}},
        },
    }
    written = subject(k0sConfig=own)
    config = render_config(written, "192.0.2.7")
    assert "api.example.com" in config["spec"]["api"]["sans"]
    assert config["spec"]["api"]["extraArgs"] == {"audit-log-path": "-"}
    assert config["spec"]["api"]["port"] == 30443
    assert "peerAddress" not in config["spec"]["storage"]["etcd"]
    assert config["spec"]["extensions"] == {"helm": {"charts": []}}
    assert config["metadata"] == {"name": "k0s"}
    assert present(written.spec.k0s_config)["spec"]["api"]["port"] == 1  # what is in the cache stays as it is


def test_with_a_load_balancer_on_the_nodes_k0s_gets_no_external_address() -> None:
    own = {"spec": {"network": {"nodeLocalLoadBalancing": {"enabled": True}}}}
    assert "externalAddress" not in render_config(subject(k0sConfig=own), "192.0.2.7")["spec"]["api"]


def test_pods_are_replaced_for_what_k0s_reads_only_at_its_start() -> None:
    plain = render_config(subject(), "192.0.2.7")
    network = render_config(subject(k0sConfig={"spec": {"network": {"provider": "calico"}}}), "192.0.2.7")
    assert static_digest(plain) == static_digest(network)
    assert dynamic_spec(network) == {"network": {"provider": "calico"}}
    assert static_digest(plain) != static_digest(render_config(subject(), "192.0.2.8"))


def test_a_config_map_holds_the_configuration_as_text() -> None:
    config = render_config(subject(), "192.0.2.7")
    made = render_config_map(subject(), config)
    assert made["metadata"]["name"] == "kmc-edge-config"
    assert yaml.load(made["data"]["K0SMOTRON_K0S_YAML"]) == config


def test_the_url_of_a_database_is_no_part_of_a_config_map() -> None:
    secret = subject(storage={"type": "kine", "kine": {"dataSourceSecretName": "db"}})
    assert render_config(secret, "a")["spec"]["storage"]["kine"] == {"dataSource": KINE_PLACEHOLDER}
    script = render_script(secret)
    assert "--config=/run/k0smotron/k0s.yaml" in script
    assert KINE_PLACEHOLDER in script
    container = pod(render_statefulset(secret, "x"))["containers"][0]
    assert container["envFrom"] == [{"secretRef": {"name": "db"}}]


# -- the start -----------------------------------------------------------------------------------------------------


def flags(of: Subject) -> list[str]:
    last = render_script(of).strip().splitlines()[-1]
    words = shlex.split(last)
    assert words[:3] == ["exec", "k0s", "controller"]
    return words[3:]


def test_the_last_line_of_the_entrypoint_starts_k0s_with_all_flags() -> None:
    assert flags(subject()) == ["--config=/etc/k0s/k0s.yaml", "--enable-dynamic-config"]
    own = subject(controlPlaneFlags=["--enable-metrics-scraper", "--labels=a=b c"], ingress=INGRESS)
    assert flags(own) == [
        "--enable-metrics-scraper",
        "--labels=a=b c",
        "--config=/etc/k0s/k0s.yaml",
        "--enable-dynamic-config",
        "--disable-components=endpoint-reconciler",
    ]
    assert flags(subject(controlPlaneFlags=["--config=/a", "--enable-dynamic-config=false"])) == [
        "--config=/a",
        "--enable-dynamic-config=false",
    ]
    assert render_entrypoint(subject())["metadata"]["name"] == "kmc-entrypoint-edge-config"


# -- Service -------------------------------------------------------------------------------------------------------


def test_a_service_has_the_ports_of_the_api_and_of_konnectivity() -> None:
    made = render_service(subject(service={"type": "NodePort"}))
    assert made["metadata"]["name"] == "kmc-edge-nodeport"
    assert [(p["name"], p["port"], p["nodePort"]) for p in made["spec"]["ports"]] == [
        ("api", 30443, 30443),
        ("konnectivity", 30132, 30132),
    ]
    assert (
        made["spec"]["selector"].items()
        <= render_statefulset(subject(), "")["spec"]["template"]["metadata"]["labels"].items()
    )
    assert made["metadata"]["ownerReferences"] == [OWNER]


def test_a_service_has_what_only_v1beta1_can_say() -> None:
    prefix = "k0smotron.io/conversion-dropped-service."
    kept = {
        prefix + "labels": '{"zone":"dmz"}',
        prefix + "annotations": '{"lb":"internal"}',
        prefix + "externalTrafficPolicy": '"Local"',
        prefix + "loadBalancerClass": '"metal"',
    }
    made = render_service(subject(service={"type": "LoadBalancer"}, annotations=kept))
    assert made["metadata"]["labels"]["zone"] == "dmz"
    assert made["metadata"]["annotations"] == {"lb": "internal"}
    assert (made["spec"]["externalTrafficPolicy"], made["spec"]["loadBalancerClass"]) == ("Local", "metal")


BALANCED: Json = {
    "spec": {"clusterIP": "10.96.4.4", "ports": [{"name": "api", "port": 6443, "nodePort": 30443}]},
    "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}},
}


@pytest.mark.parametrize(
    ("spec", "type_", "endpoint"),
    [
        ({"service": {"type": "ClusterIP"}}, "ClusterIP", Endpoint("10.96.4.4", 6443)),
        ({"service": {"type": "LoadBalancer"}}, "LoadBalancer", Endpoint("192.0.2.9", 6443)),
        ({"service": {"type": "NodePort"}}, "NodePort", Endpoint("192.0.2.3", 30443)),
        (
            {"service": {"type": "LoadBalancer"}, "externalAddress": "api.example.com"},
            "LoadBalancer",
            Endpoint("api.example.com", 6443),
        ),
        ({"ingress": INGRESS}, "ClusterIP", Endpoint("api.edge.example", 443)),
    ],
)
def test_the_endpoint_is_what_the_service_gives(spec: Json, type_: str, endpoint: Endpoint) -> None:
    service = {**BALANCED, "spec": {**BALANCED["spec"], "type": type_}}
    assert endpoint_of(subject(**spec), service, "192.0.2.3") == endpoint


def test_the_cluster_itself_learns_the_endpoint() -> None:
    made = render_endpoint_manifest(subject(), Endpoint("192.0.2.9", 6443))
    inner = yaml.load(made["data"]["endpoint.yaml"])
    assert inner["metadata"] == {"name": "control-plane-endpoint", "namespace": "kube-system"}
    assert inner["data"] == {"apiServerHost": "192.0.2.9", "apiServerPort": "6443"}


# -- etcd ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "members", "ready", "planned"),
    [
        (1, None, 0, 1),
        (3, None, 0, 1),
        (3, 1, 0, 1),
        (3, 1, 1, 2),
        (3, 2, 1, 2),
        (3, 2, 2, 3),
        (3, 3, 3, 3),
        (5, 3, 3, 3),
        (2, 1, 1, 2),
        (1, 3, 3, 3),
        (1, 2, 2, 2),
        (0, 1, 1, 1),
    ],
)
def test_etcd_grows_one_ready_member_at_a_time_and_never_shrinks(
    replicas: int, members: int | None, ready: int, planned: int
) -> None:
    assert plan_members(replicas, members, ready) == planned


def test_growing_changes_nothing_but_the_number_of_members() -> None:
    one, three = render_etcd(subject(), 1), render_etcd(subject(), 3)
    assert one["spec"]["template"] == three["spec"]["template"]
    assert (one["spec"]["replicas"], three["spec"]["replicas"]) == (1, 3)


def test_etcd_is_configured_by_its_environment() -> None:
    made = render_etcd(subject(storage={"etcd": {"args": ["--quota-backend-bytes=1"], "image": "e:v3"}}), 1)
    container = pod(made)["containers"][0]
    env = {each["name"]: each.get("value") for each in container["env"]}
    assert env["ETCD_DATA_DIR"] == "/var/lib/k0s/etcd"
    assert env["ETCD_CLIENT_CERT_AUTH"] == "true"
    assert env["ETCD_INITIAL_CLUSTER"] == "$(ETCD_NAME)=https://$(ETCD_NAME).$(SERVICE):2380"
    assert container["command"][-1].endswith("exec etcd --quota-backend-bytes=1")
    files = {
        item["path"] for source in pod(made)["volumes"][0]["projected"]["sources"] for item in source["secret"]["items"]
    }
    assert files == {"ca.crt", "server.crt", "server.key", "peer.crt", "peer.key"}
    assert made["spec"]["serviceName"] == render_etcd_service(subject())["metadata"]["name"] == "kmc-edge-etcd"
    assert made["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"] == {"storage": "1Gi"}


def test_the_job_of_etcd_is_no_member_of_its_service() -> None:
    job = render_defrag(subject(storage={"etcd": {"defragJob": {"enabled": True, "rule": "dbSize > 1"}}}))
    template = job["spec"]["jobTemplate"]["spec"]["template"]
    selector = render_etcd_service(subject())["spec"]["selector"]
    assert not selector.items() <= template["metadata"]["labels"].items()
    assert "--defrag-rule=dbSize > 1" in template["spec"]["containers"][0]["args"]


# -- Pods ----------------------------------------------------------------------------------------------------------


def test_a_pod_runs_k0s_with_its_files() -> None:
    made = render_statefulset(subject(), "digest")
    [container] = pod(made)["containers"]
    assert container["image"] == "quay.io/k0sproject/k0s:v1.34.1-k0s.0"
    assert container["command"] == ["/bin/sh", "/k0smotron-entrypoint.sh"]
    found = mounts(container)
    assert found["/k0smotron-entrypoint.sh"]["subPath"] == "k0smotron-entrypoint.sh"
    assert found["/etc/k0s/k0s.yaml"]["subPath"] == "K0SMOTRON_K0S_YAML"
    assert "/var/lib/k0s" in found
    assert found["/var/lib/k0s/manifests/kmc-edge-endpoint"]["readOnly"]
    volumes = {each["name"] for each in pod(made)["volumes"]}
    assert {each["name"] for each in container["volumeMounts"]} <= volumes
    assert made["spec"]["selector"]["matchLabels"].items() <= made["spec"]["template"]["metadata"]["labels"].items()
    assert (
        made["metadata"]["labels"] | {"app": "k0smotron", "cluster": "edge", "team": "a"} == made["metadata"]["labels"]
    )
    assert "team" not in made["spec"]["selector"]["matchLabels"]


def certificates(made: Json) -> dict[str, str]:
    [volume] = [each for each in pod(made)["volumes"] if each["name"] == "certs"]
    return {
        item["path"]: source["secret"]["name"]
        for source in volume["projected"]["sources"]
        for item in source["secret"]["items"]
    }


def test_certificates_are_copied_to_where_k0s_looks_for_them() -> None:
    made = render_statefulset(subject(), "")
    assert certificates(made) == {
        "ca.crt": "edge-ca",
        "ca.key": "edge-ca",
        "sa.pub": "edge-sa",
        "sa.key": "edge-sa",
        "front-proxy-ca.crt": "edge-proxy",
        "front-proxy-ca.key": "edge-proxy",
        "etcd-ca.crt": "edge-etcd",
        "etcd-ca.key": "edge-etcd",
        "apiserver-etcd-client.crt": "edge-apiserver-etcd-client",
        "apiserver-etcd-client.key": "edge-apiserver-etcd-client",
    }
    [init] = pod(made)["initContainers"]
    assert set(mounts(init)) == {"/certs-init", "/var/lib/k0s"}


def test_certificates_of_the_user_take_the_place_of_generated_ones() -> None:
    made = render_statefulset(subject(certificateRefs=[{"type": "ca", "name": "mine"}], storage={"type": "nats"}), "")
    assert certificates(made) == {
        "ca.crt": "mine",
        "ca.key": "mine",
        "sa.pub": "edge-sa",
        "sa.key": "edge-sa",
        "front-proxy-ca.crt": "edge-proxy",
        "front-proxy-ca.key": "edge-proxy",
    }


@pytest.mark.parametrize(
    ("persistence", "source"),
    [({}, {"emptyDir": {}}), ({"type": "hostPath", "hostPath": "/k"}, {"hostPath": {"path": "/k"}})],
)
def test_the_folder_of_k0s_is_the_volume_that_the_user_chose(persistence: Json, source: Json) -> None:
    made = render_statefulset(subject(persistence=persistence), "")
    assert {"name": "kmc-edge", **source} in pod(made)["volumes"]


def test_a_claim_of_each_pod_has_the_name_that_the_user_chose() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    made = render_statefulset(subject(persistence={"type": "pvc", "persistentVolumeClaim": claim}), "")
    assert made["spec"]["volumeClaimTemplates"] == [claim]
    assert mounts(pod(made)["containers"][0])["/var/lib/k0s"]["name"] == "data"


def test_manifests_and_mounts_of_the_user_are_volumes_of_the_pod() -> None:
    made = render_statefulset(
        subject(
            manifests=[{"name": "addons", "configMap": {"name": "mine"}}],
            mounts=[{"path": "/etc/audit", "secret": {"secretName": "audit"}}, {"path": "/cache", "emptyDir": {}}],
        ),
        "",
    )
    found = mounts(pod(made)["containers"][0])
    assert found["/var/lib/k0s/manifests/addons"]["readOnly"]
    assert found["/etc/audit"]["readOnly"]
    assert "readOnly" not in found["/cache"]
    assert {"name": "addons", "configMap": {"name": "mine"}} in pod(made)["volumes"]
    assert {"name": "etc-audit", "secret": {"secretName": "audit"}} in pod(made)["volumes"]


def test_low_ports_need_no_privileges() -> None:
    low = pod(render_statefulset(subject(service={"type": "LoadBalancer", "apiPort": 443}), ""))
    assert low["securityContext"]["sysctls"] == [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]
    assert "securityContext" not in pod(render_statefulset(subject(), ""))


def test_nats_runs_inside_the_pods() -> None:
    nats = subject(storage={"type": "nats"}, replicas=3)
    made = render_statefulset(nats, "")
    assert made["spec"]["serviceName"] == "kmc-edge-nats"
    assert [each["metadata"]["name"] for each in made["spec"]["volumeClaimTemplates"]] == ["nats-data"]
    assert "nats-data" in render_script(nats)
    source = render_config(nats, "")["spec"]["storage"]["kine"]["dataSource"]
    assert source == "nats://?serverConfig=/etc/nats/nats.conf&replicas=3"


def test_monitoring_adds_two_containers_and_says_where_to_scrape() -> None:
    watched = subject(monitoring={"enabled": True, "prometheusImage": "p:1", "proxyImage": "n:1"})
    made = render_statefulset(watched, "x")
    assert [each["name"] for each in pod(made)["containers"]] == ["controller", "monitoring-agent", "monitoring-proxy"]
    assert made["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"] == "8090"
    config = yaml.load(render_monitoring(watched)["data"]["prometheus.yml"])
    targets = [t for job in config["scrape_configs"] for each in job["static_configs"] for t in each["targets"]]
    assert targets == ["localhost:30443", "localhost:10259", "localhost:10257", "kmc-edge-etcd:2379"]


# -- Ingress -------------------------------------------------------------------------------------------------------


def test_an_ingress_routes_both_hosts_to_the_service() -> None:
    behind = subject(ingress={**INGRESS, "className": "nginx", "annotations": {"tls": "passthrough"}})
    made = render_ingress(behind, present(behind.spec.ingress))
    assert made["spec"]["ingressClassName"] == "nginx"
    assert made["metadata"]["annotations"] == {"tls": "passthrough"}
    routes = {
        rule["host"]: rule["http"]["paths"][0]["backend"]["service"]["port"]["number"] for rule in made["spec"]["rules"]
    }
    assert routes == {"api.edge.example": 30443, "kon.edge.example": 30132}


@pytest.mark.parametrize(("version", "agents"), [("v1.34.1+k0s.0", True), ("v1.35.1+k0s.0", False)])
def test_nodes_reach_the_api_server_through_a_proxy_of_their_own(version: str, agents: bool) -> None:
    behind = subject(
        version=version,
        ingress=INGRESS,
        k0sConfig={"spec": {"network": {"serviceCIDR": "10.20.0.0/16"}, "images": {"repository": "r.example"}}},
    )
    made = render_ingress_manifests(behind, present(behind.spec.ingress))
    inner = [each for text in made["data"].values() for each in yaml.load_all(text)]
    kinds = [each["kind"] for each in inner]
    assert kinds[:4] == ["Endpoints", "ConfigMap", "DaemonSet", "Service"]
    assert inner[3]["spec"]["clusterIP"] == "10.20.0.1"
    assert kinds[4:] == (["ClusterRoleBinding", "ServiceAccount", "DaemonSet"] if agents else [])
    if agents:
        image = inner[-1]["spec"]["template"]["spec"]["containers"][0]["image"]
        assert image.startswith("r.example/k0sproject/apiserver-network-proxy-agent:")
    konnectivity = render_config(behind, "")["spec"]["konnectivity"]
    assert konnectivity["externalAddress"] == ("kon.edge.example" if agents else "kon.edge.example:443")


def test_the_key_of_the_proxies_is_a_secret_on_both_sides() -> None:
    made = render_ingress_certificates(subject(ingress=INGRESS), KeyPair(b"cert\n", b"key\n"), b"ca\n")
    assert made["kind"] == "Secret"
    inner = yaml.load(base64.b64decode(made["data"]["proxy-certs.yaml"]))
    assert inner["kind"] == "Secret"
    assert base64.b64decode(inner["data"]["server.pem"]) == b"cert\nkey\n"
    names = {each["name"] for each in pod(render_statefulset(subject(ingress=INGRESS), ""))["volumes"]}
    assert {"ingress-certificates", "kmc-edge-ingress"} <= names


# -- patches -------------------------------------------------------------------------------------------------------


def patch(type_: str, content: str, kind: str = "StatefulSet", component: str = "control-plane") -> Json:
    return {"target": {"kind": kind, "component": component}, "patch": {"type": type_, "content": content}}


@pytest.mark.parametrize(
    ("type_", "content"),
    [
        ("json", '[{"op": "add", "path": "/spec/template/spec/priorityClassName", "value": "high"}]'),
        ("merge", "spec: {template: {spec: {priorityClassName: high}}}"),
        (
            "strategic",
            "spec: {template: {spec: {priorityClassName: high, containers: [{name: controller, tty: true}]}}}",
        ),
    ],
)
def test_a_patch_changes_the_objects_of_its_component(type_: str, content: str) -> None:
    changed = subject(patches=[patch(type_, content)])
    made = apply_patches(render_statefulset(changed, ""), changed.spec.patches)
    assert pod(made)["priorityClassName"] == "high"
    container = pod(made)["containers"][0]
    assert container["image"].startswith("quay.io/")
    assert container.get("tty", False) == (type_ == "strategic")
    etcd = render_etcd(changed, 1)
    assert apply_patches(etcd, changed.spec.patches) is etcd


def test_a_patch_can_not_rename_an_object_or_take_it_from_its_owner() -> None:
    changed = subject(patches=[patch("merge", "{metadata: {name: other, ownerReferences: null, labels: {a: b}}}")])
    made = apply_patches(render_statefulset(changed, ""), changed.spec.patches)
    assert made["metadata"]["name"] == "kmc-edge"
    assert made["metadata"]["ownerReferences"] == [OWNER]
    assert made["metadata"]["labels"]["a"] == "b"


def test_a_patch_that_does_not_fit_says_which_one_it_is() -> None:
    changed = subject(patches=[patch("json", '[{"op": "remove", "path": "/spec/nothing"}]')])
    with pytest.raises(PatchFailed, match=r"spec\.patches\[0\] can't be applied to StatefulSet kmc-edge"):
        apply_patches(render_statefulset(changed, ""), changed.spec.patches)
