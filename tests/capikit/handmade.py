"""A hosted control plane written by hand: Secrets, an etcd, a Deployment with kubeadm's flags, and a Service."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import serialization

from homeport.apiserver.auth import certificate as certs
from homeport.apiserver.auth.certificate import Issuer

PKI = "/etc/kubernetes/pki"
ETCD_PKI = "/etc/etcd/pki"
Json = dict[str, Any]


def make_issuer(name: str, now: datetime.datetime) -> Issuer:
    key = certs.make_key()
    return Issuer(certs.sign_ca(key, now, common_name=name), key)


def ca_files(issuer: Issuer, name: str) -> dict[str, bytes]:
    return {f"{name}.crt": certs.certificate_pem(issuer.certificate), f"{name}.key": certs.key_pem(issuer.key)}


@dataclass(slots=True)
class HandmadeEtcd:
    """One etcd for all tenants."""

    now: datetime.datetime
    name: str = "datastore"
    namespace: str = "default"
    image: str = "registry.example/etcd:3.6.5-0"
    issuer: Issuer = field(init=False)
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.issuer = make_issuer("etcd-ca", self.now)

    def client(self, user: str) -> tuple[bytes, bytes]:
        """Certificate and key of a user."""
        issued = self.issuer.client(user, (), self.now)
        return issued.certificate, issued.key

    def objects(self) -> list[Json]:
        hosts = [f"{self.name}.{self.namespace}.svc", *self.hosts, "localhost", "127.0.0.1"]
        served = self.issuer.server(hosts, self.now)
        files = {"server.crt": served.certificate, "server.key": served.key} | ca_files(self.issuer, "ca")
        labels = {"app": self.name}
        command = [
            "etcd",
            "--name=default",
            "--data-dir=/var/lib/etcd",
            "--listen-client-urls=https://0.0.0.0:2379",
            f"--advertise-client-urls=https://{self.name}.{self.namespace}.svc:2379",
            f"--cert-file={ETCD_PKI}/server.crt",
            f"--key-file={ETCD_PKI}/server.key",
            f"--trusted-ca-file={ETCD_PKI}/ca.crt",
            "--client-cert-auth=true",
        ]
        container = {
            "name": "etcd",
            "image": self.image,
            "command": command,
            "volumeMounts": [{"name": "pki", "mountPath": ETCD_PKI}, {"name": "data", "mountPath": "/var/lib/etcd"}],
        }
        pod = {"containers": [container], "volumes": [{"name": "pki", "secret": {"secretName": f"{self.name}-pki"}}]}
        claim = {
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        return [
            self._meta("v1", "Secret", f"{self.name}-pki") | {"data": encoded(files)},
            self._meta("v1", "Service", self.name)
            | {"spec": {"selector": labels, "ports": [{"name": "client", "port": 2379, "targetPort": 2379}]}},
            self._meta("apps/v1", "StatefulSet", self.name)
            | {
                "spec": {
                    "serviceName": self.name,
                    "replicas": 1,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": pod},
                    "volumeClaimTemplates": [claim],
                }
            },
        ]

    def _meta(self, version: str, kind: str, name: str) -> Json:
        return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": self.namespace}}


@dataclass(slots=True)
class HandmadePlane:
    """One control plane: `objects` for the plane, `kubeconfig` for its users."""

    name: str
    etcd: HandmadeEtcd
    etcd_server: str  # URL
    address: str = "127.0.0.1"  # of the Service
    version: str = "v1.33.1"
    replicas: int = 1
    port: int = 6443
    namespace: str = "default"
    services: str = "10.32.0.0/16"
    hosts: Sequence[str] = ()
    user: str = ""  # of etcd; '': the name
    issuer: Issuer = field(init=False)
    front_proxy: Issuer = field(init=False)
    signing_key: certs.PrivateKey = field(init=False)

    def __post_init__(self) -> None:
        self.issuer = make_issuer(f"{self.name}-ca", self.etcd.now)
        self.front_proxy = make_issuer("front-proxy-ca", self.etcd.now)
        self.signing_key = certs.make_key()

    @property
    def prefix(self) -> str:
        return f"/{self.namespace}_{self.name}"

    def _files(self) -> dict[str, bytes]:
        now = self.etcd.now
        hosts = [self.address, *self.hosts, self.name, "kubernetes.default.svc", "10.32.0.1", "localhost", "127.0.0.1"]
        served = self.issuer.server(hosts, now)
        kubelet = self.issuer.client("kube-apiserver-kubelet-client", ("system:masters",), now)
        proxy = self.front_proxy.client("front-proxy-client", (), now)
        certificate, key = self.etcd.client(self.user or self.name)
        public = self.signing_key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return {
            **ca_files(self.issuer, "ca"),
            **ca_files(self.front_proxy, "front-proxy-ca"),
            "apiserver.crt": served.certificate,
            "apiserver.key": served.key,
            "apiserver-kubelet-client.crt": kubelet.certificate,
            "apiserver-kubelet-client.key": kubelet.key,
            "front-proxy-client.crt": proxy.certificate,
            "front-proxy-client.key": proxy.key,
            "sa.pub": public,
            "sa.key": certs.key_pem(self.signing_key),
            "etcd-ca.crt": certs.certificate_pem(self.etcd.issuer.certificate),
            "apiserver-etcd-client.crt": certificate,
            "apiserver-etcd-client.key": key,
        }

    def kubeconfig(self, user: str, *groups: str, server: str = "", proxy: str = "") -> str:
        """Without a server: for programs beside the API server."""
        issued = self.issuer.client(user, groups, self.etcd.now)
        authority = base64.b64encode(certs.certificate_pem(self.issuer.certificate)).decode()
        via = f"    proxy-url: {proxy}\n" if proxy else ""
        via += "" if server else "    tls-server-name: localhost\n"
        return (
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
            f"clusters:\n- name: c\n  cluster:\n    server: {server or f'https://127.0.0.1:{self.port}'}\n{via}"
            f"    certificate-authority-data: {authority}\n"
            "contexts:\n- name: c\n  context: {cluster: c, user: u}\n"
            f"users:\n- name: u\n  user:\n    client-certificate-data: {base64.b64encode(issued.certificate).decode()}\n"
            f"    client-key-data: {base64.b64encode(issued.key).decode()}\n"
        )

    def admin(self, server: str = "", proxy: str = "") -> str:
        return self.kubeconfig("kubernetes-admin", "system:masters", server=server, proxy=proxy)

    def command(self) -> list[str]:
        flags = {
            "advertise-address": self.address,
            "allow-privileged": "true",
            "authorization-mode": "Node,RBAC",
            "client-ca-file": f"{PKI}/ca.crt",
            "enable-bootstrap-token-auth": "true",
            "etcd-cafile": f"{PKI}/etcd-ca.crt",
            "etcd-certfile": f"{PKI}/apiserver-etcd-client.crt",
            "etcd-keyfile": f"{PKI}/apiserver-etcd-client.key",
            "etcd-prefix": self.prefix,
            "etcd-servers": self.etcd_server,
            "kubelet-client-certificate": f"{PKI}/apiserver-kubelet-client.crt",
            "kubelet-client-key": f"{PKI}/apiserver-kubelet-client.key",
            "proxy-client-cert-file": f"{PKI}/front-proxy-client.crt",
            "proxy-client-key-file": f"{PKI}/front-proxy-client.key",
            "requestheader-client-ca-file": f"{PKI}/front-proxy-ca.crt",
            "secure-port": str(self.port),
            "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
            "service-account-key-file": f"{PKI}/sa.pub",
            "service-account-signing-key-file": f"{PKI}/sa.key",
            "service-cluster-ip-range": self.services,
            "tls-cert-file": f"{PKI}/apiserver.crt",
            "tls-private-key-file": f"{PKI}/apiserver.key",
        }
        if self.address.startswith("127."):
            flags["endpoint-reconciler-type"] = "none"
        return ["kube-apiserver", *(f"--{name}={value}" for name, value in flags.items())]

    def pod(self) -> Json:
        conf = {"name": "conf", "mountPath": "/etc/kubernetes/conf"}
        pki = {"name": "pki", "mountPath": PKI, "readOnly": True}
        manager = [
            "kube-controller-manager",
            "--kubeconfig=/etc/kubernetes/conf/controller-manager.conf",
            "--bind-address=0.0.0.0",
            f"--cluster-signing-cert-file={PKI}/ca.crt",
            f"--cluster-signing-key-file={PKI}/ca.key",
            "--controllers=*,bootstrapsigner,tokencleaner",
            f"--root-ca-file={PKI}/ca.crt",
            f"--service-account-private-key-file={PKI}/sa.key",
            "--use-service-account-credentials=true",
        ]
        scheduler = ["kube-scheduler", "--kubeconfig=/etc/kubernetes/conf/scheduler.conf", "--bind-address=0.0.0.0"]
        return {
            "containers": [
                self._container("kube-apiserver", self.command(), [pki], _probes(self.port, "/livez", "/readyz")),
                self._container("kube-controller-manager", manager, [pki, conf], _probes(10257)),
                self._container("kube-scheduler", scheduler, [conf], _probes(10259)),
            ],
            "volumes": [
                {"name": "pki", "secret": {"secretName": f"{self.name}-pki"}},
                {"name": "conf", "secret": {"secretName": f"{self.name}-conf"}},
            ],
        }

    def _container(self, name: str, command: list[str], mounts: list[Json], probes: Json) -> Json:
        image = f"registry.example/{name}:{self.version}"
        return {"name": name, "image": image, "command": command, "volumeMounts": mounts, **probes}

    def service(self, type_: str = "LoadBalancer") -> Json:
        ports = [{"name": "kube-apiserver", "port": self.port, "targetPort": self.port}]
        return self._meta("v1", "Service") | {"spec": {"type": type_, "selector": {"app": self.name}, "ports": ports}}

    def objects(self) -> list[Json]:
        labels = {"app": self.name}
        conf = {
            "controller-manager.conf": self.kubeconfig("system:kube-controller-manager").encode(),
            "scheduler.conf": self.kubeconfig("system:kube-scheduler").encode(),
        }
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}}
        return [
            self._meta("v1", "Secret", "-pki") | {"data": encoded(self._files())},
            self._meta("v1", "Secret", "-conf") | {"data": encoded(conf)},
            self._meta("apps/v1", "Deployment")
            | {
                "spec": {
                    "replicas": self.replicas,
                    "selector": {"matchLabels": labels},
                    "strategy": rolling,
                    "template": {"metadata": {"labels": labels}, "spec": self.pod()},
                }
            },
        ]

    def _meta(self, version: str, kind: str, suffix: str = "") -> Json:
        meta = {"name": self.name + suffix, "namespace": self.namespace}
        return {"apiVersion": version, "kind": kind, "metadata": meta}


def _probes(port: int, live: str = "/healthz", ready: str = "/healthz") -> Json:
    def get(path: str, failures: int) -> Json:
        where = {"path": path, "port": port, "scheme": "HTTPS"}
        return {"httpGet": where, "periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": failures}

    return {"startupProbe": get(live, 60), "livenessProbe": get(live, 8), "readinessProbe": get(ready, 3)}


def encoded(files: dict[str, bytes]) -> dict[str, str]:
    return {name: base64.b64encode(content).decode() for name, content in files.items()}
