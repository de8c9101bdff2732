"""How kube-apiserver reaches the cluster's network: through the socket of konnectivity-server. Pure."""

from __future__ import annotations

from homeport.hosted.tenant.podinputs import SOCKETS
from homeport.machinery import yaml


def render_egress_selector() -> str:
    tunnel = {"proxyProtocol": "GRPC", "transport": {"uds": {"udsName": f"{SOCKETS}/konnectivity-server.socket"}}}
    return yaml.dump(
        {
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [{"name": "cluster", "connection": tunnel}],
        }
    )
