"""talosconfig of management clusters: renewed in time, wherever the Cluster is."""

from __future__ import annotations

import base64
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Unstructured
from homeport.capi.definition.kind import definitions
from homeport.capi.remote import pki
from homeport.client.protocol import Key, MergePatch
from homeport.machinery.talos.bundle import Bundle, render_bundle
from homeport.machinery.talos.certificate import make_authority
from homeport.machinery.talos.client import remaining, render_talosconfig
from homeport.platforms.butler.bootstrap.name import BOOTSTRAP_LABEL
from homeport.platforms.butler.bootstrap.renewal import install_renewal
from homeport.runtime.testing import Plane, plane, virtual

KEY, SECRET = Key("default", "mgmt"), Key("default", "mgmt-talosconfig")
YEAR = 365 * 86400.0


def small_bundle(now: float) -> Bundle:
    """Its key for service accounts is not the large one of Talos, which takes seconds."""
    one, talos = (make_authority("a", pki.moment(now), ed25519_key=each) for each in (False, True))
    return Bundle("id", "secret", "token", "box", "trust", one, one, one, one.key, talos)


async def have_secret(p: Plane, name: str, data: dict[str, str], owner: dict[str, Any]) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default", "ownerReferences": [owner]},
        "stringData": data,
    }
    await p.client.create(Unstructured(body), kind=pki.SECRET)


async def left(p: Plane) -> float:
    secret = await p.client.get(pki.SECRET, SECRET)
    return remaining(base64.b64decode(secret["data"]["talosconfig"]), p.clock.now())


@virtual
async def test_a_talosconfig_is_renewed_without_its_cluster_bootstrap_unless_the_cluster_is_paused() -> None:
    async with plane(lambda p: install_renewal(p.manager), crds=definitions()) as p:
        meta = {"name": "mgmt", "namespace": "default", "labels": {BOOTSTRAP_LABEL: "mgmt"}}
        spec = {"paused": True, "clusterNetwork": {"pods": {"cidrBlocks": ["10.244.0.0/16"]}}}
        body = {"apiVersion": Cluster.__resource__.api_version, "kind": "Cluster", "metadata": meta, "spec": spec}
        made = await p.client.create(Unstructured(body), kind=Cluster.__resource__)
        bundle = small_bundle(p.clock.now())
        owner = {"apiVersion": made["apiVersion"], "kind": "Cluster", "name": "mgmt", "uid": made.uid}
        await have_secret(p, "mgmt-talos", {"secrets.yaml": render_bundle(bundle)}, owner)
        now = pki.moment(p.clock.now() - 0.6 * YEAR)
        text = render_talosconfig("mgmt", bundle, ["10.0.0.1"], ["10.0.0.1"], now)
        await have_secret(p, SECRET.name, {"talosconfig": text}, owner)
        await p.settle(60)
        assert await left(p) < 0.5
        await p.client.patch(Cluster, KEY, MergePatch({"spec": {"paused": False}}))
        await p.settle(60)
        assert await left(p) > 0.99
