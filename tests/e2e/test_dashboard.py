"""The dashboard in a real browser: every page, the ways to change something, and what others must not be able to do."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from e2e.browsing import AXE, MARKS, ROOT, Site, Visit, example, log_in, start

pytestmark = MARKS

PAGES = (
    "#/",
    "#/cluster/Cluster/default/harbour",
    "#/cluster/Cluster/default/harbour?below=timeline",
    "#/cluster/Cluster/default/harbour?tab=machines",
    "#/cluster/Cluster/default/harbour?tab=conditions",
    "#/cluster/Cluster/default/harbour?tab=timeline",
    "#/cluster/Cluster/default/harbour?tab=add-ons",
    "#/cluster/Cluster/default/harbour?tab=access",
    "#/machines",
    "#/create",
    "#/timeline",
    "#/kinds",
    "#/kinds/cluster.x-k8s.io/machinedeployments",
    "#/object/cluster.x-k8s.io/machinedeployments/default/harbour-workers",
    "#/templates",
    "#/addresses",
    "#/addons",
    "#/teams",
    "#/logs",
    "#/plane",
    "#/access",
    "#/simulator",
)
# What is cut off or out of the window, and can't be scrolled to either.
OUTSIDE = """() => {
  const scrolled = (element) => {
    for (let each = element; each && each !== document.body; each = each.parentElement) {
      const { overflowX, position } = getComputedStyle(each);
      if (["auto", "scroll", "hidden", "clip"].includes(overflowX) || position === "fixed") return true;
    }
    return false;
  };
  const found = [];
  if (document.documentElement.scrollWidth > innerWidth) found.push(`the page is ${document.documentElement.scrollWidth} wide`);
  for (const each of document.querySelectorAll("#app *")) {
    const { left, right, width, height } = each.getBoundingClientRect();
    if (width && height && (left < -1 || right > innerWidth + 1) && !scrolled(each) && !each.closest(".skip")) {
      found.push(`${each.tagName} ${each.className} ${Math.round(left)} to ${Math.round(right)}: ${each.textContent.slice(0, 40)}`);
    }
  }
  return found.slice(0, 5);
}"""
# What can be used and was not reached by the Tab key.
MISSED = """() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
  .filter((each) => !each.disabled && each.tabIndex >= 0 && each.checkVisibility({ visibilityProperty: true }))
  .filter((each) => !each.reached && (each.type !== "radio" || each.checked)) // arrows go to the other choices
  .map((each) => `${each.tagName} ${each.textContent.slice(0, 40)}`)"""
FOCUSED = """() => {
  const each = document.activeElement;
  each.reached = true;
  const style = getComputedStyle(each);
  const shown = (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
  return each === document.body ? null : [shown, `${each.tagName} ${each.textContent.slice(0, 40)}`];
}"""
MOST_KEYS = 120


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, kubectl: str) -> Iterator[Site]:
    """A healthy cluster `harbour`, and a cluster `jetty` whose image does not exist."""
    made = start(tmp_path_factory.mktemp("dashboard"), kubectl)
    for name in ("network", "bigger-workers"):
        made.kubectl.ok("apply", "-f", str(ROOT / f"examples/02-cluster/{name}.yaml"))
    made.kubectl.ok("apply", "-f", "-", stdin=example("harbour", "10.0.0.101"))
    broken = example("jetty", "10.0.0.102").replace("name: ubuntu-22.04-kube-v1.29.0", "name: no-such-image")
    assert "no-such-image" in broken
    made.kubectl.ok("apply", "-f", "-", stdin=broken)
    made.kubectl.ok("wait", "cluster/harbour", "--for=condition=Available", "--timeout=120s", seconds=130)
    yield made
    made.stop()


def test_the_front_page_says_why_with_no_click(visit: Visit) -> None:
    expect(visit.page.locator("article.sick")).to_contain_text("image 'no-such-image' not found")
    expect(visit.page.locator("article.well", has_text="harbour")).to_contain_text("5 of 5")
    link = visit.page.locator("article.sick .cause a")
    expect(link).to_contain_text("jetty")
    assert visit.complaints == []


def test_the_code_leaves_the_address_and_works_once(site: Site, browser: Browser) -> None:
    link = site.link()
    first = log_in(browser, link)
    assert "code" not in first.page.url
    history = first.page.context.new_cdp_session(first.page).send("Page.getNavigationHistory")["entries"]
    assert [each["url"] for each in history if "code" in each["url"]] == []
    other = browser.new_context().new_page()
    other.goto(link)
    expect(other.locator("main")).to_contain_text("used already")
    expect(other.locator("main")).to_contain_text("homeport dashboard")
    for page in (first.page, other):
        page.context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_is_accessible_and_silent(visit: Visit, theme: str) -> None:
    visit.page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    visit.page.evaluate("theme => localStorage.setItem('homeport-theme', theme)", theme)
    visit.page.reload()
    for address in PAGES:
        visit.go(address)
        expect(visit.page.locator("main h1")).to_be_visible()
        expect(visit.page.locator("main")).not_to_contain_text("Reading")
        # As a debugger does it: the policy of the page admits no script but its own.
        visit.page.context.new_cdp_session(visit.page).send("Runtime.evaluate", {"expression": AXE.read_text()})
        found = visit.page.evaluate("async () => (await axe.run()).violations.map(v => [v.id, v.nodes[0].html])")
        assert found == [], f"{address}: {found}"
    assert visit.complaints == []


def opened(visit: Visit, address: str) -> None:
    visit.go(address)
    expect(visit.page.locator("main h1")).to_be_visible()
    expect(visit.page.locator("main")).not_to_contain_text("Reading")


def test_at_twice_the_size_nothing_is_cut_off_and_the_page_does_not_scroll_sideways(
    site: Site, browser: Browser
) -> None:
    """As a window of 1280 by 800 at 200 %."""
    visit = log_in(browser, site.link())
    visit.page.set_viewport_size({"width": 640, "height": 400})
    found = {}
    for address in PAGES:
        opened(visit, address)
        if wide := visit.page.evaluate(OUTSIDE):
            found[address] = wide
        visit.page.context.new_cdp_session(visit.page).send("Runtime.evaluate", {"expression": AXE.read_text()})
        assert visit.page.evaluate("async () => (await axe.run()).violations.map(v => [v.id, v.nodes[0].html])") == []
    assert found == {}
    visit.page.context.close()


def walk(visit: Visit, address: str) -> bool:
    """With the Tab key through the page; False if there is more than anybody would walk through."""
    visit.page.evaluate("document.activeElement?.blur()")
    for _ in range(MOST_KEYS):
        visit.page.keyboard.press("Tab")
        focus = visit.page.evaluate(FOCUSED)
        if focus is None:  # beyond the last element
            return True
        assert focus[0], f"{address}: nothing shows that {focus[1]!r} has the focus"
    return False


def test_the_keyboard_reaches_everything_and_shows_where_it_is(visit: Visit) -> None:
    for address in PAGES:
        opened(visit, address)
        for _ in range(3):  # buttons appear as soon as the rights of the user are known
            if not walk(visit, address) or not visit.page.evaluate(MISSED):
                break
        else:
            pytest.fail(f"{address}: the Tab key does not come to {visit.page.evaluate(MISSED)}")


def test_a_reload_shows_the_same(visit: Visit) -> None:
    for address in (*PAGES, "#/machines?q=harbour-w&ns=default", "#/timeline?q=harbour&ns=default"):
        opened(visit, address)
        url, title = visit.page.url, visit.text("main h1")
        space = visit.page.locator(".space select").input_value()
        filters = [each.input_value() for each in visit.page.locator(".filter input").all()]
        visit.page.reload()
        expect(visit.page.locator("main h1")).to_have_text(title)
        expect(visit.page.locator(".space select")).to_have_value(space)
        assert visit.page.url == url
        expect(visit.page.locator(".filter input")).to_have_count(len(filters))
        for number, text in enumerate(filters):
            expect(visit.page.locator(".filter input").nth(number)).to_have_value(text)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("#/cluster/Cluster/default/gone", "There is no Cluster gone"),
        ("#/object/core/configmaps/default/gone", 'configmaps "gone" not found'),
        ("#/object/core/configmaps/%zz/x", "may not contain"),
        ("#/object/core/configmaps", "There is no such page"),
        ("#/cluster", "There is no such page"),
        ("#/kinds/none/none", "the API server has no"),
    ],
)
def test_an_address_that_leads_nowhere_says_so_also_after_a_reload(visit: Visit, address: str, said: str) -> None:
    visit.go(address)
    expect(visit.page.locator("main")).to_contain_text(said)
    visit.page.reload()
    expect(visit.page.locator("main")).to_contain_text(said)
    visit.go("#/machines")
    expect(visit.page.locator("main h1")).to_have_text("Machines")
    visit.page.go_back()
    expect(visit.page.locator("main")).to_contain_text(said)
    assert visit.complaints == []


def test_the_pictures_of_the_documentation_can_be_made_again(site: Site) -> None:
    tool = [sys.executable, str(ROOT / "tools/picture_dashboard.py"), "--check", "--data", str(site.data)]
    made = subprocess.run(tool, capture_output=True, text=True, timeout=200, check=False)
    assert made.returncode == 0, made.stdout + made.stderr


HOSTILE = """<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>\u202edeppilf\u0000"""


def event(number: int, message: str) -> dict[str, Any]:
    about = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "storm", "name": "storm-0"}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"storm-{number}", "namespace": "storm"},
        "involvedObject": about,
        "type": "Warning",
        "reason": "Storm",
        "message": message,
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }


def test_strange_content_stays_text_and_a_storm_stays_small(visit: Visit, site: Site) -> None:
    hostile = HOSTILE.replace("\u0000", "")
    fat = {"example.com/fat": "x" * 200_000, "example.com/hostile": hostile}
    objects: list[dict[str, Any]] = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"storm-{number}", "namespace": "storm", "annotations": fat if not number else {}},
        }
        for number in range(300)
    ]
    objects += [event(number, hostile if number % 3 else f"{hostile} {number}") for number in range(600)]
    site.kubectl.ok("create", "namespace", "storm")
    site.kubectl.ok(
        "create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}), seconds=120
    )
    user = "<img src=x onerror=document.title=1>"
    site.kubectl.ok("label", "configmap/storm-0", "-n", "storm", "a=b", "--as", user, "--as-group=system:masters")
    title = visit.page.title()
    opened(visit, "#/kinds/core/configmaps?ns=storm")
    expect(visit.page.get_by_role("table")).to_have_attribute("aria-rowcount", re.compile("30[0-9]"))
    assert visit.page.locator("[role=row]").count() <= 100
    opened(visit, "#/timeline?ns=storm")
    expect(visit.page.locator("main")).to_contain_text("onerror")
    expect(visit.page.locator("main")).to_contain_text(re.compile("500 of the newest 500; [69][0-9]+ in all"))
    expect(visit.page.locator(".timeline")).to_contain_text(f"{user}, impersonated by ")
    assert visit.page.locator(".timeline li").count() <= 100
    opened(visit, "#/object/core/configmaps/storm/storm-0?ns=storm")
    expect(visit.page.locator("textarea")).to_have_value(re.compile("onerror"))
    assert visit.page.locator("main img, main script").count() == 0
    assert visit.page.title() == title
    assert visit.complaints == []
    site.kubectl.ok("delete", "namespace", "storm", "--timeout=100s", seconds=110)


def test_scripts_of_others_do_not_run(visit: Visit) -> None:
    """The policy of the page holds even against somebody who can put text into it."""
    tried = visit.page.evaluate(
        """() => {
          const said = [];
          const attempt = (name, what) => { try { what(); said.push(name); } catch { /* refused */ } };
          attempt("innerHTML", () => { document.createElement("div").innerHTML = "<b>x</b>"; });
          attempt("policy", () => { trustedTypes.createPolicy("other", { createHTML: (text) => text }); });
          attempt("again", () => { trustedTypes.createPolicy("homeport", { createHTML: (text) => text }); });
          attempt("script", () => { document.createElement("script").src = "https://evil.example/x.js"; });
          return said;
        }"""
    )
    assert tried == []


def test_the_tree_follows_a_change(visit: Visit, site: Site) -> None:
    visit.go("#/cluster/Cluster/default/harbour")
    workers = visit.page.locator('li[data-object="MachineDeployment/harbour-workers"]')
    expect(workers.locator("> .leaf")).to_contain_text("2 of 2 ready")
    site.kubectl.ok("scale", "machinedeployment/harbour-workers", "--replicas=3")
    expect(workers.locator("> .leaf")).to_contain_text("3 of 3 ready")
    visit.page.get_by_role("button", name="Scale").click()
    dialog = visit.page.get_by_role("dialog")
    dialog.get_by_label("What").select_option(label="MachineDeployment harbour-workers")
    dialog.get_by_label("Replicas").fill("2")
    expect(dialog).to_contain_text("1 machine will be deleted, with its VM and disks.")
    expect(dialog.locator("code")).to_contain_text(
        "kubectl scale -n default machinedeployments.cluster.x-k8s.io/harbour-workers --replicas 2"
    )
    dialog.get_by_role("button", name="Scale", exact=True).click()
    expect(workers.locator("> .leaf")).to_contain_text("2 of 2 ready")
    assert visit.complaints == []


def tab_to(visit: Visit, name: str) -> None:
    """With the keyboard alone."""
    focused = "() => (document.activeElement.ariaLabel || document.activeElement.textContent).trim()"
    for _ in range(MOST_KEYS):
        visit.page.keyboard.press("Tab")
        if visit.page.evaluate(focused) == name:
            return
    pytest.fail(f"the Tab key does not come to {name!r}")


def test_a_cluster_is_scaled_without_a_pointer(visit: Visit, site: Site) -> None:
    visit.go("#/cluster/Cluster/default/harbour")
    expect(visit.page.get_by_role("button", name="Scale")).to_be_visible()
    tab_to(visit, "Scale")
    visit.page.keyboard.press("Enter")
    dialog = visit.page.get_by_role("dialog")
    expect(dialog.get_by_label("What")).to_have_value("0")
    expect(dialog).to_contain_text("MachineDeployment harbour-workers")
    dialog.get_by_label("Replicas").focus()  # as Tab does it, whose order another test checks
    visit.page.keyboard.press("ArrowUp")
    expect(dialog).to_contain_text("1 machine will be created.")
    visit.page.keyboard.press("Enter")
    replicas = ("get", "machinedeployment/harbour-workers", "-o", "jsonpath={.spec.replicas}")
    expect(visit.page.locator(".notice.good")).to_contain_text("3 desired")
    assert site.kubectl.ok(*replicas) == "3"
    site.kubectl.ok("scale", "machinedeployment/harbour-workers", "--replicas=2")
    workers = visit.page.locator('li[data-object="MachineDeployment/harbour-workers"] > .leaf')
    expect(workers).to_contain_text("2 of 2 ready")


def test_a_change_is_reviewed_before_it_is_applied(visit: Visit, site: Site) -> None:
    visit.go("#/object/cluster.x-k8s.io/clusters/default/harbour")
    text = visit.page.locator("textarea")
    expect(text).to_be_visible()
    content = text.input_value()
    assert "managedFields" not in content
    text.fill(content.replace("  annotations:\n", "  annotations:\n    example.com/team: quay-side\n", 1))
    visit.page.get_by_role("button", name="Review the change").click()
    expect(visit.page.locator(".diff .add")).to_contain_text("example.com/team: quay-side")
    label = ("get", "cluster/harbour", "-o", "jsonpath={.metadata.annotations.example\\.com/team}")
    assert site.kubectl.ok(*label) == ""  # a dry run writes nothing
    visit.page.get_by_role("button", name="Apply").click()
    expect(visit.page.locator(".notice.good")).to_contain_text("was changed")
    assert site.kubectl.ok(*label) == "quay-side"


def test_two_who_change_the_same_see_both_sides(visit: Visit, site: Site) -> None:
    visit.go("#/object/cluster.x-k8s.io/machinedeployments/default/harbour-workers")
    text = visit.page.locator("textarea")
    expect(text).to_be_visible()
    site.kubectl.ok("annotate", "--overwrite", "machinedeployment/harbour-workers", "example.com/by=somebody-else")
    text.fill(text.input_value().replace("  replicas: 2\n", "  replicas: 4\n", 1))
    visit.page.get_by_role("button", name="Review the change").click()
    expect(visit.page.get_by_role("alert")).to_contain_text("the object has been modified")
    conflict = visit.page.get_by_role("region", name="Conflict")
    expect(conflict.locator(".diff").first.locator(".add", has_text="somebody-else")).to_be_visible()
    expect(conflict.locator(".diff").last.locator(".add", has_text="replicas: 4")).to_be_visible()
    assert site.kubectl.ok("get", "machinedeployment/harbour-workers", "-o", "jsonpath={.spec.replicas}") == "2"
    visit.page.get_by_role("button", name="Put my change on their version").click()
    expect(conflict).to_have_count(0)
    expect(text).to_have_value(re.compile("somebody-else"))
    visit.page.get_by_role("button", name="Review the change").click()
    written = visit.page.get_by_role("region", name="The change")
    expect(written.locator(".diff .add")).to_have_text(re.compile(r"^\+ +replicas: 4$"))
    expect(written.locator(".diff .del")).to_have_text(re.compile(r"^- +replicas: 2$"))


def test_an_object_that_is_deleted_while_it_is_edited_says_so_and_the_text_stays(visit: Visit, site: Site) -> None:
    site.kubectl.ok("create", "configmap", "short", "--from-literal=a=b")
    visit.go("#/object/core/configmaps/default/short")
    text = visit.page.locator("textarea")
    expect(text).to_be_visible()
    text.fill(text.input_value().replace("a: b", "a: something long"))
    site.kubectl.ok("delete", "configmap/short")
    visit.page.get_by_role("button", name="Review the change").click()
    expect(visit.page.get_by_role("alert")).to_contain_text("ConfigMap short was deleted meanwhile")
    expect(text).to_have_value(re.compile("something long"))


def test_deletion_lists_the_machines_and_asks_for_the_name(visit: Visit, site: Site) -> None:
    visit.go("#/cluster/Cluster/default/harbour")
    visit.page.get_by_role("button", name="Delete", exact=True).click()
    dialog = visit.page.get_by_role("dialog")
    expect(dialog.locator(".doomed tbody tr")).to_have_count(5)
    confirm = dialog.get_by_role("button", name="Delete", exact=True)
    expect(confirm).to_be_disabled()
    dialog.get_by_role("textbox").fill("harbou")
    expect(confirm).to_be_disabled()
    dialog.get_by_role("textbox").fill("harbour")
    expect(confirm).to_be_enabled()
    visit.page.keyboard.press("Escape")
    assert site.kubectl.ok("get", "cluster/harbour", "-o", "jsonpath={.metadata.deletionTimestamp}") == ""


def test_a_cluster_is_created_from_the_form(visit: Visit, site: Site) -> None:
    visit.go("#/create?api=TenantCluster")
    visit.page.get_by_label("Name", exact=True).fill("Not-A-Name")
    visit.page.get_by_role("button", name="Check").click()
    assert visit.page.get_by_label("Name", exact=True).evaluate("input => input.validity.patternMismatch")
    visit.page.get_by_label("Name", exact=True).fill("pier")
    visit.page.get_by_label("kubernetesVersion").fill("nonsense")
    visit.page.get_by_role("button", name="Check").click()
    expect(visit.page.get_by_role("alert").first).to_contain_text("kubernetesVersion")
    visit.page.get_by_label("kubernetesVersion").fill("")
    visit.page.get_by_role("button", name="Check").click()
    expect(visit.page.get_by_text("The API server accepts it.")).to_be_visible()
    assert site.kubectl.run("get", "tenantcluster/pier").code != 0
    visit.page.get_by_role("button", name="Create", exact=True).click()
    expect(visit.page.locator("main h1")).to_contain_text("pier")
    site.kubectl.ok("delete", "tenantcluster/pier", "--timeout=100s", seconds=110)


def test_the_keyboard_finds_everything(visit: Visit) -> None:
    visit.page.keyboard.press("Control+k")
    visit.page.keyboard.type("harbour")
    expect(visit.page.get_by_role("dialog").get_by_role("option").first).to_contain_text("harbour")
    visit.page.keyboard.press("Enter")
    expect(visit.page.locator("main h1")).to_contain_text("harbour")
    visit.page.keyboard.press("Control+k")
    visit.page.keyboard.type("time")
    visit.page.keyboard.press("Escape")  # one is enough, also with a text
    expect(visit.page.get_by_role("dialog")).to_have_count(0)


def test_the_palette_is_open_and_focused_before_anything_else_happens(visit: Visit) -> None:
    """No frame and no task lies between the key and the open palette, however slow the machine: microtasks alone run."""
    focused = """async (key) => {
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey: true, bubbles: true, cancelable: true }));
      await null;
      return [document.activeElement.getAttribute("role"), document.activeElement.closest("dialog")?.open];
    }"""
    for _ in range(3):
        assert visit.page.evaluate(focused, "k") == ["combobox", True]
        visit.page.keyboard.press("Escape")
        expect(visit.page.get_by_role("dialog")).to_have_count(0)


def test_a_slow_browser_loses_no_key(visit: Visit) -> None:
    slow = visit.page.context.new_cdp_session(visit.page)
    slow.send("Emulation.setCPUThrottlingRate", {"rate": 20})
    visit.page.reload()
    visit.page.wait_for_selector("main h1")
    visit.page.keyboard.press("Control+k")
    visit.page.keyboard.type("harbour")
    visit.page.keyboard.press("Enter")  # perhaps before the list of clusters is there
    expect(visit.page.locator("main h1")).to_contain_text("harbour")
    visit.page.keyboard.press("Control+k")
    visit.page.keyboard.type("time")
    visit.page.keyboard.press("Escape")
    visit.page.keyboard.press("Control+k")
    visit.page.keyboard.type("machines")
    expect(visit.page.get_by_role("combobox", name="Name of a page")).to_have_value("machines")
    visit.page.keyboard.press("Enter")
    expect(visit.page.locator("main h1")).to_have_text("Machines")


def test_a_restarted_connection_is_shown_and_comes_back(visit: Visit) -> None:
    expect(visit.page.locator(".link")).to_have_text("live")
    visit.page.get_by_role("button", name="Log out").click()
    expect(visit.page.locator("main")).to_contain_text("You are logged out.")
    visit.page.reload()
    expect(visit.page.locator("main")).to_contain_text("homeport dashboard")


# -- what others must not be able to do --------------------------------------------------------------------------


def ask(address: str, method: str, path: str, headers: dict[str, str], body: object = None) -> tuple[int, Any]:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    try:
        content = None if body is None else json.dumps(body)
        connection.request(method, f"/dashboard/{path}", content, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, (dict(answer.getheaders()), text)
    finally:
        connection.close()


@dataclass
class Keys:
    address: str
    origin: str
    cookie: str
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Origin": self.origin, "Cookie": self.cookie, "X-Homeport-Key": self.key}


@pytest.fixture
def keys(site: Site) -> Keys:
    address, _, code = site.link().partition("#code=")
    origin = address.removesuffix("/dashboard/")
    status, (headers, text) = ask(address, "POST", "session", {"Origin": origin}, {"code": code})
    assert status == 200
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Path=/dashboard/" in cookie
    return Keys(address, origin, cookie.partition(";")[0], json.loads(text)["key"])


LIST = {"method": "GET", "path": "/api/v1/namespaces"}


def test_both_halves_of_the_key_are_needed(keys: Keys) -> None:
    assert ask(keys.address, "POST", "request", keys.headers, LIST)[0] == 200
    for missing in ("Cookie", "X-Homeport-Key"):
        headers = {name: value for name, value in keys.headers.items() if name != missing}
        assert ask(keys.address, "POST", "request", headers, LIST)[0] == 401


@pytest.mark.parametrize(
    "change",
    [
        {"Origin": "http://evil.example"},
        {"Host": "evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_other_sites_reach_nothing(keys: Keys, change: dict[str, str]) -> None:
    assert ask(keys.address, "POST", "request", {**keys.headers, **change}, LIST)[0] == 403


def test_the_cookie_is_worth_nothing_at_the_api(keys: Keys, site: Site) -> None:
    server = site.kubectl.ok("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
    done = subprocess.run(
        [
            "curl",
            "-sk",
            "-H",
            f"Cookie: {keys.cookie}",
            "-H",
            f"X-Homeport-Key: {keys.key}",
            f"{server}/api/v1/secrets",
        ],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert json.loads(done.stdout)["code"] in (401, 403)


def test_no_half_of_a_key_and_no_code_is_in_the_log_or_in_an_address(site: Site, keys: Keys) -> None:
    assert ask(keys.address, "POST", "request", keys.headers, LIST)[0] == 200
    assert ask(keys.address, "POST", "session", {"Origin": keys.origin}, {"code": "c0de" * 8})[0] == 401
    assert ask(keys.address, "GET", f"session?key={keys.key}", {**keys.headers, "X-Homeport-Key": ""})[0] == 401
    written = (site.data / "homeport.log").read_text()
    for secret in (keys.key, keys.cookie.partition("=")[2], "c0de" * 8):
        assert secret not in written


def test_answers_carry_a_strict_policy(keys: Keys) -> None:
    _, (headers, _) = ask(keys.address, "GET", "", {})
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.fixture
def jane(site: Site, tmp_path: Path) -> Path:
    """The kubeconfig of a user who may edit one namespace and sees no other."""
    for args in (
        ("create", "namespace", "janes"),
        ("create", "serviceaccount", "jane", "-n", "janes"),
        ("create", "rolebinding", "jane", "-n", "janes", "--clusterrole=edit", "--serviceaccount=janes:jane"),
        ("create", "role", "clusters", "-n", "janes", "--verb=*", "--resource=*.cluster.x-k8s.io"),
        ("create", "rolebinding", "clusters", "-n", "janes", "--role=clusters", "--serviceaccount=janes:jane"),
    ):
        site.kubectl.run(*args)
    token = site.kubectl.ok("create", "token", "jane", "-n", "janes").strip()
    view = json.loads(site.kubectl.ok("config", "view", "--raw", "--minify", "-o", "json"))
    view["users"] = [{"name": "jane", "user": {"token": token}}]
    view["contexts"] = [
        {"name": "jane", "context": {"cluster": view["clusters"][0]["name"], "user": "jane", "namespace": "janes"}}
    ]
    view["current-context"] = "jane"
    file = tmp_path / "jane.json"
    file.write_text(json.dumps(view))
    file.chmod(0o600)
    return file


def test_a_user_of_one_namespace_sees_it_and_nothing_else(site: Site, browser: Browser, jane: Path) -> None:
    site.kubectl.run("create", "configmap", "hers", "-n", "janes")
    visit = log_in(browser, site.link("--kubeconfig", str(jane), "--data", str(site.data)))
    expect(visit.page.locator(".who")).to_have_text("system:serviceaccount:janes:jane")
    expect(visit.page.locator(".space select")).to_have_value("janes")
    expect(visit.page.locator("main")).to_contain_text("no clusters in namespace janes")
    assert "harbour" not in visit.text("body")
    visit.go("#/kinds/core/configmaps?ns=janes")
    expect(visit.page.get_by_role("table")).to_contain_text("hers")
    for address in (*(each for each in PAGES if "harbour" not in each), "#/create?api=ClusterDeployment"):
        visit.go(f"{address}{'&' if '?' in address else '?'}ns=janes")
        expect(visit.page.locator("main h1")).to_be_visible()
        expect(visit.page.locator("main")).not_to_contain_text("Reading")
        assert "harbour" not in visit.text("body"), address
    assert [each for each in visit.answers if each[0] == 403] == []
    visit.go("#/object/cluster.x-k8s.io/clusters/default/harbour")
    expect(visit.page.get_by_role("alert")).to_contain_text("forbidden")
    visit.go("#/cluster/Cluster/default/harbour")
    expect(visit.page.locator("main")).to_contain_text(
        "There is no Cluster harbour in namespace default, or you may not"
    )
    visit.go("#/logs")
    expect(visit.page.locator("main")).to_contain_text("Choose a Pod")
    expect(visit.page.locator("main")).not_to_contain_text("forbidden")
    visit.page.context.close()


def test_a_tab_does_not_act_for_a_user_whose_name_it_does_not_show(site: Site, browser: Browser, jane: Path) -> None:
    """All tabs of a browser share the session: a log-in as somebody else counts for the tabs that are open, too."""
    visit = log_in(browser, site.link())
    expect(visit.page.locator("article.well", has_text="harbour")).to_be_visible()
    hers = "system:serviceaccount:janes:jane"
    other = visit.page.context.new_page()
    other.goto(site.link("--kubeconfig", str(jane), "--data", str(site.data)))
    for page in (other, visit.page):
        expect(page.locator(".who")).to_have_text(hers)
        expect(page.locator("main")).not_to_contain_text("harbour")
    visit.page.goto(site.link())  # the address alone changes: the page is not loaded again
    for page in (visit.page, other):
        expect(page.locator(".who")).not_to_have_text(hers)
        assert "code" not in page.url
    visit.page.context.close()


def test_a_right_that_is_taken_away_empties_the_page(site: Site, browser: Browser, jane: Path) -> None:
    site.kubectl.run("create", "configmap", "hers", "-n", "janes")
    visit = log_in(browser, site.link("--kubeconfig", str(jane), "--data", str(site.data)))
    visit.go("#/kinds/core/configmaps?ns=janes")
    expect(visit.page.get_by_role("table")).to_contain_text("hers")
    site.kubectl.ok("delete", "rolebinding/jane", "-n", "janes")
    expect(visit.page.locator("main")).not_to_contain_text("hers")
    expect(visit.page.locator("main")).to_contain_text("you may not watch configmaps in namespace janes")
    visit.go("#/?ns=janes")
    expect(visit.page.locator("main")).to_contain_text("no clusters in namespace janes")
    site.kubectl.ok("delete", "rolebinding/clusters", "-n", "janes")
    said = visit.page.get_by_role("alert").filter(has_text="you may not watch")
    expect(said).to_be_visible()  # and not that there are no clusters
    expect(visit.page.locator("main")).not_to_contain_text("There are no clusters")
    visit.page.context.close()


def test_an_account_that_is_deleted_is_logged_out_of_everything(site: Site, browser: Browser, jane: Path) -> None:
    visit = log_in(browser, site.link("--kubeconfig", str(jane), "--data", str(site.data)))
    site.kubectl.ok("delete", "serviceaccount/jane", "-n", "janes")
    visit.go("#/object/core/configmaps/janes/kube-root-ca.crt")
    expect(visit.page.get_by_role("alert")).to_contain_text("the API server no longer accepts your credential")
    assert visit.page.locator("textarea").count() == 0
    visit.page.context.close()
