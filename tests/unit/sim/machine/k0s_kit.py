"""User data of k0s machines as a bootstrap provider writes it, and tokens to join with."""

from __future__ import annotations

import base64
import gzip
from typing import Any

import yaml

from homeport.sim.machine.workload.object import bootstrap_token
from unit.sim.machine.sim_kit import VIP, Secrets, Sim, b64, cloud_config

K0S_IMAGE = "ubuntu-22.04-k0s"
VERSION = "v1.31.5+k0s.0"
TOKEN = "k0stok.0123456789abcdef"
START = "(command -v systemctl > /dev/null 2>&1 && systemctl start k0scontroller) || /usr/local/bin/k0s start"


def download(version: str = VERSION) -> str:
    variables = f"K0S_INSTALL_PATH=/usr/local/bin K0S_VERSION={version}"
    return f"curl -sSfL --retry 5 https://get.k0s.sh | {variables} sh"


GET = download()


def balancing(*addresses: str) -> dict[str, Any]:
    instance = {"virtualIPs": [f"{each}/24" for each in addresses], "authPass": "secret"}
    return {"enabled": True, "type": "Keepalived", "keepalived": {"vrrpInstances": [instance]}}


def cluster_spec(**more: Any) -> dict[str, Any]:
    return {"api": {"externalAddress": VIP}, "network": {"controlPlaneLoadBalancing": balancing(VIP)}, **more}


def controller_data(
    secrets: Secrets | None,
    *flags: str,
    config: dict[str, Any] | None = None,
    token: str = "",
    get: str = GET,
    files: list[dict[str, Any]] | None = None,
    post: tuple[str, ...] = (),
) -> bytes:
    """A first controller, or with a token one more."""
    given = [] if secrets is None or token else secrets.files()
    written = [{**file, "path": file["path"].replace("/etc/kubernetes", "/var/lib/k0s")} for file in given]
    spec = cluster_spec() if config is None else config
    written.append({"path": "/etc/k0s.yaml", "content": yaml.safe_dump({"kind": "ClusterConfig", "spec": spec})})
    if token:
        written.append({"path": "/etc/k0s.token", "permissions": "0600", "content": token})
        flags = (*flags, "--token-file /etc/k0s.token")
    install = "/usr/local/bin/k0s install controller --force --enable-dynamic-config --config /etc/k0s.yaml"
    return cloud_config([*written, *(files or ())], get, f"{install} {' '.join(flags)}", START, *post)


async def k0s_token(sim: Sim, **more: Any) -> str:
    """For a worker."""
    secret, kind = bootstrap_token({"token": TOKEN, "groups": ["system:bootstrappers:worker"], **more}, sim.clock.now())
    await sim.cluster.put([(secret, kind)])
    return encode_token(sim, sim.cluster.facts.server, "kubelet-bootstrap", TOKEN)


async def controller_token(
    sim: Sim, *, host: str = VIP, joins: bool = True, identity: str = "ctl001", **more: Any
) -> str:
    token = f"{identity}.0123456789abcdef"
    secret, kind = bootstrap_token({"token": token, "usages": ["api-auth"], **more}, sim.clock.now())
    if joins:
        secret["data"]["usage-controller-join"] = b64(b"true")
    await sim.cluster.put([(secret, kind)])
    return encode_token(sim, f"https://{host}:9443", "controller-bootstrap", token)


def encode_token(sim: Sim, server: str, user: str, token: str) -> str:
    config = yaml.safe_load(sim.cluster.pki.cluster_info(server))
    config["clusters"][0]["name"] = "k0s"
    config |= {
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "k0s", "context": {"cluster": "k0s", "user": user}}],
        "current-context": "k0s",
    }
    return base64.b64encode(gzip.compress(yaml.safe_dump(config).encode())).decode()


def worker_data(
    token: str, name: str = "md-0", *flags: str, get: str = GET, kubelet: str = "--cloud-provider=external"
) -> bytes:
    install = (
        f"/usr/local/bin/k0s install worker --token-file /etc/k0s.token --labels=k0smotron.io/machine-name={name} "
        f'{" ".join(flags)} --kubelet-extra-args="--hostname-override={name} {kubelet}"'
    )
    return cloud_config(
        [{"path": "/etc/k0s.token", "permissions": "0600", "content": token}], get, install, "systemctl start k0sworker"
    )
