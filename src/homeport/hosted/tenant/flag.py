"""The flags of kube-apiserver, kube-controller-manager and kube-scheduler: kubeadm's, with the datastore's. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence

from homeport.capi import version as versions
from homeport.hosted import name as names
from homeport.hosted.tenant.podinputs import CONF, EGRESS, EGRESS_FILE, PKI, PodInputs
from homeport.hosted.tenant.storage import Storage, server_urls
from homeport.machinery.address import is_address

_ALWAYS = "NodeRestriction"  # without it a node could change the objects of another


def with_extra(program: str, args: Mapping[str, str | None], extra: Sequence[str]) -> list[str]:
    """The command: flags in alphabetical order. A flag of `extra` replaces ours of the same name; further ones follow.

    A value of None is a flag that is left out.
    """
    given = [_flag(each) for each in extra]
    replaced = {name for name, _ in given}
    ours = [f"{name}={value}" for name, value in sorted(args.items()) if value is not None and name not in replaced]
    return [program, *ours, *(f"{name}={value}" if value is not None else name for name, value in given)]


def _flag(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    return f"--{name.lstrip('-')}", value if equals else None


def api_server_args(inputs: PodInputs) -> list[str]:
    spec = inputs.spec
    plugins = list(dict.fromkeys((*spec.kubernetes.admission_controllers, _ALWAYS)))
    args: dict[str, str | None] = {
        "--advertise-address": inputs.address if is_address(inputs.address) else None,
        "--allow-privileged": "true",
        "--authorization-mode": "Node,RBAC",
        "--client-ca-file": f"{PKI}/ca.crt",
        "--enable-admission-plugins": ",".join(plugins),
        "--enable-bootstrap-token-auth": "true",
        # An Endpoints object may not hold an address of loopback.
        "--endpoint-reconciler-type": "none" if _is_loopback(inputs.address) else None,
        "--kubelet-client-certificate": f"{PKI}/apiserver-kubelet-client.crt",
        "--kubelet-client-key": f"{PKI}/apiserver-kubelet-client.key",
        "--kubelet-preferred-address-types": ",".join(spec.kubernetes.kubelet.preferred_address_types),
        "--proxy-client-cert-file": f"{PKI}/front-proxy-client.crt",
        "--proxy-client-key-file": f"{PKI}/front-proxy-client.key",
        "--requestheader-allowed-names": "front-proxy-client",
        "--requestheader-client-ca-file": f"{PKI}/front-proxy-ca.crt",
        "--requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "--requestheader-group-headers": "X-Remote-Group",
        "--requestheader-username-headers": "X-Remote-User",
        "--secure-port": str(inputs.port),
        "--service-account-issuer": f"https://kubernetes.default.svc.{spec.network_profile.cluster_domain}",
        "--service-account-key-file": f"{PKI}/sa.pub",
        "--service-account-signing-key-file": f"{PKI}/sa.key",
        "--service-cluster-ip-range": spec.network_profile.service_cidr,
        "--tls-cert-file": f"{PKI}/apiserver.crt",
        "--tls-private-key-file": f"{PKI}/apiserver.key",
        "--egress-selector-config-file": f"{EGRESS}/{EGRESS_FILE}" if inputs.konnectivity else None,
        **_etcd_args(inputs.storage),
    }
    return with_extra(names.KUBE_APISERVER, args, spec.control_plane.deployment.extra_args.api_server)


def _etcd_args(storage: Storage) -> dict[str, str | None]:
    if not storage.etcd:
        return {"--etcd-servers": storage.servers}
    overrides = ",".join(f"{each.resource}#{';'.join(server_urls(each.endpoints))}" for each in storage.overrides)
    return {
        "--etcd-cafile": f"{PKI}/etcd/ca.crt",
        "--etcd-certfile": f"{PKI}/etcd/server.crt",
        # The datastore is shared: it compacts itself, once for all.
        "--etcd-compaction-interval": "0",
        "--etcd-keyfile": f"{PKI}/etcd/server.key",
        "--etcd-prefix": f"/{storage.schema}",
        "--etcd-servers": storage.servers,
        "--etcd-servers-overrides": overrides or None,
    }


def controller_manager_args(inputs: PodInputs) -> list[str]:
    network, conf = inputs.spec.network_profile, f"{CONF}/controller-manager.conf"
    args: dict[str, str | None] = {
        "--allocate-node-cidrs": "true",
        "--authentication-kubeconfig": conf,
        "--authorization-kubeconfig": conf,
        "--bind-address": "0.0.0.0",  # noqa: S104 the kubelet probes the address of the Pod
        "--client-ca-file": f"{PKI}/ca.crt",
        "--cluster-cidr": network.pod_cidr,
        "--cluster-name": inputs.name,
        "--cluster-signing-cert-file": f"{PKI}/ca.crt",
        "--cluster-signing-key-file": f"{PKI}/ca.key",
        "--controllers": "*,bootstrapsigner,tokencleaner",
        "--kubeconfig": conf,
        "--leader-elect": "true",
        "--requestheader-client-ca-file": f"{PKI}/front-proxy-ca.crt",
        "--root-ca-file": f"{PKI}/ca.crt",
        "--service-account-private-key-file": f"{PKI}/sa.key",
        "--service-cluster-ip-range": network.service_cidr,
        "--use-service-account-credentials": "true",
    }
    extra = inputs.spec.control_plane.deployment.extra_args.controller_manager
    return with_extra(names.KUBE_CONTROLLER_MANAGER, args, extra)


def scheduler_args(inputs: PodInputs) -> list[str]:
    conf = f"{CONF}/scheduler.conf"
    args: dict[str, str | None] = {
        "--authentication-kubeconfig": conf,
        "--authorization-kubeconfig": conf,
        "--bind-address": "0.0.0.0",  # noqa: S104
        "--kubeconfig": conf,
        "--leader-elect": "true",
    }
    return with_extra(names.KUBE_SCHEDULER, args, inputs.spec.control_plane.deployment.extra_args.scheduler)


def konnectivity_version(inputs: PodInputs, wanted: str) -> str:
    """The release that belongs to the Kubernetes version, unless the user names another."""
    return wanted or f"v0.{versions.parse(inputs.version).minor}.0"


def _is_loopback(host: str) -> bool:
    return is_address(host) and ipaddress.ip_address(host).is_loopback
