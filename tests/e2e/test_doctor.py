"""The doctor names the right cause first, and the user's own object says it too: of each fault that is planted in a
cluster of `homeport up --sim`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import homeport.sim.prism
from apply import apply
from e2e.doctor_fault import FAULTS, TAKEN, Fault, cluster
from e2e.doctor_harvester_fault import HARVESTER_FAULTS, IMAGES
from e2e.doctor_platform_fault import PLATFORM_FAULTS
from homeport.api.meta import Resource
from homeport.app.doctor.diagnosis import Commands, Diagnosis
from homeport.app.doctor.examine import examine
from homeport.app.doctor.gather import gather
from homeport.app.tree.read import NoCluster
from homeport.capi.object.summary import conditions_of
from homeport.client import kubeconfig
from homeport.client.errors import NotFound
from homeport.client.http import HttpClient
from homeport.client.protocol import Key
from homeport.machinery.yaml import load_all

pytestmark = [pytest.mark.timeout(600)]

SECONDS = 240.0
ROOTS = (
    Resource("butler.butlerlabs.dev", "v1alpha1", "TenantCluster", "tenantclusters"),
    Resource("k0rdent.mirantis.com", "v1beta1", "ClusterDeployment", "clusterdeployments"),
    Resource("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters"),
)
ALL = {**FAULTS, **HARVESTER_FAULTS, **PLATFORM_FAULTS}
WORLD = Path(homeport.sim.prism.__file__).parent / "default.yaml"


class Plane:
    def __init__(self, data: Path) -> None:
        self.data = data

    @property
    def kubeconfig(self) -> Path:
        return self.data / "kubeconfig"

    def homeport(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "homeport", *arguments, "--data", str(self.data)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=90)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def inject(self, simulator: str, faults: Sequence[dict[str, Any]]) -> None:
        """Adds faults to a simulator."""
        states = json.loads(self.homeport("status", "-o", "json").stdout)["simulators"]
        state = next(each for each in states if each["name"] == simulator)
        name, value = Path(state["adminHeader"]).read_text().strip().split(": ", 1)
        body = json.dumps({"faults": list(faults)}).encode()
        request = urllib.request.Request(f"{state['admin']}/faults", body, {name: value}, method="POST")
        urllib.request.urlopen(request, timeout=10).close()

    def plant(self, name: str) -> None:
        """The objects of a fault: in a namespace of its own, unless they need those of a platform."""
        fault = ALL[name]
        objects = [self._filled(each) for each in within(space_of(name), fault.objects(vip_of(name)))]
        apply(self.kubeconfig, [*([] if fault.namespace else [namespace_of(name)]), *objects])

    def _filled(self, value: Any) -> Any:
        """Kubeconfigs of Harvester are made from the one that the plane has written."""
        if isinstance(value, dict):
            return {name: self._filled(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._filled(each) for each in value]
        if callable(value):
            [config] = load_all((self.data / "harvester-kubeconfig.yaml").read_text())
            return json.dumps(value(config))
        return value

    def examine(self, name: str, namespace: str) -> list[Diagnosis]:
        async def run() -> list[Diagnosis]:
            client = HttpClient(kubeconfig.load(self.kubeconfig))
            try:
                return examine(
                    await gather(client, Key(namespace, name), Commands(str(self.kubeconfig)), ask_providers=True)
                )
            except NoCluster:
                return []
            finally:
                await client.close()

        return asyncio.run(run())

    def said(self, name: str, namespace: str) -> str:
        """What the user's own object says: the TenantCluster, ClusterDeployment or Cluster, and what `status` shows."""

        async def run() -> str:
            client = HttpClient(kubeconfig.load(self.kubeconfig))
            try:
                for kind in ROOTS:
                    with contextlib.suppress(NotFound):
                        found = await client.get(kind, Key(namespace, name))
                        return "\n".join(str(each.get("message")) for each in conditions_of(found))
                return ""
            finally:
                await client.close()

        return asyncio.run(run())

    def until_said(self, namespace: str, fault: Fault, vip: str) -> None:
        deadline = time.monotonic() + SECONDS
        words = [word.replace("VIP", vip) for word in (fault.words if fault.own is None else fault.own)]
        while lacking := [word for word in words if word not in (text := self.said(fault.name, namespace))]:
            assert time.monotonic() < deadline, f"{lacking} not in: {text}"
            time.sleep(0.3)

    def until_well(self, namespace: str) -> None:
        deadline = time.monotonic() + SECONDS
        while found := self.examine("harbour", namespace):
            assert time.monotonic() < deadline, found
            time.sleep(0.3)

    def until_named(self, namespace: str, fault: Fault, vip: str) -> list[Diagnosis]:
        """What is found, as soon as the first cause is the right one."""
        deadline = time.monotonic() + SECONDS
        while not fits(found := self.examine(fault.name, namespace), fault, vip):
            assert time.monotonic() < deadline, "\n".join(map(str, found)) or "nothing is wrong"
            time.sleep(0.3)
        return found


def fits(found: list[Diagnosis], fault: Fault, vip: str) -> bool:
    if not found:
        return False
    first = found[0]
    words = all(word.replace("VIP", vip) in f"{first.place} {first.message}" for word in fault.words)
    return (first.serious or fault.notice) and words and (not fault.cause or first.cause == fault.cause)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    folder = tmp_path_factory.mktemp("doctor")
    made, world = Plane(folder / "data"), folder / "world.yaml"
    world.write_text(f"{WORLD.read_text().rstrip()}\n- {{name: operator, passwords: [operator-password]}}\n")
    made.homeport("up", "--listen", "127.0.0.1:0", "--sim", "--sim-world", f"prism={world}", "--detach")
    try:
        apply(made.kubeconfig, cluster(TAKEN))
        made.until_well("default")  # one of the faults is an endpoint that it has
        yield made
    finally:
        made.homeport("down", check=False)


@pytest.fixture(scope="module")
def planted(plane: Plane) -> Plane:
    """With all faults, none in the way of another."""
    for simulator in ("prism", "harvester"):
        chosen = [each for each in ALL.values() if each.simulator == simulator and not each.late]
        plane.inject(simulator, [each for fault in chosen for each in fault.faults])
    apply(plane.data / "harvester-kubeconfig.yaml", IMAGES)
    for name in ALL:
        plane.plant(name)
    return plane


def space_of(name: str) -> str:
    return ALL[name].namespace or name


def vip_of(name: str) -> str:
    return f"10.0.0.{20 + list(ALL).index(name)}"


def within(namespace: str, objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**each, "metadata": {"namespace": namespace, **each["metadata"]}} for each in objects]


def namespace_of(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def test_there_are_forty_faults() -> None:
    assert len(FAULTS) >= 40
    assert len(HARVESTER_FAULTS) >= 6
    assert len(ALL) == len(FAULTS) + len(HARVESTER_FAULTS) + len(PLATFORM_FAULTS)


@pytest.mark.parametrize("name", ALL)
def test_the_first_finding_is_the_cause(planted: Plane, name: str) -> None:
    fault = ALL[name]
    if fault.late:
        planted.until_well(name)
        planted.inject(fault.simulator, fault.faults)
    found = planted.until_named(space_of(name), fault, vip_of(name))
    assert found[0].cure.startswith(("kubectl ", "homeport "))
    planted.until_said(space_of(name), fault, vip_of(name))


def test_a_cluster_that_works_has_no_findings_and_the_exit_code_tells(plane: Plane) -> None:
    plane.until_well("default")
    done = plane.homeport("doctor", "cluster", "harbour")
    assert done.stdout == "nothing is wrong\n"
    refused = plane.homeport("doctor", "cluster", "harbor", check=False)
    assert (refused.returncode, "did you mean 'harbour'?" in refused.stderr) == (1, True)


def test_findings_are_data_and_sentences_with_a_command(plane: Plane) -> None:
    fault = FAULTS["secret-missing"]
    apply(plane.kubeconfig, [namespace_of("sick"), *within("sick", fault.objects("10.0.0.99"))])
    plane.until_named("sick", fault, "")
    text = plane.homeport("doctor", "cluster", "harbour", "-n", "sick", check=False)
    assert text.returncode == 1
    assert text.stdout.startswith("1. NutanixCluster sick/harbour: ")
    assert f"   next: kubectl --kubeconfig {plane.kubeconfig} " in text.stdout
    listed = json.loads(plane.homeport("doctor", "-n", "sick", "-o", "json", check=False).stdout)
    assert listed[0]["cause"] == "InvalidConfiguration"
