"""k0s control planes in Pods that were written by hand, and workers that join them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from capikit.handmade import ca_files, encoded, make_issuer
from homeport.apiserver.auth import certificate as certs
from homeport.client.protocol import Key
from homeport.machinery import condition
from homeport.runtime.clock import run_virtual
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.kind import CONFIG_MAP, NODE
from scenario.builtin.plane import POD
from scenario.hosted.stage import STATEFUL_SET, Stage, stage
from unit.sim.machine.k0s_kit import K0S_IMAGE, k0s_token, worker_data
from unit.sim.machine.sim_kit import Secrets, Sim

LABELS = {"app": "kmc"}


def _objects(s: Stage, address: str) -> list[dict[str, Any]]:
    files = ca_files(make_issuer("kubernetes-ca", s.now), "ca") | {"sa.key": certs.key_pem(certs.make_key())}
    config = {"kind": "ClusterConfig", "spec": {"api": {"externalAddress": address, "sans": [address]}}}
    script = "#!/bin/sh\nset -eu\nexec k0s controller --config=/etc/k0s/k0s.yaml --enable-dynamic-config\n"
    extra = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied, namespace: kube-system}\ndata: {a: b}\n"
    copy = "set -eu; mkdir -p /var/lib/k0s/pki; cp -L /certs-init/*.* /var/lib/k0s/pki/"
    image = "registry.example/k0s:v1.31.5-k0s.0"
    data = {"name": "data", "mountPath": "/var/lib/k0s"}
    container = {
        "name": "controller",
        "image": image,
        "command": ["/bin/sh", "/entrypoint.sh"],
        "readinessProbe": {"exec": {"command": ["k0s", "status"]}, "periodSeconds": 1},
        "volumeMounts": [
            {"name": "config", "mountPath": "/entrypoint.sh", "subPath": "entrypoint.sh"},
            {"name": "config", "mountPath": "/etc/k0s/k0s.yaml", "subPath": "k0s.yaml"},
            {"name": "manifests", "mountPath": "/var/lib/k0s/manifests/extra"},
            data,
        ],
    }
    init = {
        "name": "certs-init",
        "image": image,
        "command": ["/bin/sh", "-c", copy],
        "volumeMounts": [{"name": "certs", "mountPath": "/certs-init"}, data],
    }
    volumes = [
        {"name": "config", "secret": {"secretName": "kmc-config"}},
        {"name": "manifests", "secret": {"secretName": "kmc-manifests"}},
        {"name": "certs", "secret": {"secretName": "kmc-certs"}},
    ]
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec = {
        "serviceName": "kmc",
        "replicas": 1,
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {"initContainers": [init], "containers": [container], "volumes": volumes},
        },
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }

    def meta(version: str, kind: str, name: str) -> dict[str, Any]:
        return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "default"}}

    texts = {"entrypoint.sh": script.encode(), "k0s.yaml": yaml.safe_dump(config).encode()}
    return [
        meta("v1", "Secret", "kmc-config") | {"data": encoded(texts)},
        meta("v1", "Secret", "kmc-manifests") | {"data": encoded({"extra.yaml": extra.encode()})},
        meta("v1", "Secret", "kmc-certs") | {"data": encoded(files)},
        meta("apps/v1", "StatefulSet", "kmc") | {"spec": spec},
    ]


async def _start(s: Stage) -> tuple[str, WorkloadCluster]:
    ports = [{"name": "api", "port": 6443}, {"name": "konnectivity", "port": 8132}]
    meta = {"name": "kmc", "namespace": "default"}
    body = {"type": "LoadBalancer", "selector": LABELS, "ports": ports}
    await s.have({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": body})
    address = await s.address("kmc")
    await s.have(*_objects(s, address))
    await s.plane.until(lambda: s.ready(STATEFUL_SET, "kmc", 1), "k0s is ready")
    (cluster,) = s.fleet.hosted.values()
    return address, cluster


def test_a_k0s_worker_joins_and_stays_over_a_restart_of_the_pod(tmp_path: Path) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            address, cluster = await _start(s)
            assert cluster.version() == "v1.31.5"
            applied = await cluster.client().get(CONFIG_MAP, Key("kube-system", "applied"))
            assert applied["data"] == {"a": "b"}
            await s.plane.settle(2)
            machines = Sim(s.network, s.fleet, s.plane.clock, Secrets.make(s.plane.clock))
            cluster.facts.endpoint = (address, 6443)
            console = await machines.boot("md-0", worker_data(await k0s_token(machines)), image=K0S_IMAGE)
            node = await machines.node("md-0")
            assert node is not None, console
            await s.plane.delete(POD, "kmc-0")
            await s.plane.settle(90)
            await s.plane.until(lambda: s.ready(STATEFUL_SET, "kmc", 1), "k0s is back")
            await s.plane.settle(90)
            found = await cluster.client().get(NODE, Key("", "md-0"))
            assert condition.is_true(found["status"]["conditions"], "Ready")

    run_virtual(main())


def test_k0s_without_its_configuration_ends_with_words_in_its_log(tmp_path: Path) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            config, *others = _objects(s, "10.240.0.99")
            del config["data"]["k0s.yaml"]
            container = others[-1]["spec"]["template"]["spec"]["containers"][0]
            container["volumeMounts"] = [
                each for each in container["volumeMounts"] if each.get("subPath") != "k0s.yaml"
            ]
            await s.have(config, *others)
            words = "open /etc/k0s/k0s.yaml: no such file or directory"
            await s.plane.until(lambda: words in s.log("kmc", "controller"), "the words in the log")

    run_virtual(main())
