"""The control plane's virtual address in either family."""

from __future__ import annotations

import pytest
import yaml

from homeport.infra.cluster.vip import VirtualAddress, render_manifest


@pytest.mark.parametrize(
    ("host", "address", "length"), [("10.0.0.100", "10.0.0.100", "32"), ("FD00:0::64", "fd00::64", "128")]
)
def test_the_address_stands_alone_on_its_interface(host: str, address: str, length: str) -> None:
    pod = yaml.safe_load(render_manifest(VirtualAddress(host, 6443, "ens3"), super_admin=False))
    env = {each["name"]: each["value"] for each in pod["spec"]["containers"][0]["env"]}
    assert (env["address"], env["vip_subnet"]) == (address, length)
