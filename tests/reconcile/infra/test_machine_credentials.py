"""Machines that name their own credentials: the Secret is kept while they need it, and given back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from homeport.api.meta import Resource
from homeport.api.nutanix.v1beta1 import NutanixMachine
from homeport.capi.cloud import Sources
from homeport.capi.definition import kind as capi_definition
from homeport.client.protocol import Key, MergePatch
from homeport.infra.install import _add_sources, _Links
from homeport.ipam.definition import definitions as pool_definitions
from homeport.providers.nutanix import definition
from homeport.providers.nutanix.install import SOURCE_FINALIZER, install
from homeport.runtime.definition import establish
from homeport.runtime.manager import Manager
from homeport.runtime.testing import plane, virtual

SECRET = Resource("", "v1", "Secret", "secrets")
OWN = Key("default", "own")
NAMED = "example.com/credentials"


def _sources(machine: NutanixMachine) -> Sources:
    name = machine.metadata.annotations.get(NAMED, "")
    return Sources((Key(machine.metadata.namespace, name),)) if name else Sources()


def _machine() -> dict[str, Any]:
    spec = {"vcpuSockets": 1, "vcpusPerSocket": 1, "memorySize": "4Gi", "systemDiskSize": "40Gi", "subnet": []}
    meta = {"name": "a", "namespace": "default", "annotations": {NAMED: OWN.name}}
    return {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "NutanixMachine",
        "metadata": meta,
        "spec": spec,
    }


@virtual
async def test_a_secret_that_a_machine_names_is_kept_while_the_machine_exists() -> None:
    async with plane() as p:
        await establish(p.client, *capi_definition.definitions(), *pool_definitions(), *definition.definitions())
        provider = replace(install(Manager(p.client, clock=p.clock)), machine_sources=_sources)
        p.manager = Manager(p.server.client(), clock=p.clock)
        links = _Links(p.manager, provider)
        _add_sources(p.manager, provider, links)
        await p.start()
        await p.have({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "own", "namespace": "default"}})
        await p.have(_machine())
        await p.until(SECRET, OWN, lambda s: SOURCE_FINALIZER in (s.metadata.get("finalizers") or ()), 30)
        assert list(links.machines_of_users(await p.client.get(SECRET, OWN))) == [Key("default", "a")]
        await p.client.patch(NutanixMachine, Key("default", "a"), MergePatch({"metadata": {"annotations": None}}))
        await p.until(SECRET, OWN, lambda s: not s.metadata.get("finalizers"), 30)
