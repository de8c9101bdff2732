"""A KubeadmConfig with every field that has something to say on the machine, as its JSON."""

from __future__ import annotations

from typing import Any

from homeport.bootstrap.kubeadm.configuration import (
    Facts,
    cluster_configuration,
    init_configuration,
    join_configuration,
    kubeadm_api,
)
from homeport.bootstrap.kubeadm.userdata import File, UserData
from homeport.capi.version import parse

Json = dict[str, Any]

CLUSTER: Json = {
    "apiServer": {
        "certSANs": ["api.example.com"],
        "extraArgs": [{"name": "cloud-provider", "value": "external"}],
        "extraEnvs": [{"name": "HTTP_PROXY", "value": "http://proxy"}],
        "extraVolumes": [
            {"name": "a", "hostPath": "/a", "mountPath": "/b", "readOnly": True, "pathType": "DirectoryOrCreate"}
        ],
    },
    "controllerManager": {"extraArgs": [{"name": "bind-address", "value": "0.0.0.0"}]},
    "scheduler": {"extraArgs": [{"name": "v", "value": "2"}]},
    "dns": {"imageRepository": "registry.example.com/coredns", "imageTag": "v1.11.1"},
    "etcd": {
        "local": {
            "dataDir": "/var/lib/etcd/data",
            "imageTag": "3.5.10-0",
            "extraArgs": [{"name": "quota-backend-bytes", "value": "8589934592"}],
            "extraEnvs": [{"name": "ETCD_X", "value": "1"}],
            "serverCertSANs": ["etcd.example.com"],
            "peerCertSANs": ["peer.example.com"],
        }
    },
    "imageRepository": "registry.example.com/k8s",
    "certificatesDir": "/etc/kubernetes/pki",
    "featureGates": {"RootlessControlPlane": True},
    "encryptionAlgorithm": "ECDSA-P256",
    "certificateValidityPeriodDays": 365,
    "caCertificateValidityPeriodDays": 3650,
}
REGISTRATION: Json = {
    "name": "{{ ds.meta_data['local_hostname'] }}",
    "criSocket": "unix:///run/containerd/containerd.sock",
    "taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}],
    "kubeletExtraArgs": [{"name": "cloud-provider", "value": "external"}],
    "ignorePreflightErrors": ["NumCPU"],
    "imagePullPolicy": "IfNotPresent",
    "imagePullSerial": True,
}
TIMEOUTS: Json = {
    "controlPlaneComponentHealthCheckSeconds": 300,
    "discoverySeconds": 60,
    "etcdAPICallSeconds": 120,
    "kubeletHealthCheckSeconds": 240,
    "kubernetesAPICallSeconds": 90,
    "tlsBootstrapSeconds": 330,
}
INIT: Json = {
    "bootstrapTokens": [
        {
            "token": "abcdef.0123456789abcdef",
            "ttlSeconds": 3600,
            "usages": ["signing", "authentication"],
            "groups": ["system:bootstrappers:kubeadm:default-node-token"],
            "description": "for the first",
        }
    ],
    "nodeRegistration": REGISTRATION,
    "localAPIEndpoint": {"advertiseAddress": "10.0.0.5", "bindPort": 6443},
    "skipPhases": ["addon/kube-proxy"],
    "patches": {"directory": "/etc/kubernetes/patches"},
    "timeouts": TIMEOUTS,
}
JOIN: Json = {
    "nodeRegistration": REGISTRATION,
    "caCertPath": "/etc/kubernetes/pki/ca.crt",
    "discovery": {
        "bootstrapToken": {
            "token": "abcdef.0123456789abcdef",
            "apiServerEndpoint": "10.1.2.3:6443",
            "caCertHashes": ["sha256:" + "ab" * 32],
        },
        "tlsBootstrapToken": "abcdef.0123456789abcdef",
    },
    "skipPhases": ["preflight"],
    "patches": {"directory": "/etc/kubernetes/patches"},
    "timeouts": TIMEOUTS,
}
CONTROL_PLANE_JOIN: Json = {
    **JOIN,
    "controlPlane": {"localAPIEndpoint": {"advertiseAddress": "10.0.0.6", "bindPort": 6443}},
}


def facts(version: str) -> Facts:
    return Facts(
        "one", version, "10.1.2.3:6443", ("10.0.0.0/16", "fd00::/48"), ("10.96.0.0/12", "fd01::/112"), "a.local"
    )


def init_documents(version: str) -> tuple[Json, Json]:
    api = kubeadm_api(parse(version))
    return cluster_configuration(CLUSTER, INIT, facts(version), api), init_configuration(INIT, api)


def join_documents(version: str, join: Json = JOIN) -> tuple[Json]:
    return (join_configuration(join, kubeadm_api(parse(version))),)


def user_data(*, ignition: bool = False) -> UserData:
    """All that both formats, or cloud-init alone, can say."""
    return UserData(
        verb="init",
        configuration=init_documents("v1.33.0"),
        files=(
            File("/etc/plain", "first\n\tsecond \"quoted\" 'too' \\ \u00fc \U0001f600\n\n  last", "root:root", "0644"),
            File("/etc/encoded", "aGVsbG8=", encoding="base64"),
            File("/etc/hosts", "10.0.0.1 a", append=True),
            *(
                ()
                if ignition
                else (File("/etc/packed", "H4sIAAAAAAAC/8tIzcnJBwCGphA2BQAAAA==", encoding="gzip+base64"),)
            ),
        ),
        boot_commands=() if ignition else ('echo "boot"',),
        pre_commands=("hostnamectl set-hostname \"{{ ds.meta_data['hostname'] }}\"", "a |\\\n  b", "x: y # z"),
        post_commands=("date",),
        users=(
            {
                "name": "joe",
                "gecos": "Joe: the user",
                "groups": "wheel, docker",
                "homeDir": "/home/joe",
                "shell": "/bin/bash",
                "passwd": "$6$salt$hash",
                "primaryGroup": "joe",
                "lockPassword": False,
                "sudo": "ALL=(ALL) NOPASSWD:ALL",
                "sshAuthorizedKeys": ["ssh-ed25519 AAAA joe@example.com"],
                **({} if ignition else {"inactive": True}),
            },
        ),
        ntp={"enabled": True, "servers": ["0.pool.example.org"]},
        disk_setup={
            "partitions": [
                {"device": "/dev/sdb", "layout": True, "overwrite": True, "tableType": "gpt"},
                *(
                    ()
                    if ignition
                    else (
                        {
                            "device": "/dev/sdc",
                            "tableType": "mbr",
                            "diskLayout": [{"percentage": 60, "partitionType": "Linux"}, {"percentage": 40}],
                        },
                    )
                ),
            ],
            "filesystems": [
                {"device": "/dev/sdb1", "filesystem": "ext4", "label": "data", "overwrite": True, "extraOpts": ["-F"]}
            ],
        },
        mounts=(("data", "/var/lib/my-data", "defaults", "nofail"),)
        if ignition
        else (("LABEL=data", "/var/lib/data"),),
        verbosity=5,
    )
