"""The console of a VM, where KubeVirt keeps its log."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.apiserver.kinds.pod.log import LogBuffer
from homeport.client.protocol import Key
from homeport.infra.machine.console import read_sign
from homeport.providers.harvester.infracluster.resource import POD
from homeport.providers.harvester.machine.console import read_console
from homeport.runtime.testing import shared_pki
from unit.providers.harvester.test_harvester_connection import admin, connector, encoded, kubeconfig, served

SAYS = "[   12.000000] this version of kubeadm only supports deploying clusters with version >= 1.29.0: got v1.31.0"


def launcher(*containers: str) -> dict[str, Any]:
    labels = {"vm.kubevirt.io/name": "harbour-cp-1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "virt-launcher-harbour-cp-1-abcde", "namespace": "default", "labels": labels},
        "spec": {"nodeName": "n", "containers": [{"name": each, "image": "x"} for each in containers]},
    }


@pytest.mark.parametrize("containers", [("compute", "guest-console-log"), ("compute",)], ids=["kept", "not kept"])
async def test_the_newest_lines_are_read_where_a_log_is_kept(containers: tuple[str, ...]) -> None:
    async with connector() as made, served() as (harvester, url):
        ca = {"certificate-authority-data": encoded(shared_pki().ca_pem)}
        session = await made.open({}, {"kubeconfig": kubeconfig(url, admin(shared_pki()), **ca)})
        assert await read_console(session, Key("default", "harbour-cp-1")) == ()
        await session.client.create(launcher(*containers), kind=POD)
        log = LogBuffer()
        log.write(SAYS)
        harvester.server.builtin.logs.register("default", "virt-launcher-harbour-cp-1-abcde", "guest-console-log", log)
        lines = await read_console(session, Key("default", "harbour-cp-1"))
        assert list(lines) == ([SAYS] if len(containers) > 1 else [])


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (SAYS, "ImageVersionMismatch"),
        ("[   9.1] error execution phase preflight: [preflight] Some fatal errors occurred", "KubeadmFailed"),
        ("[   9.1] [ERROR FileContent--proc-sys-net-ipv4-ip_forward]: contents are not set to 1", "KubeadmFailed"),
        ("[FAILED] Failed to start some unit", "GuestFailed"),
    ],
)
def test_a_line_of_the_console_is_quoted_with_its_cause(line: str, cause: str) -> None:
    sign = read_sign(["[   1.0] booting", line])
    assert sign is not None
    assert sign.cause == cause
    assert line.split("] ", 1)[-1][:40] in sign.message
    assert read_sign(["[   1.0] booting", "login:"]) is None
