"""Writes docs/picture/dashboard-*.webp: pages of the dashboard in a real browser, in both themes.

With --check nothing is written; the exit code says whether each picture can be made again, in the size that it has.
Needs chromium and kubectl.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from e2e.browsing import Site, Visit, chromium, example, log_in, start  # noqa: E402
from e2e.cluster import Cluster  # noqa: E402

FOLDER = ROOT / "docs/picture"
WIDTH, HEIGHT = 1280, 800
MOST_BYTES = 120_000
_ENCODE = """async (png) => {
  const image = new Image();
  image.src = png;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", 0.8);
}"""


def overview(visit: Visit, quick: bool) -> None:
    visit.go("#/")
    expect(visit.page.locator("article.sick")).to_contain_text("no-such-image")
    expect(visit.page.locator("article.sick .cause a")).to_be_visible()
    expect(visit.page.locator("article.well").first).to_contain_text("5 of 5")


def tree(visit: Visit, quick: bool) -> None:
    visit.go("#/cluster/Cluster/default/harbour")
    expect(visit.page.locator("ul.tree")).to_contain_text("2 of 2 ready")
    expect(visit.page.get_by_role("button", name="Scale")).to_be_visible()  # as soon as the rights are known


def change(visit: Visit, quick: bool) -> None:
    visit.go("#/object/cluster.x-k8s.io/machinedeployments/default/harbour-workers")
    text = visit.page.locator("textarea")
    expect(text).to_be_visible()
    # The reference to the template: the last of this name is that of the machines.
    before, _, after = text.input_value().rpartition("name: harbour-workers\n")
    text.fill(f"{before}name: harbour-workers-8g\n{after}")
    visit.page.get_by_role("button", name="Review the change").click()
    expect(visit.page.locator(".diff .add", has_text="harbour-workers-8g")).to_be_visible()
    if not quick:
        expect(visit.page.locator(".rehearsal")).not_to_contain_text("Rehearsing", timeout=120_000)
        expect(visit.page.locator(".rehearsal")).to_contain_text("replaced")
    visit.page.locator(".diff").evaluate("each => each.previousElementSibling.scrollIntoView({ block: 'start' })")
    visit.page.evaluate("scrollBy(0, 8)")  # past the buttons above it


PAGES: dict[str, Callable[[Visit, bool], None]] = {"overview": overview, "tree": tree, "change": change}


def prepare(site: Site) -> None:
    site.kubectl.ok("apply", "-f", str(ROOT / "examples/02-cluster/network.yaml"))
    site.kubectl.ok("apply", "-f", "-", stdin=example("harbour", "10.0.0.101"))
    site.kubectl.ok("apply", "-f", "-", stdin=example("pier", "10.0.0.103"))
    site.kubectl.ok("apply", "-f", str(ROOT / "examples/02-cluster/bigger-workers.yaml"))
    broken = example("jetty", "10.0.0.102").replace("name: ubuntu-22.04-kube-v1.29.0", "name: no-such-image")
    site.kubectl.ok("apply", "-f", "-", stdin=broken)
    for name in ("harbour", "pier"):
        for each in (f"cluster/{name}", f"machinedeployment/{name}-workers"):
            site.kubectl.ok("wait", each, "--for=condition=Available", "--timeout=180s", seconds=190)


def pictures(browser: Browser, link: str, *, quick: bool = False) -> Iterator[tuple[str, bytes]]:
    """Name and content of each; `quick`: in one theme, and not to the end of what takes long."""
    visit = log_in(browser, link)
    visit.page.on("dialog", lambda dialog: dialog.accept())  # the change of the last picture is not applied
    encoder = browser.new_page()
    for theme in ("light",) if quick else ("light", "dark"):
        visit.page.evaluate("theme => localStorage.setItem('homeport-theme', theme)", theme)
        visit.page.reload()
        for name, show in PAGES.items():
            show(visit, quick)
            yield f"dashboard-{name}-{theme}.webp", shoot(visit.page, encoder)
    encoder.close()
    visit.page.context.close()


def shoot(page: Page, encoder: Page) -> bytes:
    png = page.screenshot(animations="disabled", caret="hide")
    made = encoder.evaluate(_ENCODE, f"data:image/png;base64,{base64.b64encode(png).decode()}")
    return base64.b64decode(made.partition(",")[2])


def problem(content: bytes) -> str:
    """Why it is not a picture for the documentation, '' if it is one."""
    if content[:4] != b"RIFF" or content[8:12] != b"WEBP":
        return "not a WebP file"
    return f"{len(content)} bytes, the limit is {MOST_BYTES}" if len(content) > MOST_BYTES else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--data", type=Path, help="of a plane that has the clusters already")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, plane(Path(folder), asked.data) as site, chromium() as browser:
        wrong = [
            said
            for made in pictures(browser, site.link(), quick=asked.check)
            if (said := keep(*made, check=asked.check))
        ]
    print("\n".join(wrong), end="")
    return 1 if wrong else 0


def keep(name: str, content: bytes, *, check: bool) -> str:
    """Why it can't be kept, '' if it is."""
    if said := problem(content):
        return f"{name}: {said}"
    if check:
        return "" if (FOLDER / name).exists() else f"{name} is missing: run tools/picture_dashboard.py"
    (FOLDER / name).write_bytes(content)
    print(f"{name}: {len(content) / 1000:.0f} KB")
    return ""


@contextmanager
def plane(folder: Path, data: Path | None) -> Iterator[Site]:
    kubectl = shutil.which("kubectl") or ""
    if data is not None:
        yield Site(data, Cluster("ours", kubectl, data / "kubeconfig", folder))
        return
    if not kubectl:
        raise SystemExit("no kubectl on PATH")
    site = start(folder, kubectl)
    try:
        prepare(site)
        yield site
    finally:
        site.stop()


if __name__ == "__main__":
    sys.exit(main())
