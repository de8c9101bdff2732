"""Clusters of Butler, k0rdent and ClusterClasses in the dashboard: what is written stays, and pages about them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

from e2e.browsing import MARKS, ROOT, Site, Visit, homeport, log_in, start
from e2e.test_dashboard_walk import LONG, TEAM, accessible

pytestmark = MARKS


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, kubectl: str) -> Iterator[Site]:
    """TenantCluster `quay`, ClusterDeployment `pier`, and Cluster `pilot` of a ClusterClass."""
    made = start(tmp_path_factory.mktemp("platform"), kubectl)
    for each in ("09-tenant/tenant", "10-deployment/deployment", "04-clusterclass/class", "04-clusterclass/cluster"):
        made.kubectl.ok("apply", "-f", str(ROOT / f"examples/{each}.yaml"))
    made.kubectl.ok("apply", "-f", "-", stdin=TEAM)
    for name, condition, space in (
        ("cluster/pilot", "Available", "default"),
        ("tenantcluster/quay", "Ready", "default"),
        ("clusterdeployment/pier", "Ready", "kcm-system"),
    ):
        made.kubectl.ok("wait", name, "-n", space, f"--for=condition={condition}", "--timeout=200s", seconds=210)
    yield made
    made.stop()


@pytest.fixture
def visit(site: Site, browser: Browser) -> Iterator[Visit]:
    made = log_in(browser, site.link())
    yield made
    assert made.complaints == []
    made.page.context.close()


def action(visit: Visit, address: str, name: str) -> Locator:
    visit.go(address)
    visit.page.locator(".actions").get_by_role("button", name=name).click()
    return visit.page.get_by_role("dialog")


def field(site: Site, name: str, path: str, space: str = "default") -> str:
    return site.kubectl.ok("get", name, "-n", space, "-o", f"jsonpath={{{path}}}")


@pytest.mark.parametrize(
    ("address", "label", "name", "space", "path"),
    [
        ("#/cluster/TenantCluster/default/quay", "Workers", "tenantcluster/quay", "default", ".spec.workers.replicas"),
        (
            "#/cluster/ClusterDeployment/kcm-system/pier",
            "Workers",
            "clusterdeployment/pier",
            "kcm-system",
            ".spec.config.workersNumber",
        ),
        (
            "#/cluster/Cluster/default/pilot",
            "Workers crew",
            "cluster.cluster.x-k8s.io/pilot",
            "default",
            ".spec.topology.workers.machineDeployments[0].replicas",
        ),
    ],
)
def test_a_number_of_machines_is_written_where_its_owner_reads_it(
    visit: Visit, site: Site, address: str, label: str, name: str, space: str, path: str
) -> None:
    """A MachineDeployment below would be set back."""
    before = int(field(site, name, path, space))
    dialog = action(visit, address, "Scale")
    dialog.get_by_label("What").select_option(label=label)
    expect(dialog.get_by_label("Replicas")).to_have_value(str(before))
    dialog.get_by_label("Replicas").fill(str(before + 1))
    expect(dialog).to_contain_text("1 machine will be created.")
    command = dialog.locator("code").inner_text()
    assert command.startswith("kubectl patch ")
    accessible(visit)
    dialog.get_by_role("button", name="Scale", exact=True).click()
    expect(visit.page.locator(".notice.good")).to_contain_text(f"{before + 1} desired")
    assert field(site, name, path, space) == str(before + 1)
    workers = visit.page.locator('li[data-object^="MachineDeployment/"] > .leaf')
    expect(workers).to_contain_text(f"{before + 1} of {before + 1} ready", timeout=LONG)


@pytest.mark.parametrize(("kind", "name"), [("Cluster", "pilot"), ("TenantCluster", "quay")])
def test_a_cluster_is_paused_and_resumed(visit: Visit, site: Site, kind: str, name: str) -> None:
    group = "cluster.x-k8s.io" if kind == "Cluster" else "butler.butlerlabs.dev"
    for verb, paused in (("Pause", True), ("Resume", False)):
        dialog = action(visit, f"#/cluster/{kind}/default/{name}", "Pause or resume")
        button = dialog.get_by_role("button", name=verb, exact=True)
        expect(button).to_be_visible()
        body = json.dumps({"spec": {"paused": paused}}, separators=(",", ":"))
        what = f"{kind.lower()}s.{group} {name}"
        expect(dialog.locator("code")).to_have_text(f"kubectl patch -n default {what} --type merge -p '{body}'")
        accessible(visit)
        button.click()
        expect(visit.page.locator(".notice.good").last).to_contain_text(f"{kind} {name} is {verb.lower()}d")
        assert (field(site, f"{kind.lower()}s.{group}/{name}", ".spec.paused") == "true") is paused


def test_an_upgrade_of_a_tenant_is_written_to_its_own_object(visit: Visit, site: Site) -> None:
    dialog = action(visit, "#/cluster/TenantCluster/default/quay", "Upgrade")
    dialog.get_by_label("Version").fill("v1.33.0")
    dialog.get_by_role("button", name="Show what will happen").click()
    expect(visit.page.locator(".notice.bad")).to_contain_text("v1.33.0 is older than")


def test_each_cluster_is_on_the_front_page_once_and_healthy(visit: Visit) -> None:
    """k0smotron has a kind Cluster, too: it is a part of a control plane."""
    well = visit.page.locator("article.well")
    for name in ("pilot", "quay", "pier"):
        expect(well.filter(has=visit.page.get_by_role("link", name=name, exact=True))).to_have_count(1, timeout=LONG)
    expect(well).to_have_count(3)
    expect(visit.page.locator("article.sick")).to_have_count(0)


def test_templates_name_who_uses_them(visit: Visit) -> None:
    visit.go("#/templates")
    for kind, name, user in (
        ("ClusterClass cluster.x-k8s.io", "quay", "Cluster pilot"),
        ("ClusterTemplate k0rdent.mirantis.com", "nutanix-k0s-hcp", "ClusterDeployment pier"),
        ("NutanixMachineTemplate infrastructure.cluster.x-k8s.io", "quay-worker", "ClusterClass quay"),
        ("KubeadmControlPlaneTemplate controlplane.cluster.x-k8s.io", "quay", "ClusterClass quay"),
    ):
        table = visit.page.get_by_role("table", name=kind, exact=True)
        row = table.get_by_role("row").filter(has=visit.page.get_by_role("link", name=name, exact=True))
        expect(row.get_by_role("link", name=user)).to_be_visible()
    accessible(visit)


def test_teams_show_what_they_use_of_their_quota(visit: Visit) -> None:
    visit.go("#/teams")
    row = visit.page.get_by_role("table", name="Teams").get_by_role("row").filter(has_text="dockers")
    expect(row).to_contain_text("clusters 0 of 2, CPU 0 of 8, memory 0 of 64Gi")
    expect(row).to_contain_text("OK")
    expect(visit.page.locator("main")).to_contain_text("There is no ClusterCreationPolicy")
    accessible(visit)


def test_a_cluster_says_how_to_get_its_kubeconfig_and_what_is_installed(visit: Visit, site: Site) -> None:
    visit.go("#/cluster/Cluster/default/pilot?tab=access")
    main = visit.page.locator("main")
    expect(main).to_contain_text("https://10.0.0.104:6443")
    expect(main).to_contain_text("default/pilot-kubeconfig, which you may read")
    expect(main.locator(".command code").first).to_have_text("homeport kubeconfig pilot -n default -o pilot.kubeconfig")
    expect(main.locator("tbody tr").first).to_contain_text(re.compile("36[0-9] days"))
    accessible(visit)
    visit.go("#/cluster/TenantCluster/default/quay?tab=access")
    expect(main).to_contain_text("your own name and your role in the team")
    visit.page.get_by_role("link", name="add-ons", exact=True).click()
    addon = visit.page.get_by_role("table", name="Add-ons").get_by_role("row").filter(has_text="quay-cilium")
    expect(addon).to_contain_text("Ready")
    accessible(visit)


def test_the_plane_shows_components_certificates_backup_and_kubeconfig(visit: Visit, site: Site) -> None:
    visit.go("#/plane")
    main = visit.page.locator("main")
    expect(main).to_contain_text("No backup of this plane has been written yet.")
    target = site.data.parent / "plane.tar"
    done = homeport("backup", str(target), "--data", str(site.data))
    assert done.returncode == 0, done.stderr
    expect(main).to_contain_text(re.compile(rf"The last backup was written \d+s ago to {re.escape(str(target))}"))
    expect(main).to_contain_text(str(site.data / "kubeconfig"))
    certificates = main.locator("section").filter(has=visit.page.get_by_role("heading", name="Certificates"))
    for name, renewal in (("CA", "by hand"), ("API server", "automatic"), ("administrator", "automatic")):
        row = certificates.locator("tbody tr").filter(has_text=name).first
        expect(row).to_contain_text(re.compile(r"\d+ days"))
        expect(row).to_contain_text(renewal)
    expect(main.locator("tbody tr").filter(has_text="controllers")).to_contain_text("running")
    accessible(visit)
