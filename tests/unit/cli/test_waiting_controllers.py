"""homeport status and homeport doctor name the controllers of an installation that wait for a Lease."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from homeport.app.components import COMPONENTS
from homeport.app.kubernetes.layout import COMBINED, SPLIT_HOLDER, Placement, placements
from homeport.app.kubernetes.workload import PodOptions, render
from homeport.app.report.lease import DEPLOYMENT
from homeport.capi.definition.kind import definitions
from homeport.cli.main import group
from homeport.client.protocol import Key
from homeport.runtime.lease import LEASE
from homeport.runtime.shard import GROUP_LABEL
from homeport.runtime.testing import Plane, plane

HOME = Key(*COMBINED.lease)
CORE = Key("capi-system", "capi-controller-manager")
CORE_PLACE = next(each for each in placements(COMPONENTS, "split") if each.lease == CORE)
YEARS = 315_360_000
NAMESPACES = (HOME.namespace, CORE.namespace)


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Plane, Path]]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    async with plane(crds=definitions(), serve=True) as p:
        await p.have(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES))
        file = tmp_path / "kubeconfig"
        file.write_text(p.server.pki.kubeconfig(p.server.url))
        yield p, file


async def install(p: Plane, placement: Placement) -> None:
    await p.client.create(render(placement, PodOptions(replicas=0))[0] | {"status": {}}, kind=DEPLOYMENT)
    deployment = await p.client.get(DEPLOYMENT, Key(placement.namespace, placement.name))
    deployment["spec"]["replicas"] = 2
    await p.client.replace(deployment, kind=DEPLOYMENT)


async def hold(p: Plane, key: Key, holder: str, *, ago: float = 1, seconds: int = 15, **labels: str) -> None:
    renewed = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=ago)
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": seconds,
        "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    meta = {"name": key.name, "namespace": key.namespace, "labels": labels}
    await p.client.create({"metadata": meta, "spec": spec}, kind=LEASE)


async def shown(file: Path, *command: str) -> str:
    """In a thread of its own: the server needs the event loop."""
    result: Any = await asyncio.to_thread(CliRunner().invoke, group, [*command, "--kubeconfig", str(file)])
    assert result.exit_code in (0, 1), result.output
    return " ".join(str(result.output).split())


async def test_the_combined_layout_waits_for_one_of_the_split_layout(served: tuple[Plane, Path]) -> None:
    p, file = served
    await install(p, COMBINED)
    await hold(p, CORE, "capi-controller-manager-7-abc")
    for command in ("status", "doctor"):
        text = await shown(file, command)
        assert "Deployment homeport-system/homeport-controller-manager: its controllers do not work" in text
        assert f"they wait for Lease {CORE}, held by capi-controller-manager-7-abc" in text
        assert "kubectl delete lease -n capi-system capi-controller-manager" in text


async def test_the_split_layout_waits_for_the_combined_one(served: tuple[Plane, Path]) -> None:
    p, file = served
    await install(p, CORE_PLACE)
    await hold(p, HOME, "harbour-7-abc")
    for command in ("status", "doctor"):
        text = await shown(file, command)
        assert "Deployment capi-system/capi-controller-manager: its controllers do not work" in text
        assert f"they wait for Lease {HOME}, held by harbour-7-abc" in text
        assert "kubectl delete lease -n homeport-system homeport" in text


async def test_controllers_that_work_or_stand_by_and_dead_holders_are_not_mentioned(
    served: tuple[Plane, Path],
) -> None:
    p, file = served
    await install(p, COMBINED)
    await hold(p, HOME, "homeport-controller-manager-7-abc")
    await hold(p, CORE, "dead", ago=600)
    assert "Lease" not in await shown(file, "status")
    assert "nothing is wrong" in await shown(file, "doctor")


async def test_deployments_of_the_split_layout_that_share_the_common_lease_work(served: tuple[Plane, Path]) -> None:
    p, file = served
    await install(p, CORE_PLACE)
    await hold(p, HOME, SPLIT_HOLDER)
    await hold(p, CORE, "capi-controller-manager-7-abc")
    assert "Lease" not in await shown(file, "status")


@pytest.mark.parametrize(
    ("key", "labels"), [(HOME, {}), (Key(HOME.namespace, "homeport-m1"), {GROUP_LABEL: "homeport"})]
)
async def test_a_lease_for_years_that_nobody_renews_is_named_with_the_command_that_deletes_it(
    served: tuple[Plane, Path], key: Key, labels: dict[str, str]
) -> None:
    p, file = served
    await install(p, COMBINED)
    await hold(p, key, "gone-7", ago=3600, seconds=YEARS, **labels)
    for command in ("status", "doctor"):
        text = await shown(file, command)
        assert f"Lease {key}: held by gone-7, who last renewed it at " in text
        assert f"delete it with 'kubectl delete lease -n {key.namespace} {key.name}'" in text


async def test_a_lease_for_years_of_another_layout_is_named_with_who_waits_for_it(served: tuple[Plane, Path]) -> None:
    p, file = served
    await install(p, COMBINED)
    await hold(p, CORE, "gone-7", ago=3600, seconds=YEARS)
    text = await shown(file, "status")
    assert f"they wait for Lease {CORE}, held by gone-7, who last renewed it at " in text
    assert "kubectl delete lease -n capi-system capi-controller-manager" in text
    assert text.count("last renewed") == 1
