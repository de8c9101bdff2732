"""Every fault of the simulator that breaks a cluster: its cause is on the front page, and nobody touches the page."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from e2e.browsing import MARKS, PATIENCE, Site, Visit, example, homeport, start

pytestmark = MARKS
CREATE = {"method": "POST", "route": "/api/vmm/*/ahv/config/vms"}
# The fault, what it meets besides machines of the cluster that is called so, and what the front page says.
FAULTS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "refused": ({"kind": "status", "status": 500, "message": "the pool is on fire"}, CREATE, "the pool is on fire"),
    "throttled": ({"kind": "throttle", "retryAfter": 1}, CREATE, "is throttling"),
    "dropped": ({"kind": "drop"}, CREATE, "the server closed the connection"),
    "failed": (
        {"kind": "task-failure", "code": "VMM-30100", "message": "The disk image is corrupt."},
        {"operation": "kVmCreate"},
        "could not be created: The disk image is corrupt",
    ),
    "hung": ({"kind": "task-hang"}, {"operation": "kVmCreate"}, "is being created"),
    "crashed": ({"kind": "crash"}, {"kind": "vm"}, "is being powered on"),
    "dark": ({"kind": "no-boot"}, {"kind": "vm"}, "does not answer yet: if this lasts, look at its console"),
    "cut-off": ({"kind": "isolation", "lacks": ["internet", "dns", "registry"]}, {"kind": "vm"}, "has not joined yet"),
    "homeless": ({"kind": "address-late"}, {"kind": "vm"}, "has no address yet"),
    "evicted": ({"kind": "address-loss"}, {"kind": "vm"}, "has no address yet"),
}
FULL = {"crowded": ({"kind": "full-disk"}, {"cluster": "nutanix-cluster-1"}, "has no space for")}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, kubectl: str) -> Iterator[Site]:
    made = start(tmp_path_factory.mktemp("fault"), kubectl)
    yield made
    made.stop()


def inject(site: Site, faults: dict[str, tuple[dict[str, Any], dict[str, Any], str]], *, by_name: bool) -> None:
    told = homeport("status", "--data", str(site.data)).stdout
    admin = next(words[1] for words in map(str.split, told.splitlines()) if words[:1] == ["admin"])
    name, _, value = (site.data / "sim" / "admin.header").read_text().strip().partition(": ")
    body = [
        {"name": each, "match": {**match, **({"entity": f"{each}-*"} if by_name else {})}, "effect": effect}
        for each, (effect, match, _) in faults.items()
    ]
    request = urllib.request.Request(
        f"{admin}/faults", json.dumps({"faults": body}).encode(), {name: value}, method="PUT"
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=30) as answer:
        assert answer.status == 200


def small(name: str, address: str) -> str:
    return example(name, address).replace("replicas: 3", "replicas: 1").replace("replicas: 2", "replicas: 0")


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


def check(visit: Visit, site: Site, faults: dict[str, tuple[dict[str, Any], dict[str, Any], str]]) -> None:
    for name, (_, _, said) in faults.items():
        expect(article(visit, name).locator(".cause")).to_contain_text(re.compile(said), timeout=120_000)
        await_report(visit, site, name, said)
    assert visit.complaints == []


def test_the_cause_of_each_fault_is_on_the_front_page_with_no_click(visit: Visit, site: Site) -> None:
    """The page is open before there is anything to show, and is neither clicked nor loaded again."""
    expect(visit.page.locator("main")).to_contain_text("There are no clusters")
    loaded = visit.page.evaluate("performance.timeOrigin")
    inject(site, FAULTS, by_name=True)
    for number, name in enumerate(FAULTS):
        site.kubectl.ok("apply", "-f", "-", stdin=small(name, f"10.0.0.{20 + number}"))
    check(visit, site, FAULTS)
    assert visit.page.evaluate("performance.timeOrigin") == loaded


def test_a_full_storage_is_on_the_front_page(visit: Visit, site: Site) -> None:
    inject(site, FULL, by_name=False)
    site.kubectl.ok("apply", "-f", "-", stdin=small("crowded", "10.0.0.60"))
    check(visit, site, FULL)
