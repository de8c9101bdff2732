"""The dashboard when its connection is cut, and when the plane is stopped: it says so, and loses and doubles nothing."""

from __future__ import annotations

import datetime
import json
import os
import signal
import socket
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from e2e.browsing import MARKS, Site, Visit, chromium, homeport, lasting_port, log_in, start
from e2e.wire import Wire, wire

pytestmark = MARKS
TABLE = "#/kinds/core/configmaps?ns=default"


FAILURE = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "lost-1.failure", "namespace": "default"},
    "involvedObject": {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "namespace": "default",
        "name": "lost-1",
    },
    "type": "Warning",
    "reason": "BootFailed",
    "message": "the image does not boot",
    "lastTimestamp": (datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=40)).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    ),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, kubectl: str) -> Iterator[Site]:
    """Somebody has the port after that of the API at the first start, and not later: the page keeps its port."""
    port = lasting_port()
    with socket.create_server(("127.0.0.1", port + 1)):
        made = start(tmp_path_factory.mktemp("connection"), kubectl, "--listen", f"127.0.0.1:{port}")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def cable() -> Iterator[Wire]:
    with wire() as made:
        yield made


@pytest.fixture(scope="module")
def browser(cable: Wire) -> Iterator[Browser]:
    with chromium(*cable.switches) as made:
        yield made


@pytest.fixture
def visit(site: Site, browser: Browser, cable: Wire) -> Iterator[Visit]:
    cable.mend()
    made = log_in(browser, site.link())
    expect(made.page.locator(".link")).to_have_text("live")
    yield made
    made.page.context.close()


def test_two_tabs_share_one_connection(visit: Visit, site: Site, cable: Wire) -> None:
    second = visit.page.context.new_page()
    second.goto(visit.page.url)
    for page in (visit.page, second):
        page.evaluate("address => { location.hash = address }", TABLE)
        expect(page.get_by_role("table")).to_contain_text("kube-root-ca.crt")
    assert cable.tunnels == 1
    site.kubectl.ok("create", "configmap", "shared")
    for page in (visit.page, second):
        expect(page.get_by_role("table")).to_contain_text("shared")
    second.close()
    site.kubectl.ok("create", "configmap", "later")
    expect(visit.page.get_by_role("table")).to_contain_text("later")


def test_after_a_cut_nothing_is_lost_or_doubled(visit: Visit, site: Site, cable: Wire) -> None:
    site.kubectl.ok("create", "configmap", "old")
    visit.go(TABLE)
    table = visit.page.get_by_role("table")
    expect(table).to_contain_text("old")
    cable.cut()
    expect(visit.page.locator(".link")).to_have_text("no connection: trying again")
    expect(table).to_contain_text("old")  # what was known stays in view
    site.kubectl.ok("delete", "configmap", "old")
    site.kubectl.ok("create", "configmap", "new")
    cable.mend()
    expect(visit.page.locator(".link")).to_have_text("live")
    expect(table.get_by_role("link", name="new", exact=True)).to_have_count(1)
    expect(table.get_by_role("link", name="old", exact=True)).to_have_count(0)
    expect(table.get_by_role("link", name="kube-root-ca.crt", exact=True)).to_have_count(1)
    assert cable.tunnels == 1


def test_after_a_cut_the_log_has_each_line_once(visit: Visit, site: Site, cable: Wire) -> None:
    pod = site.kubectl.ok("get", "pods", "-n", "capi-system", "-o", "jsonpath={.items[0].metadata.name}")
    visit.go(f"#/logs?pod=capi-system/{pod}")
    lines = visit.page.locator("[role=log] > div:not(.faint)")
    expect(lines.first).to_contain_text(" ")
    cable.cut()  # until the page was seen without it: it would be back before anybody looks
    expect(visit.page.locator(".link")).not_to_have_text("live")
    cable.mend()
    expect(visit.page.locator(".link")).to_have_text("live")
    site.kubectl.ok("annotate", "--overwrite", "namespace", "default", "example.com/touched=yes")
    expect(lines.first).to_contain_text(" ")
    shown = [each for each in lines.all_inner_texts() if each.strip()]
    logged = site.kubectl.ok("logs", "-n", "capi-system", pod).splitlines()
    for line in set(shown):
        assert shown.count(line) <= logged.count(line), line


def test_an_error_stays_until_it_is_dismissed(visit: Visit, cable: Wire) -> None:
    visit.go("#/create?api=TenantCluster")
    visit.page.get_by_label("Name", exact=True).fill("pier")
    cable.cut()
    visit.page.get_by_role("button", name="Check").click()
    said = visit.page.get_by_role("alert").filter(has_text="does not answer")
    expect(said).to_be_visible()
    cable.mend()
    expect(visit.page.locator(".link")).to_have_text("live")
    expect(said).to_be_visible()  # being connected again takes nothing away
    expect(visit.page.get_by_label("Name", exact=True)).to_have_value("pier")


def test_a_plane_that_is_killed_takes_nothing_that_was_typed(visit: Visit, site: Site) -> None:
    """The page sees no reason of the end: the connection is lost, and after the restart nobody knows the session."""
    site.kubectl.ok("create", "-f", "-", stdin=json.dumps(FAILURE))
    visit.go("#/create?api=TenantCluster")
    visit.page.get_by_label("Name", exact=True).fill("pier")
    server = site.kubectl.ok("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
    pid = json.loads(homeport("status", "--data", str(site.data), "-o", "json").stdout)["pid"]
    os.kill(pid, signal.SIGKILL)
    expect(visit.page.locator(".link")).to_have_text("no connection: trying again")
    expect(visit.page.get_by_label("Name", exact=True)).to_have_value("pier")
    visit.page.get_by_label("Namespace", exact=True).fill("default")  # one can go on
    listen = server.removeprefix("https://").strip()
    started = homeport("up", "--sim", "--data", str(site.data), "--listen", listen, "--detach")
    assert started.returncode == 0, started.stdout + started.stderr
    expect(visit.page.get_by_role("alert")).to_contain_text("it was restarted")
    expect(visit.page.get_by_text("To log in, run this")).to_be_visible()
    expect(visit.page.locator(".stranger pre")).to_have_text("homeport dashboard")
    expect(visit.page.get_by_label("Name", exact=True)).to_be_hidden()  # whoever finds the tab sees nothing
    visit.page.goto(site.link())  # in the same tab: only the fragment changes
    expect(visit.page.locator(".link")).to_have_text("live")
    assert "code" not in visit.page.url
    expect(visit.page.get_by_label("Name", exact=True)).to_have_value("pier")
    visit.page.get_by_role("button", name="Check").click()
    expect(visit.page.get_by_text("The API server accepts it.")).to_be_visible()
    # In three steps, also after the restart: why a machine failed that has been deleted since.
    visit.page.get_by_role("navigation", name="Pages").get_by_role("link", name="Timeline").click()
    visit.page.get_by_role("button", name="Discard and leave").click()
    visit.page.get_by_label("Object").fill("lost-")
    expect(visit.page.locator(".timeline li")).to_contain_text("the image does not boot")


def test_a_plane_that_is_stopped_says_so_and_the_tab_goes_on_after_a_new_log_in(
    visit: Visit, site: Site, browser: Browser
) -> None:
    visit.go(TABLE)
    expect(visit.page.get_by_role("table")).to_contain_text("kube-root-ca.crt")
    server = site.kubectl.ok("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
    site.stop()
    expect(visit.page.get_by_role("alert")).to_contain_text("the plane was stopped, and sessions end with it")
    expect(visit.page.locator("pre")).to_have_text("homeport dashboard")
    listen = server.removeprefix("https://").strip()
    started = homeport("up", "--sim", "--data", str(site.data), "--listen", listen, "--detach")
    assert started.returncode == 0, started.stdout + started.stderr
    second = visit.page.context.new_page()
    second.goto(site.link())
    expect(second.locator("main h1")).to_be_visible()
    expect(visit.page.get_by_role("table")).to_contain_text("kube-root-ca.crt")
    expect(visit.page.locator(".link")).to_have_text("live")
    second.close()
