"""A KubevirtMachine in work, without an API server."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, KubevirtMachine
from homeport.client.protocol import Client, Key
from homeport.infra.protocol import MachineScope
from homeport.infra.vendor.endpoint import Endpoint
from homeport.providers.harvester.image import Image
from homeport.providers.harvester.infracluster.connection import Access, HarvesterSession
from homeport.providers.harvester.infracluster.watch import Watches
from homeport.providers.harvester.machine.plan import Scope
from homeport.runtime.clock import SystemClock

UID = "6a1f2c3d-0000-4000-8000-000000000001"
IMAGE = Image(Key("default", "rocky-9-cloud"), "rocky-9-cloud", "lh-1234", 10 * 2**30)


def scope_of(*, harvester: bool = True, spec: dict[str, Any] | None = None, **more: Any) -> Scope:
    clock, client = SystemClock(), cast(Client, None)
    access = Access(None, "vms", "a test")
    session = HarvesterSession(client, access, Endpoint("test", clock), Watches(client), clock, harvester)
    infra = msgspec.convert(
        {"metadata": {"name": "m1", "namespace": "clusters", "uid": UID}, "spec": spec or {}}, KubevirtMachine
    )
    cluster = KubevirtCluster()
    cluster.metadata.uid = "cluster-uid"
    more.setdefault("user_data", b"#cloud-config\n")
    return MachineScope(infra, session, infra_cluster=cluster, cluster="one", **more)


def vm_template(**inner: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": inner}}}
