"""Control planes whose Deployments and Services are written down in golden/. Run this file to write them again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from homeport.api.steward.v1alpha1 import GROUP, TenantControlPlaneSpec
from homeport.hosted.tenant.deployment import render_deployment, render_tenant_service
from homeport.hosted.tenant.podinputs import PodInputs
from homeport.hosted.tenant.storage import Override, Storage
from homeport.machinery import yaml

GOLDEN = Path(__file__).parent / "golden"
ETCD = Storage("default", "etcd", ("datastore.homeport-system.svc:2379",), "default_demo", "default_demo")


def inputs(storage: Storage = ETCD, address: str = "10.40.0.10", **spec: Any) -> PodInputs:
    body = {
        "controlPlane": {"service": {"serviceType": "LoadBalancer"}},
        "kubernetes": {"version": "v1.37.1", "kubelet": {}},
        **spec,
    }
    return PodInputs(
        group=GROUP,
        namespace="default",
        name="demo",
        spec=msgspec.convert(body, TenantControlPlaneSpec),
        storage=storage,
        address=address,
        checksums={"ca": "c0ffee"},
    )


def cases() -> dict[str, PodInputs]:
    full: dict[str, Any] = {
        "controlPlane": {
            "deployment": {
                "replicas": 3,
                "registrySettings": {"registry": "mirror.example.org/k8s/", "tagSuffix": "-fips"},
                "extraArgs": {
                    "apiServer": ["--audit-log-path=-", "--secure-port=16443", "anonymous-auth"],
                    "scheduler": ["--v=4"],
                },
                "resources": {"apiServer": {"requests": {"cpu": "250m", "memory": "512Mi"}}},
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [{"key": "hosted", "operator": "Exists"}],
                "affinity": {"podAntiAffinity": {}},
                "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone"}],
                "runtimeClassName": "kata",
                "additionalMetadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
                "podAdditionalMetadata": {"labels": {"team": "a"}, "annotations": {"note": "c"}},
                "additionalInitContainers": [{"name": "wait", "image": "busybox"}],
                "additionalContainers": [{"name": "audit", "image": "audit"}],
                "additionalVolumes": [{"name": "policy", "configMap": {"name": "policy"}}],
                "additionalVolumeMounts": {"apiServer": [{"name": "policy", "mountPath": "/etc/policy"}]},
            },
            "service": {
                "serviceType": "LoadBalancer",
                "additionalMetadata": {"annotations": {"pool": "blue"}},
                "additionalPorts": [{"name": "metrics", "port": 9000, "targetPort": "metrics"}],
            },
        },
        "networkProfile": {
            "address": "10.40.0.20",
            "allowAddressAsExternalIP": True,
            "loadBalancerClass": "example.org/lb",
            "loadBalancerSourceRanges": ["10.0.0.0/8"],
            "clusterDomain": "example.local",
        },
        "addons": {"konnectivity": {}},
    }
    events = Storage(
        "default", "etcd", ("a:2379", "b:2379"), "demo", "demo", overrides=(Override("/events", ("c:2379", "d:2379")),)
    )
    sql = Storage("pg", "PostgreSQL", ("pg.example.org:5432",), "default_demo", "default_demo")
    plain_sql = Storage("my", "MySQL", ("my.example.org:3306",), "default_demo", "default_demo", tls=False)
    return {
        "plain": inputs(),
        "full": inputs(**full),
        "overrides": inputs(events),
        "postgres": inputs(sql),
        "mysql": inputs(plain_sql),
        "nodeport": inputs(controlPlane={"service": {"serviceType": "NodePort"}}, networkProfile={"port": 31443}),
        "loopback": inputs(address="127.0.0.1"),
        "hostname": inputs(address="lb.example.org"),
    }


def render(case: PodInputs) -> str:
    return "---\n".join((yaml.dump(render_deployment(case)), yaml.dump(render_tenant_service(case))))


if __name__ == "__main__":
    for name, case in cases().items():
        (GOLDEN / f"{name}.yaml").write_text(render(case))
