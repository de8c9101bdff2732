"""kubeadm's configuration files: v1beta3 and v1beta4."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any

from homeport.apiserver.name import dns_subdomain
from homeport.sim.machine import yaml
from homeport.sim.machine.workload.facts import Facts, Version, parse_version
from homeport.sim.machine.workload.object import duration
from homeport.sim.machine.workload.pod.staticpod import arguments
from homeport.sim.network import split_endpoint

Json = dict[str, Any]

_GROUP = "kubeadm.k8s.io"
# The first and the last minor version of kubeadm that reads each version of the configuration.
_READ_BY = {"v1beta2": (15, 26), "v1beta3": (22, 99), "v1beta4": (31, 99)}


class KubeadmError(Exception):
    """kubeadm gives up; the text is what it prints after `error: `."""


@dataclass(slots=True)
class Registering:
    """nodeRegistration."""

    name: str = ""
    taints: list[Json] | None = None
    arguments: dict[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


@dataclass(slots=True)
class Documents:
    """The documents of one file, by kind."""

    version: str
    kinds: dict[str, Json]


def parse_documents(text: str, kubeadm: Version) -> Documents:
    try:
        loaded = [each for each in yaml.load_all(text) if each is not None]
    except yaml.YAMLError as broken:
        shown = " ".join(str(broken).split())
        raise KubeadmError(f"error converting YAML to JSON: yaml: {shown}") from broken
    kinds: dict[str, Json] = {}
    used = ""
    for document in loaded:
        group, version, kind = _identity(document)
        if group == _GROUP:
            _check_version(version, kind, kubeadm)
            used = version
        if kind in kinds:
            raise KubeadmError(f'invalid configuration: kind "{kind}" is specified twice in YAML file')
        kinds[kind] = document
    return Documents(used, kinds)


def _identity(document: Any) -> tuple[str, str, str]:
    if not isinstance(document, dict) or not document.get("apiVersion") or not document.get("kind"):
        raise KubeadmError("invalid configuration: kind and apiVersion is mandatory information that must be specified")
    group, _, version = str(document["apiVersion"]).rpartition("/")
    return group, version, str(document["kind"])


def check_readable(configuration: Json, kubeadm: Version) -> None:
    """Whether kubeadm of this version can decode what is in the cluster."""
    _, version, kind = _identity(configuration)
    first, last = _READ_BY.get(version, (0, -1))
    if not first <= kubeadm[1] <= last:
        raise KubeadmError(
            "error execution phase preflight: unable to fetch the kubeadm-config ConfigMap: failed to decode cluster "
            f'configuration data: no kind "{kind}" is registered for version "{_GROUP}/{version}"'
        )


def _check_version(version: str, kind: str, kubeadm: Version) -> None:
    first, last = _READ_BY.get(version, (0, -1))
    if first <= kubeadm[1] <= last:
        return
    if 0 < last < kubeadm[1] or version in ("v1beta1", "v1alpha3"):
        raise KubeadmError(
            f'your configuration file uses an old API spec: "{_GROUP}/{version}" (kind: "{kind}"). '
            "Please use 'kubeadm config migrate' with an older version of kubeadm to update it"
        )
    raise KubeadmError(f'no kind "{kind}" is registered for version "{_GROUP}/{version}"')


def read_registering(document: Mapping[str, Any], hostname: str) -> Registering:
    given = document.get("nodeRegistration") or {}
    name = str(given.get("name") or hostname).strip().lower() if not given.get("name") else str(given["name"]).strip()
    wrong = dns_subdomain(name)
    if wrong is not None:
        raise KubeadmError(f'nodeRegistration.name: Invalid value: "{name}": {wrong}')
    return Registering(
        name=name,
        taints=list(given["taints"]) if isinstance(given.get("taints"), list) else None,
        arguments=arguments(given.get("kubeletExtraArgs")),
        ignored=tuple(str(each).lower() for each in given.get("ignorePreflightErrors") or ()),
    )


def read_facts(documents: Documents, address: str, kubeadm: str) -> Facts:
    """ClusterConfiguration with kubeadm's defaults."""
    given: Json = dict(documents.kinds.get("ClusterConfiguration") or {})
    version = _checked_version(str(given.get("kubernetesVersion") or f"v{kubeadm}"))
    networking = {"dnsDomain": "cluster.local", "serviceSubnet": "10.96.0.0/12", **(given.get("networking") or {})}
    for name in ("serviceSubnet", "podSubnet"):
        _check_subnet(name, str(networking.get(name) or ""))
    local = (documents.kinds.get("InitConfiguration") or {}).get("localAPIEndpoint") or {}
    configuration = {
        "apiVersion": f"{_GROUP}/{documents.version or 'v1beta3'}",
        "kind": "ClusterConfiguration",
        "certificatesDir": "/etc/kubernetes/pki",
        "clusterName": "kubernetes",
        "imageRepository": "registry.k8s.io",
        "etcd": {"local": {"dataDir": "/var/lib/etcd"}},
        **{key: value for key, value in given.items() if value is not None},
        "kubernetesVersion": version,
        "networking": networking,
    }
    api_server = configuration.get("apiServer") or {}
    return Facts(
        name=str(configuration["clusterName"]),
        version=version,
        endpoint=_endpoint(str(given.get("controlPlaneEndpoint") or ""), address, int(local.get("bindPort") or 6443)),
        service_subnet=str(networking["serviceSubnet"]),
        pod_subnet=str(networking.get("podSubnet") or ""),
        dns_domain=str(networking["dnsDomain"]),
        image_repository=str(configuration["imageRepository"]),
        cert_sans=tuple(str(each) for each in api_server.get("certSANs") or ()),
        external_etcd=bool((configuration["etcd"] or {}).get("external")),
        configuration=configuration,
        kubelet=documents.kinds.get("KubeletConfiguration") or {},
        proxy=documents.kinds.get("KubeProxyConfiguration") or {},
    )


def _checked_version(text: str) -> str:
    try:
        parse_version(text)
    except ValueError as wrong:
        raise KubeadmError(
            f'version "{text}" doesn\'t match patterns for neither semantic version nor labels'
        ) from wrong
    return text if text.startswith("v") else f"v{text}"


def _endpoint(given: str, address: str, port: int) -> tuple[str, int]:
    """Where the control plane answers: as given, else at the machine itself."""
    try:
        return split_endpoint(given) if given else (address, port)
    except ValueError as wrong:
        raise KubeadmError(f'controlPlaneEndpoint: Invalid value: "{given}": {wrong}') from wrong


def _check_subnet(name: str, text: str) -> None:
    for each in filter(None, text.split(",")):
        try:
            ip_network(each.strip(), strict=False)
        except ValueError as wrong:
            raise KubeadmError(f'networking.{name}: Invalid value: "{text}": couldn\'t parse subnet') from wrong


def timeout_of(document: Mapping[str, Any], name: str, default: float) -> float:
    """v1beta4's timeouts, in seconds."""
    return duration((document.get("timeouts") or {}).get(name), default)
