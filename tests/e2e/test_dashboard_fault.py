"""Every fault of the simulators: its cause is on the front page, and nobody touches the page."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from e2e.browsing import MARKS, PATIENCE, ROOT, Site, Visit, example, homeport, log_in, start
from e2e.cluster import Cluster as Kubectl
from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, KubevirtMachine
from homeport.api.meta import Unstructured
from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixMachine
from homeport.capi.object.summary import conditions_of
from homeport.client.http import HttpClient
from homeport.client.kubeconfig import load
from homeport.runtime.informer import Informer
from homeport.sim.engine.fault import TASK_VOCABULARY, Vocabulary
from homeport.sim.harvester.fault import VOCABULARY

pytestmark = MARKS
LATEST_SECONDS = 2.0
WATCHED = (
    Cluster.__resource__,
    Machine.__resource__,
    KubeadmControlPlane.__resource__,
    NutanixCluster.__resource__,
    NutanixMachine.__resource__,
    KubevirtCluster.__resource__,
    KubevirtMachine.__resource__,
)
Faults = dict[str, tuple[dict[str, Any], dict[str, Any], str]]
CREATE = {"method": "POST", "route": "/api/vmm/*/ahv/config/vms"}
CREATE_VM = {"verb": "create", "resource": "virtualmachines"}
VM = {"kind": "vm"}
# The fault, what it meets besides machines of the cluster that is called so, and what the front page says.
PRISM: Faults = {
    "refused": ({"kind": "status", "status": 500, "message": "the pool is on fire"}, CREATE, "the pool is on fire"),
    "throttled": ({"kind": "throttle", "retryAfter": 1}, CREATE, "is throttling"),
    "dropped": ({"kind": "drop"}, CREATE, "the server closed the connection"),
    "slow": (
        {"kind": "delay", "seconds": 300},
        CREATE,
        r"waiting for Prism Central .* to answer|did not answer within 60 s",
    ),
    "outdated": (
        {"kind": "stale", "seconds": 600},
        {"method": "GET"},
        r"task [0-9a-f-]+ has created VM .* does not show it: its answers may be old",
    ),
    "failed": (
        {"kind": "task-failure", "code": "VMM-30100", "message": "The disk image is corrupt."},
        {"operation": "kVmCreate"},
        "could not be created: The disk image is corrupt",
    ),
    "hung": (
        {"kind": "task-hang"},
        {"operation": "kVmCreate"},
        r"is being created \(task [0-9a-f-]+, (queued|running)",
    ),
    "crashed": ({"kind": "crash"}, VM, "is being powered on"),
    "dark": ({"kind": "no-boot"}, VM, "does not answer yet: if this lasts, look at its console"),
    "cut-off": ({"kind": "isolation", "lacks": ["internet", "dns", "registry"]}, VM, "has not joined yet"),
    "homeless": ({"kind": "address-late"}, VM, "has no address yet"),
    "evicted": ({"kind": "address-loss"}, VM, "has no address yet"),
}
HARVESTER: Faults = {
    "h-refused": ({"kind": "status", "status": 500, "message": "etcd is full"}, CREATE_VM, "etcd is full"),
    "h-throttled": ({"kind": "throttle", "retryAfter": 1}, CREATE_VM, "asks for fewer requests"),
    "h-dropped": ({"kind": "drop"}, CREATE_VM, "the server closed the connection"),
    "h-slow": ({"kind": "delay", "seconds": 300}, CREATE_VM, r"waiting for .* to answer|did not answer in time"),
    "h-crashed": ({"kind": "crash"}, VM, "has stopped soon after its start: look at its console"),
    "h-dark": ({"kind": "no-boot"}, VM, "has no address yet: check that the image runs qemu-guest-agent"),
    "h-silent": ({"kind": "agent-silence"}, VM, "has no address yet: check that the image runs qemu-guest-agent"),
    "h-homeless": ({"kind": "address-late"}, VM, "has no address yet: check .* DHCP server"),
    "h-evicted": ({"kind": "address-loss"}, VM, "reports no address, so that it can't be asked|has no address yet"),
}
# Clusters become healthy though these go on: sessions are opened again, watches too, old answers are not believed, and
# a machine whose address changes keeps its Node.
HARMLESS_PRISM: Faults = {
    "expired": ({"kind": "session-expiry"}, CREATE, ""),
    "moved": ({"kind": "address-change"}, VM, ""),
}
HARMLESS_HARVESTER: Faults = {
    "h-cut": ({"kind": "watch-cut", "seconds": 1}, {"verb": "watch", "resource": "virtualmachines"}, ""),
    "h-moved": ({"kind": "address-change"}, VM, ""),
    "h-outdated": ({"kind": "stale", "seconds": 600}, {"verb": "get", "resource": "virtualmachines"}, ""),
}
# These meet all machines: they come last, one after the other.
OUTAGE = {"name": "outage", "match": {"kind": "cluster"}, "effect": {"kind": "outage"}}
FULL = {"name": "full", "match": {"cluster": "nutanix-cluster-1"}, "effect": {"kind": "full-disk"}}
NODES = {"name": "nodes", "match": {"kind": "node"}, "effect": {"kind": "outage"}}
NO_FILE = {"name": "no-file", "match": {"kind": "image"}, "effect": {"kind": "import-failure"}}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, kubectl: str) -> Iterator[Site]:
    made = start(tmp_path_factory.mktemp("fault"), kubectl)
    kubeconfig = made.data / "harvester-kubeconfig.yaml"
    Kubectl("harvester", kubectl, kubeconfig, made.data).ok(
        "apply", "-f", str(ROOT / "examples/06-harvester/image.yaml")
    )
    made.kubectl.ok("create", "secret", "generic", "harvester-kubeconfig", f"--from-file=kubeconfig={kubeconfig}")
    yield made
    made.stop()


def inject(site: Site, simulator: str, faults: list[dict[str, Any]], method: str = "POST") -> None:
    states = json.loads(homeport("status", "--data", str(site.data), "-o", "json").stdout)["simulators"]
    state = next(each for each in states if each["name"] == simulator)
    name, _, value = (site.data / "sim" / "admin.header").read_text().strip().partition(": ")
    body = json.dumps({"faults": faults}).encode()
    request = urllib.request.Request(f"{state['admin']}/faults", body, {name: value}, method=method)
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=30) as answer:
        assert answer.status == 200


def by_name(faults: Faults) -> list[dict[str, Any]]:
    return [
        {"name": each, "match": {**match, "entity": f"{each}-*"}, "effect": effect}
        for each, (effect, match, _) in faults.items()
    ]


def small(name: str, number: int) -> str:
    """A cluster of one machine: on Harvester if its name begins so."""
    if name.startswith("h-"):
        text = (ROOT / "examples/06-harvester/cluster.yaml").read_text().replace("quay", name)
        text = text.replace("10.40.0.200", f"10.40.0.{number}")
    else:
        text = example(name, f"10.0.0.{number}")
    return text.replace("replicas: 3", "replicas: 1").replace("replicas: 2", "replicas: 0")


# When the page showed which cause of which cluster: every change of the page is looked at before it is drawn.
RECORD = """() => {
  window.shown = [];
  const last = {};
  const look = () => {
    for (const each of document.querySelectorAll("article.sick")) {
      const name = each.querySelector("h2 a").textContent;
      const cause = each.querySelector(".cause").textContent;
      if (last[name] !== cause) shown.push([Date.now(), name, cause]);
      last[name] = cause;
    }
  };
  look();
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
}"""


@pytest.fixture
def visit(site: Site, browser: Browser) -> Iterator[Visit]:
    made = log_in(browser, site.link())
    made.page.evaluate(RECORD)
    yield made
    made.page.context.close()


class Witness:
    """Watches what objects report, as anybody else who may: both this and the page wait for the same writes, so that a
    slow machine is slow for both."""

    def __init__(self, kubeconfig: Path) -> None:
        self._config = load(kubeconfig)
        self._reports: list[tuple[float, str, str]] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._begin(), self._loop).result(60)

    async def _begin(self) -> None:
        self._client = HttpClient(self._config)
        informers: list[Informer[Unstructured]] = [Informer(self._client, each, measured=False) for each in WATCHED]
        for each in informers:
            each.on_change(self._changed)
        self._tasks = [asyncio.create_task(each.run()) for each in informers]
        await asyncio.gather(*(each.synced.wait() for each in informers))

    def _changed(self, old: Unstructured | None, new: Unstructured | None, initial: bool) -> None:
        del old, initial
        for each in conditions_of(new) if new is not None else ():
            if each.get("status") != "True":
                assert new is not None
                self._reports.append((time.time(), new.name, " ".join(str(each.get("message") or "").split())))

    def first(self, cluster: str, said: str) -> float:
        """When an object of the cluster reported this."""
        own = re.compile(f"{cluster}(-|$)")
        found = [at for at, name, text in self._reports if own.match(name) and re.search(said, text)]
        assert found, f"{cluster}: no object reported {said!r}"
        return min(found)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _end(self) -> None:
        for each in self._tasks:
            each.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.close()


@pytest.fixture
def witness(site: Site) -> Iterator[Witness]:
    made = Witness(site.data / "kubeconfig")
    yield made
    made.close()


def article(visit: Visit, name: str) -> Any:
    return visit.page.locator("article.sick").filter(has=visit.page.get_by_role("link", name=name, exact=True))


def linked(visit: Visit, site: Site, name: str) -> dict[str, Any]:
    """The object that the page names as the one that reports the cause."""
    address = article(visit, name).locator(".cause a").get_attribute("href") or ""
    found = re.fullmatch(r"#/object/([^/]+)/([^/]+)/([^/]+)/([^/?]+)", address)
    assert found is not None, f"{name}: {address!r}"
    group, plural, namespace, own = found.groups()
    whole: dict[str, Any] = json.loads(site.kubectl.ok("get", f"{plural}.{group}/{own}", "-n", namespace, "-o", "json"))
    return whole


def reported(obj: dict[str, Any]) -> str:
    return "\n".join(str(each.get("message")) for each in obj["status"]["conditions"] if each["status"] != "True")


def await_report(visit: Visit, site: Site, name: str, said: str) -> None:
    """Some objects report several things in turn, as the controller tries again."""
    until = time.monotonic() + PATIENCE / 1000
    while not re.search(said, told := reported(linked(visit, site, name))):
        assert time.monotonic() < until, f"{name}: the object that the page links to reports {told!r}"


def check(visit: Visit, site: Site, witness: Witness, name: str, said: str) -> None:
    expect(article(visit, name).locator(".cause")).to_contain_text(re.compile(said), timeout=150_000)
    expect(article(visit, name).locator(".cause time")).to_contain_text("since")
    await_report(visit, site, name, said)
    late = shown_after(visit, witness, name, said)
    assert late < LATEST_SECONDS, f"{name}: shown {late:.1f} s after an object reported it"


def shown_after(visit: Visit, witness: Witness, name: str, said: str) -> float:
    """Seconds from the first report of an object, as the API server told others of it, to the page that shows it."""
    told: list[tuple[float, str]] = [(at / 1000, text) for at, who, text in visit.page.evaluate("shown") if who == name]
    shown = min(at for at, text in told if re.search(said, text))
    return shown - witness.first(name, said)


def plant(visit: Visit, site: Site, witness: Witness, faults: Faults, harmless: Faults, first: int) -> None:
    """The page is open before there is anything to show, and is neither clicked nor loaded again."""
    loaded = visit.page.evaluate("performance.timeOrigin")
    inject(site, "harvester" if faults is HARVESTER else "prism", by_name({**faults, **harmless}))
    for number, name in enumerate((*faults, *harmless)):
        site.kubectl.ok("apply", "-f", "-", stdin=small(name, first + number))
    for name, (_, _, said) in faults.items():
        check(visit, site, witness, name, said)
    for name in harmless:
        expect(visit.page.locator("article.well").filter(has_text=name)).to_be_visible(timeout=150_000)
    assert visit.page.evaluate("performance.timeOrigin") == loaded
    assert visit.complaints == []


def kinds(vocabulary: Vocabulary) -> set[str]:
    return {str(each.__struct_config__.tag) for each in vocabulary.effects}  # type: ignore[attr-defined]


def test_every_kind_of_fault_is_planted_here() -> None:
    def planted(*groups: Faults) -> set[str]:
        return {effect["kind"] for each in groups for effect, _, _ in each.values()}

    assert planted(PRISM, HARMLESS_PRISM) | {"outage", "full-disk"} == kinds(TASK_VOCABULARY)
    assert planted(HARVESTER, HARMLESS_HARVESTER) | {"outage", "import-failure"} == kinds(VOCABULARY)


def test_the_cause_of_each_fault_of_prism_central_is_on_the_front_page_with_no_click(
    visit: Visit, site: Site, witness: Witness
) -> None:
    expect(visit.page.locator("main")).to_contain_text("There are no clusters")
    plant(visit, site, witness, PRISM, HARMLESS_PRISM, 20)


def test_the_cause_of_each_fault_of_harvester_is_on_the_front_page_with_no_click(
    visit: Visit, site: Site, witness: Witness
) -> None:
    plant(visit, site, witness, HARVESTER, HARMLESS_HARVESTER, 200)


def test_an_outage_is_on_the_front_page_of_clusters_that_run_and_of_new_ones(
    visit: Visit, site: Site, witness: Witness
) -> None:
    inject(site, "prism", [OUTAGE], "PUT")
    site.kubectl.ok("apply", "-f", "-", stdin=small("late-comer", 61))
    check(visit, site, witness, "late-comer", "cluster 'nutanix-cluster-1' is not available: check its connection")
    # What the new machine has found out, those that run report, too: not when they look again by themselves.
    check(visit, site, witness, "expired", "does not know whether VM .* is on")
    expect(article(visit, "expired").locator(".cause")).to_contain_text("it runs, but can't be managed now: ")
    found_out = witness.first("late-comer", "is not available: check its connection")
    assert witness.first("expired", "does not know whether VM .* is on") - found_out < LATEST_SECONDS
    inject(site, "prism", [], "PUT")
    expect(visit.page.locator("article.well").filter(has_text="expired")).to_be_visible(timeout=150_000)


def test_hosts_of_harvester_that_fail_are_on_the_front_page(visit: Visit, site: Site, witness: Witness) -> None:
    inject(site, "harvester", [NODES], "PUT")
    site.kubectl.ok("apply", "-f", "-", stdin=small("h-late-comer", 230))
    check(visit, site, witness, "h-late-comer", "can't be placed on a host: 0/3 nodes are available")
    expect(article(visit, "h-cut").locator(".cause")).to_contain_text(
        re.compile("is not running at the moment|does not respond|can't be placed"), timeout=150_000
    )
    inject(site, "harvester", [], "PUT")


def test_an_image_that_could_not_be_imported_is_on_the_front_page(
    visit: Visit, site: Site, witness: Witness, kubectl: str
) -> None:
    inject(site, "harvester", [NO_FILE], "PUT")
    image = (ROOT / "examples/06-harvester/image.yaml").read_text().replace("v1.30.0", "v1.30.9")
    harvester = Kubectl("harvester", kubectl, site.data / "harvester-kubeconfig.yaml", site.data)
    harvester.ok("apply", "-f", "-", stdin=image)
    cluster = small("h-no-file", 231).replace("ubuntu-22.04-kube-v1.30.0", "ubuntu-22.04-kube-v1.30.9")
    site.kubectl.ok("apply", "-f", "-", stdin=cluster)
    check(visit, site, witness, "h-no-file", "the server answered with status 404")


def test_a_full_storage_is_on_the_front_page(visit: Visit, site: Site, witness: Witness) -> None:
    inject(site, "prism", [FULL], "PUT")
    site.kubectl.ok("apply", "-f", "-", stdin=small("crowded", 62))
    check(visit, site, witness, "crowded", "has no space for")
