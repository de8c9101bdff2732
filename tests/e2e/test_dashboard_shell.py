"""What is around the pages of the dashboard: the tree of clusters, the timeline below, and what impatient users do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, WebSocket, expect

from e2e.browsing import AXE, MARKS, Site, Visit, log_in, start

pytestmark = MARKS
CLUSTERS, EACH = 1000, 50
SICK = "fleet-03/vessel-0170"
CAUSE = "the dock is flooded"


def cluster(number: int) -> dict[str, Any]:
    """One that no controller touches."""
    part = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "NutanixCluster", "name": "none"}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": f"vessel-{number:04}", "namespace": f"fleet-{number // EACH:02}"},
        "spec": {"paused": True, "infrastructureRef": part},
    }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, kubectl: str) -> Iterator[Site]:
    """A thousand clusters in twenty namespaces, one of them not healthy."""
    made = start(tmp_path_factory.mktemp("shell"), kubectl)
    spaces: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"fleet-{n:02}"}}
        for n in range(CLUSTERS // EACH)
    ]
    items = [*spaces, *map(cluster, range(CLUSTERS))]
    many = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    made.kubectl.ok("create", "-f", "-", stdin=many, seconds=200)
    namespace, name = SICK.split("/")
    condition = {"type": "Available", "status": "False", "reason": "Flooded", "message": CAUSE}
    status = {"status": {"conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps(status))
    made.kubectl.ok("patch", "cluster", name, "-n", namespace, *patch)
    yield made
    made.stop()


@pytest.fixture
def visit(site: Site, browser: Browser) -> Iterator[Visit]:
    made = log_in(browser, site.link())
    yield made
    assert made.complaints == []
    made.page.context.close()


def accessible(visit: Visit) -> None:
    session = visit.page.context.new_cdp_session(visit.page)
    session.send("Runtime.evaluate", {"expression": AXE.read_text()})
    for theme in ("light", "dark"):
        visit.page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        found = visit.page.evaluate("async () => (await axe.run()).violations.map(v => [v.id, v.nodes[0].html])")
        assert found == [], f"{theme}: {found}"


def tree(page: Page) -> Locator:
    return page.get_by_role("tree", name="Clusters by namespace")


def items(page: Page) -> Locator:
    return tree(page).get_by_role("treeitem")


def test_a_thousand_clusters_are_a_tree_of_few_elements(visit: Visit) -> None:
    page = visit.page
    expect(items(page).first).to_have_text(re.compile("^▾fleet-00"))
    assert 10 < items(page).count() <= 100
    tree(page).evaluate("box => { box.scrollTop = box.scrollHeight }")
    expect(items(page).filter(has_text="vessel-0999")).to_be_visible()
    assert items(page).count() <= 100
    accessible(visit)
    page.get_by_label("Filter the clusters").fill("0777")
    expect(items(page)).to_have_count(2)  # with its namespace
    items(page).filter(has_text="vessel-0777").click()
    expect(page.locator("main h1")).to_contain_text("vessel-0777 Cluster in fleet-15")
    current = tree(page).locator("[aria-current=page]")
    expect(current).to_contain_text("vessel-0777")
    page.get_by_label("Filter the clusters").fill("nothing at all")
    expect(page.get_by_text("No cluster matches.")).to_be_visible()
    accessible(visit)
    page.reload()
    expect(current).to_be_in_viewport()  # of a thousand, the one of the page
    accessible(visit)


def test_a_cluster_that_is_not_healthy_is_marked_by_form_and_text(visit: Visit) -> None:
    page = visit.page
    only = page.get_by_role("button", name="1 not healthy")
    only.click()
    expect(only).to_have_attribute("aria-pressed", "true")
    expect(items(page)).to_have_count(2)
    expect(items(page).first).to_contain_text("▲ 1 not healthy")
    sick = items(page).last
    expect(sick).to_have_text(re.compile("▲vessel-0170.*not healthy"))
    expect(sick).to_have_attribute("title", re.compile(CAUSE))
    accessible(visit)
    only.click()
    expect(items(page).first).to_have_text(re.compile("^▾fleet-00"))


def test_the_front_page_draws_as_much_as_a_person_reads(visit: Visit) -> None:
    expect(visit.page.locator("article.sick")).to_contain_text(CAUSE)
    expect(visit.page.locator("article.well")).to_have_count(100)
    visit.page.get_by_role("button", name="Show 100 more").click()
    expect(visit.page.locator("article.well")).to_have_count(200)


def test_the_arrow_keys_go_through_the_tree_and_what_is_folded_stays_so(visit: Visit) -> None:
    page, keys = visit.page, visit.page.keyboard
    focused = tree(page).locator(":focus")
    page.get_by_label("Filter the clusters").focus()
    keys.press("Tab")
    expect(focused).to_contain_text("fleet-00")
    keys.press("ArrowDown")
    expect(focused).to_contain_text("vessel-0000")
    keys.press("ArrowLeft")
    expect(focused).to_contain_text("fleet-00")
    keys.press("ArrowLeft")
    expect(focused).to_have_attribute("aria-expanded", "false")
    keys.press("ArrowDown")
    expect(focused).to_contain_text("fleet-01")
    keys.press("End")
    expect(focused).to_contain_text("vessel-0999")
    expect(focused).to_be_in_viewport()
    keys.press("Home")
    expect(focused).to_contain_text("fleet-00")
    keys.press("Shift+Tab")
    expect(page.get_by_label("Filter the clusters")).to_be_focused()  # the tree is one stop
    page.reload()
    expect(items(page).first).to_have_attribute("aria-expanded", "false")
    items(page).first.focus()
    keys.press("ArrowRight")
    expect(items(page).first).to_have_attribute("aria-expanded", "true")
    keys.press("ArrowDown")
    keys.press("Enter")
    expect(page.locator("main h1")).to_contain_text("vessel-0000")


def test_the_tree_shows_the_chosen_namespace_and_leads_back_to_all(visit: Visit) -> None:
    page = visit.page
    items(page).filter(has_text="fleet-00").click()
    expect(page.locator(".space select")).to_have_value("fleet-00")
    expect(items(page).nth(1)).to_have_attribute("aria-setsize", str(EACH))
    expect(items(page).filter(has_text="fleet-01")).to_have_count(0)
    page.get_by_role("link", name="All namespaces").click()
    expect(page.locator(".space select")).to_have_value("")
    expect(page.get_by_placeholder(f"Filter {CLUSTERS} clusters")).to_be_visible()
    visit.go("#/?ns=nowhere")  # as in a link of somebody else, after the namespace was deleted
    expect(page.locator(".space select")).to_have_value("nowhere")
    expect(page.locator("main")).to_contain_text("no clusters in namespace nowhere")
    page.get_by_role("link", name="All namespaces").click()
    expect(items(page).first).to_be_visible()


def test_a_small_window_shows_the_page_first(visit: Visit) -> None:
    page = visit.page
    toggle = page.get_by_role("button", name="By namespace")
    expect(toggle).to_have_attribute("aria-expanded", "true")
    page.set_viewport_size({"width": 640, "height": 400})
    expect(toggle).to_have_attribute("aria-expanded", "false")
    expect(tree(page)).to_have_count(0)
    toggle.click()
    expect(tree(page)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    accessible(visit)
    page.set_viewport_size({"width": 1280, "height": 800})
    toggle.click()
    page.reload()
    expect(toggle).to_have_attribute("aria-expanded", "false")
    page.set_viewport_size({"width": 640, "height": 400})
    expect(tree(page)).to_be_visible()  # each as it was left


def subscriptions(page: Page) -> dict[int, str]:
    """Those that the page has open now, by their number; without the worker that all tabs share."""
    found: dict[int, str] = {}

    def sent(text: str | bytes) -> None:
        message = json.loads(text)
        if "open" in message:
            found[message["id"]] = f"{message['open']} {json.dumps(message['with'])}"
        elif message.get("close"):
            found.pop(message["id"], None)

    def opened(socket: WebSocket) -> None:
        socket.on("framesent", sent)

    page.on("websocket", opened)
    page.add_init_script("delete globalThis.SharedWorker")
    return found


def test_the_tree_shares_the_subscription_of_the_front_page_and_needs_none_when_it_is_closed(
    site: Site, browser: Browser
) -> None:
    visit = log_in(browser, site.link())
    page = visit.page
    found = subscriptions(page)

    def subscribed(*expected: str) -> None:
        clusters: list[str] = []
        for _ in range(600):
            clusters = [each for each in found.values() if each.startswith("overview")]
            if clusters == [*expected]:
                return
            page.evaluate("() => new Promise((next) => requestAnimationFrame(next))")
        pytest.fail(f"expected {expected}, the page has {clusters}")

    page.reload()
    expect(items(page).first).to_be_visible()
    expect(page.locator("article.well").first).to_be_visible()
    subscribed('overview {"namespace": "", "brief": false}')
    visit.go("#/plane")
    subscribed('overview {"namespace": "", "brief": true}')
    expect(items(page).first).to_be_visible()
    page.get_by_role("button", name="By namespace").click()
    subscribed()
    visit.go("#/")
    expect(page.locator("article.well").first).to_be_visible()
    subscribed('overview {"namespace": "", "brief": false}')
    page.context.close()


# -- a new cluster ------------------------------------------------------------------------------------------------


def test_leaving_a_filled_form_asks_and_a_look_at_another_api_keeps_it(visit: Visit) -> None:
    page = visit.page
    pages = page.get_by_role("navigation", name="Pages")
    dialog = page.get_by_role("dialog")
    visit.go("#/create?api=TenantCluster")
    name = page.get_by_label("Name", exact=True)
    expect(name).to_be_visible()
    pages.get_by_role("link", name="Machines").click()  # nothing is filled in, and nothing asked
    expect(page.locator("main h1")).to_have_text("Machines")
    page.go_back()
    name.fill("ferry")
    page.get_by_role("radio", name=re.compile("^Cluster ")).check()
    expect(name).to_have_value("")
    expect(dialog).to_have_count(0)
    page.get_by_role("radio", name=re.compile("^TenantCluster")).check()
    expect(name).to_have_value("ferry")
    page.go_back()
    expect(dialog).to_contain_text("The form for a TenantCluster is filled in, and nothing was created.")
    accessible(visit)
    page.keyboard.press("Escape")
    expect(name).to_have_value("ferry")
    page.get_by_role("button", name="Edit as YAML").click()
    text = page.get_by_label("YAML", exact=True)
    text.fill(text.input_value().replace("ferry", "barge"))
    with page.expect_event("dialog") as asked:
        page.evaluate("setTimeout(() => location.reload())")
    asked.value.dismiss()
    items(page).nth(1).click()
    dialog.get_by_role("button", name="Keep editing").click()
    expect(text).to_have_value(re.compile("barge"))
    page.keyboard.press("Control+k")
    page.keyboard.type("timeline")
    page.keyboard.press("Enter")
    dialog.get_by_role("button", name="Discard and leave").click()
    expect(page.locator("main h1")).to_have_text("Timeline")
    page.go_back()
    expect(name).to_have_value("")


def test_a_double_click_on_check_creates_nothing_and_one_on_create_creates_once(visit: Visit, site: Site) -> None:
    page = visit.page
    visit.go("#/create?api=TenantCluster")
    page.get_by_label("Name", exact=True).fill("tug")
    page.get_by_role("button", name="Check").dblclick()
    expect(page.get_by_text("The API server accepts it.")).to_be_visible()
    create = page.get_by_role("button", name="Create", exact=True)
    expect(create).to_be_focused()
    assert site.kubectl.run("get", "tenantcluster/tug").code != 0
    # A key that is held is no answer.
    create.evaluate(
        "at => at.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', repeat: true, cancelable: true }))"
    )
    assert site.kubectl.run("get", "tenantcluster/tug").code != 0
    create.dblclick()
    expect(page.locator("main h1")).to_contain_text("tug TenantCluster")  # and no question: nothing is lost
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".notice.bad")).to_have_count(0)
    posts = [asked for _, asked in visit.answers if '"method":"POST"' in asked and "fieldManager" in asked]
    assert len(posts) == 1, posts
    site.kubectl.ok("delete", "tenantcluster/tug", "--timeout=100s", seconds=110)


def test_a_double_click_on_apply_is_no_conflict_with_oneself(visit: Visit, site: Site) -> None:
    page = visit.page
    site.kubectl.ok("create", "configmap", "twice", "--from-literal=a=b")
    visit.go("#/object/core/configmaps/default/twice")
    text = page.get_by_label("YAML of ConfigMap twice")
    expect(text).to_be_visible()
    text.fill(text.input_value().replace("a: b", "a: c"))
    page.get_by_role("button", name="Review the change").dblclick()
    page.get_by_role("button", name="Apply").dblclick()
    expect(page.locator(".notice.good")).to_contain_text("ConfigMap twice was changed")
    expect(page.get_by_role("region", name="Conflict")).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)
    puts = [asked for _, asked in visit.answers if '"method":"PUT"' in asked and "fieldManager" in asked]
    assert len(puts) == 1, puts


def put(text: Locator, value: str) -> None:
    """As a paste does; the browser's own way to type takes minutes for so many lines."""
    text.evaluate(
        "(at, value) => { at.value = value; at.dispatchEvent(new InputEvent('input', { bubbles: true })); }", value
    )


def test_a_text_of_a_megabyte_is_edited_and_reviewed_with_few_elements(visit: Visit, site: Site) -> None:
    page = visit.page
    site.kubectl.ok("create", "configmap", "large")
    visit.go("#/object/core/configmaps/default/large")
    text = page.get_by_label("YAML of ConfigMap large")
    expect(text).to_be_visible()
    lines = "".join(f"  line-{number}: {'x' * 20}\n" for number in range(25_000))
    put(text, f"{text.input_value().rstrip()}\ndata:\n{lines}")
    page.get_by_role("button", name="Review the change").click()
    expect(page.locator(".diff .gap").last).to_contain_text("more lines, which are written, too")
    assert page.locator(".diff > div").count() < 1100
    put(text, f"{text.input_value().rstrip()}\n{lines.replace('line', 'more') * 3}")
    page.get_by_role("button", name="Review the change").click()
    expect(page.get_by_role("alert")).to_contain_text("too large")  # for the API server
    assert "line-1:" in text.input_value()
    page.get_by_role("button", name="Discard", exact=True).click()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_the_timeline_below_an_object_is_about_it_and_stays_as_it_was_left(visit: Visit, site: Site) -> None:
    page = visit.page
    site.kubectl.ok("create", "configmap", "story")
    site.kubectl.ok("label", "configmap/story", "a=b")
    below = page.get_by_role("region", name="Timeline")
    toggle = below.get_by_role("button", name="Timeline")
    visit.go("#/object/core/configmaps/default/story")
    expect(toggle).to_have_attribute("aria-expanded", "true")
    expect(below.locator(".timeline li").first).to_contain_text("ConfigMap story")
    toggle.click()
    page.reload()
    expect(toggle).to_have_attribute("aria-expanded", "false")
    expect(below.locator(".timeline li")).to_have_count(0)
    visit.go("#/machines")
    expect(toggle).to_have_attribute("aria-expanded", "false")
    toggle.click()
    visit.go("#/")
    expect(toggle).to_have_attribute("aria-expanded", "true")
    expect(below.get_by_label("Object")).to_be_visible()
    accessible(visit)
