"""What a Harvester has, read with a kubeconfig in a Secret."""

from __future__ import annotations

import json

from homeport.app.discovery.discover import discover
from homeport.app.discovery.source import Wanted
from homeport.runtime.testing import virtual
from scenario.harvester import manifest
from scenario.harvester.site import TOKEN, harvester_site


@virtual
async def test_images_networks_storage_classes_hosts_and_zones_are_found() -> None:
    async with harvester_site(start=False) as site:
        content = json.dumps(manifest.kubeconfig(site.harvester.server.pki.ca_pem, TOKEN))
        meta = {"name": "harvester", "namespace": "default"}
        await site.have({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"kubeconfig": content}})
        origin, found = await discover(site.client, site.dial, "default", Wanted(secret="harvester"))
        assert origin == "Harvester, with the credentials of Secret default/harvester"
        names = {kind: {each.name for each in found if each.kind == kind} for kind in {each.kind for each in found}}
        assert "default/talos-1.9" in names["image"]
        assert "default/workloads" in names["network"]
        assert "harvester-longhorn" in names["storage"]
        assert names["host"]
        assert {each.details["system"] for each in found if each.name == "default/talos-1.9"} == {"talos"}
