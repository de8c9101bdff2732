"""The k0s.yaml of a control plane: what the user wrote, with addresses, ports and storage filled in. Pure."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable
from typing import Any

import orjson

from homeport.capi.k0s.validation import API_VERSION
from homeport.hosted.k0smotron.pod.subject import PKI_DIR, Subject, config_map, part
from homeport.machinery import yaml

Json = dict[str, Any]

CONFIG_KEY = "K0SMOTRON_K0S_YAML"
KINE_VARIABLE = "K0SMOTRON_KINE_DATASOURCE_URL"
KINE_PLACEHOLDER = f"__{KINE_VARIABLE}__"
NATS_CONFIG = "/etc/nats/nats.conf"
_NATIVE_KONNECTIVITY = (1, 35, 1)  # the first k0s whose agents use konnectivity.externalAddress
# What k0s reads only at its start; it takes the rest from the ClusterConfig inside the cluster.
_STATIC = ("api", "storage", "konnectivity")


def has_native_konnectivity(subject: Subject) -> bool:
    return subject.version.core >= _NATIVE_KONNECTIVITY


def render_config(subject: Subject, address: str, cluster_ips: Iterable[str] = ()) -> Json:
    """`address`: at which nodes and users reach the control plane."""
    config = copy.deepcopy(subject.spec.k0s_config or {})
    config["apiVersion"], config["kind"] = API_VERSION, "ClusterConfig"
    spec = config["spec"] = part(config, "spec")
    own = part(spec, "api").get("sans")
    names = {str(each) for each in own} if isinstance(own, list) else set()
    sans = sorted(names | set(subject_names(subject, address, cluster_ips)))
    spec["api"] = {**part(spec, "api"), **_api(subject, address, sans, part(spec, "network"))}
    spec["konnectivity"] = {**part(spec, "konnectivity"), **_konnectivity(subject)}
    spec["storage"] = _storage(subject)
    return config


def subject_names(subject: Subject, address: str, cluster_ips: Iterable[str] = ()) -> list[str]:
    """Host names and addresses that the API server's certificate is good for."""
    service = subject.service_name
    inside = f"{service}.{subject.namespace}"
    names = [service, inside, f"{inside}.svc", f"{inside}.svc.cluster.local"]
    names += [each for each in cluster_ips if each not in ("", "None")]
    if address:
        names.append(address)
    if subject.spec.ingress is not None:
        # Nodes reach the API server through a proxy of their own.
        names += ["127.0.0.1", "localhost", subject.spec.ingress.api_host, subject.spec.ingress.konnectivity_host]
    return sorted({each for each in names if each})


def _api(subject: Subject, address: str, sans: list[str], network: Json) -> Json:
    api: Json = {"port": subject.spec.service.api_port, "sans": sans}
    ingress = subject.spec.ingress
    if ingress is not None:
        api["externalAddress"] = f"{ingress.api_host}:{ingress.port}"
        arguments = part(part(subject.spec.k0s_config or {}, "spec", "api"), "extraArgs")
        api["extraArgs"] = {**arguments, "endpoint-reconciler-type": "none"}
    elif address and not part(network, "nodeLocalLoadBalancing").get("enabled"):
        # k0s allows only one of the two ways to reach the control plane.
        api["externalAddress"] = address
    return api


def _konnectivity(subject: Subject) -> Json:
    made: Json = {"agentPort": subject.spec.service.konnectivity_port}
    ingress = subject.spec.ingress
    if ingress is not None:
        host = ingress.konnectivity_host
        made["externalAddress"] = f"{host}:{ingress.port}" if has_native_konnectivity(subject) else host
    return made


def _storage(subject: Subject) -> Json:
    storage = subject.spec.storage
    if storage.type == "nats":
        copies = f"&replicas={subject.spec.replicas}" if subject.spec.replicas > 1 else ""
        return {"type": "kine", "kine": {"dataSource": f"nats://?serverConfig={NATS_CONFIG}{copies}"}}
    if storage.type == "kine":
        source = KINE_PLACEHOLDER if storage.kine.data_source_secret_name else storage.kine.data_source_url
        return {"type": "kine", "kine": {"dataSource": source}}
    external = {
        "endpoints": [f"https://{subject.names.etcd}:2379"],
        "etcdPrefix": subject.name,
        "caFile": f"{PKI_DIR}/etcd-ca.crt",
        "clientCertFile": f"{PKI_DIR}/apiserver-etcd-client.crt",
        "clientKeyFile": f"{PKI_DIR}/apiserver-etcd-client.key",
    }
    return {"type": "etcd", "etcd": {"externalCluster": external}}


def render_config_map(subject: Subject, config: Json) -> Json:
    return config_map(subject, subject.names.config, "cluster-config", {CONFIG_KEY: yaml.dump(config)})


def static_digest(config: Json) -> str:
    """Of what k0s reads only at its start: Pods are replaced when it changes."""
    spec = part(config, "spec")
    static = {name: spec.get(name) for name in _STATIC}
    return hashlib.sha256(orjson.dumps(static, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def dynamic_spec(config: Json) -> Json:
    """What the ClusterConfig inside the cluster says."""
    return {name: value for name, value in part(config, "spec").items() if name not in _STATIC}
