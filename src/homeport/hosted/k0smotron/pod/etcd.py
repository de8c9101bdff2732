"""The etcd cluster of a control plane: one member for one replica, three for more. Pure.

Members are added one at a time and never removed: an etcd cluster that shrinks can lose its quorum, and with it the
cluster's data.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from homeport.api.k0smotron.part import StoragePersistence
from homeport.hosted.k0smotron.pod.subject import Subject

Json = dict[str, Any]

CLAIM = "etcd-data"
DATA = "/var/lib/k0s/etcd"
PKI = "/var/lib/k0s/pki/etcd"
_JOIN = f"{DATA}/join.env"

# A member without data joins the cluster that its peers form. The first member starts a new cluster, and only if no
# peer exists: one that lost its volume must not start a second cluster under the name of the first.
_JOIN_SCRIPT = f"""\
set -eu
[ -d {DATA}/member ] && exit 0
rm -f {_JOIN}
name="$ETCD_NAME"
ordinal="${{name##*-}}"
set_name="${{name%-*}}"
peers=""
for number in 0 1 2; do
  peer="$set_name-$number"
  if [ "$peer" != "$name" ] && getent hosts "$peer.$SERVICE" > /dev/null; then
    peers="$peers,https://$peer.$SERVICE:2379"
  fi
done
if [ -z "$peers" ]; then
  [ "$ordinal" = 0 ] && exit 0
  echo "no other member of etcd can be found" >&2
  exit 1
fi
export ETCDCTL_ENDPOINTS="${{peers#,}}"
member=$(etcdctl member list -w simple | awk -F', ' -v name="$name" '$3 == name {{ print $1 }}')
[ -z "$member" ] || etcdctl member remove "$member"
etcdctl member add "$name" --peer-urls="https://$name.$SERVICE:2380" | grep '^ETCD_' > {_JOIN}
"""


def plan_members(replicas: int, members: int | None, ready: int) -> int:
    """How many members there should be now. `members`: as the StatefulSet says; None: it does not exist yet."""
    wanted = 1 if replicas <= 1 else 3
    if members is None:
        return 1
    if members >= wanted or ready < members:
        return max(members, 1)
    return members + 1


def render_etcd_service(subject: Subject) -> Json:
    spec = {
        "type": "ClusterIP",
        "clusterIP": "None",
        "selector": subject.etcd_selector,
        "publishNotReadyAddresses": True,  # members find each other before they are ready
        "ports": [
            {"name": "client", "port": 2379, "targetPort": 2379, "protocol": "TCP"},
            {"name": "peer", "port": 2380, "targetPort": 2380, "protocol": "TCP"},
        ],
    }
    metadata = subject.metadata(subject.names.etcd, "etcd", subject.etcd_selector)
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def render_etcd(subject: Subject, members: int) -> Json:
    etcd, name = subject.spec.storage.etcd, subject.names.etcd
    metadata = subject.metadata(name, "etcd", subject.etcd_selector)
    pod: Json = {
        "automountServiceAccountToken": False,
        "affinity": spread(subject.etcd_selector),
        "securityContext": {"fsGroup": 1001},
        "initContainers": [_init(subject)],
        "containers": [_container(subject)],
        "volumes": [_certificates(subject)],
    }
    if subject.spec.service_account:
        pod["serviceAccountName"] = subject.spec.service_account
    if subject.spec.topology_spread_constraints:
        pod["topologySpreadConstraints"] = subject.spec.topology_spread_constraints
    spec: Json = {
        "serviceName": name,
        "replicas": members,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": subject.etcd_selector},
        "template": {"metadata": {"labels": dict(metadata["labels"])}, "spec": pod},
        "volumeClaimTemplates": [_claim(etcd.persistence)],
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}


def _claim(persistence: StoragePersistence) -> Json:
    spec: Json = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": str(persistence.size)}},
    }
    if persistence.storage_class:
        spec["storageClassName"] = persistence.storage_class
    return {"metadata": {"name": CLAIM}, "spec": spec}


def spread(selector: Mapping[str, str]) -> Json:
    """Over zones and then over nodes, if possible."""
    terms = [
        {"weight": weight, "podAffinityTerm": {"topologyKey": key, "labelSelector": {"matchLabels": dict(selector)}}}
        for weight, key in ((100, "topology.kubernetes.io/zone"), (50, "kubernetes.io/hostname"))
    ]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


def _name() -> Json:
    return {"name": "ETCD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}


def _values(values: Mapping[str, str]) -> list[Json]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _ctl(subject: Subject) -> dict[str, str]:
    return {
        "SERVICE": subject.names.etcd,
        "ETCDCTL_CACERT": f"{PKI}/ca.crt",
        "ETCDCTL_CERT": f"{PKI}/server.crt",
        "ETCDCTL_KEY": f"{PKI}/server.key",
    }


def _mounts() -> list[Json]:
    return [{"name": "certs", "mountPath": PKI, "readOnly": True}, {"name": CLAIM, "mountPath": DATA}]


def _init(subject: Subject) -> Json:
    return {
        "name": "join-cluster",
        "image": subject.spec.storage.etcd.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-c", _JOIN_SCRIPT],
        "env": [_name(), *_values(_ctl(subject))],
        "volumeMounts": _mounts(),
    }


def _container(subject: Subject) -> Json:
    etcd = subject.spec.storage.etcd
    run = f"[ ! -f {_JOIN} ] || export $(tr -d '\"' < {_JOIN})\nexec {shlex.join(['etcd', *etcd.args])}"
    container: Json = {
        "name": "etcd",
        "image": etcd.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-c", run],
        "env": [_name(), *_values(_ctl(subject) | _settings())],
        "ports": [
            {"name": "client", "containerPort": 2379, "protocol": "TCP"},
            {"name": "peer", "containerPort": 2380, "protocol": "TCP"},
        ],
        "readinessProbe": {"exec": {"command": ["etcdctl", "endpoint", "health"]}, "timeoutSeconds": 5},
        "volumeMounts": _mounts(),
    }
    return {**container, "resources": etcd.resources} if etcd.resources else container


def _settings() -> dict[str, str]:
    own = "$(ETCD_NAME).$(SERVICE)"
    return {
        "ETCD_DATA_DIR": DATA,
        "ETCD_LISTEN_CLIENT_URLS": "https://0.0.0.0:2379",
        "ETCD_LISTEN_PEER_URLS": "https://0.0.0.0:2380",
        "ETCD_ADVERTISE_CLIENT_URLS": f"https://{own}:2379",
        "ETCD_INITIAL_ADVERTISE_PEER_URLS": f"https://{own}:2380",
        "ETCD_INITIAL_CLUSTER": f"$(ETCD_NAME)=https://{own}:2380",
        "ETCD_INITIAL_CLUSTER_STATE": "new",
        "ETCD_CERT_FILE": f"{PKI}/server.crt",
        "ETCD_KEY_FILE": f"{PKI}/server.key",
        "ETCD_TRUSTED_CA_FILE": f"{PKI}/ca.crt",
        "ETCD_CLIENT_CERT_AUTH": "true",
        "ETCD_PEER_CERT_FILE": f"{PKI}/peer.crt",
        "ETCD_PEER_KEY_FILE": f"{PKI}/peer.key",
        "ETCD_PEER_TRUSTED_CA_FILE": f"{PKI}/ca.crt",
        "ETCD_PEER_CLIENT_CERT_AUTH": "true",
        "ETCD_AUTO_COMPACTION_MODE": "periodic",
        "ETCD_AUTO_COMPACTION_RETENTION": "5m",
        "ETCDCTL_ENDPOINTS": "https://127.0.0.1:2379",
    }


def _certificates(subject: Subject) -> Json:
    sources = [
        projected(subject.certificate("etcd"), "ca", key=False),
        projected(subject.certificate("etcd-server"), "server"),
        projected(subject.certificate("etcd-peer"), "peer"),
    ]
    return {"name": "certs", "projected": {"sources": sources}}


def projected(secret: str, file: str, *, key: bool = True, public: str = "crt") -> Json:
    """Certificate and key of a Secret as files."""
    items = [{"key": "tls.crt", "path": f"{file}.{public}"}]
    if key:
        items.append({"key": "tls.key", "path": f"{file}.key"})
    return {"secret": {"name": secret, "items": items}}


def render_defrag(subject: Subject) -> Json:
    """Compaction leaves holes in the database file; this gives them back."""
    job, name = subject.spec.storage.etcd.defrag_job, subject.names.etcd
    metadata = subject.metadata(subject.names.defrag, "etcd")
    container = {
        "name": "etcd-defrag",
        "image": job.image,
        "imagePullPolicy": "IfNotPresent",
        "args": [
            f"--endpoints=https://{name}:2379",
            f"--cacert={PKI}/ca.crt",
            f"--cert={PKI}/server.crt",
            f"--key={PKI}/server.key",
            "--cluster",
            f"--defrag-rule={job.rule}",
        ],
        "volumeMounts": [{"name": "certs", "mountPath": PKI, "readOnly": True}],
    }
    # Not the labels of the members: the Service of etcd must not send clients to this Pod.
    labels = {key: value for key, value in metadata["labels"].items() if key != "component"}
    pod = {"restartPolicy": "OnFailure", "containers": [container], "volumes": [_certificates(subject)]}
    spec = {
        "schedule": job.schedule,
        "concurrencyPolicy": "Forbid",
        "jobTemplate": {"spec": {"template": {"metadata": {"labels": labels}, "spec": pod}}},
    }
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}
