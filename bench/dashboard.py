"""The dashboard with many machines: what it costs the plane, and how the browser copes.

    bench/dashboard.py [--machines 10000] [--changes 100] [--seconds 20]

A plane as users start it serves one Cluster with that many Machines to Debian's Chromium. Needs chromium on PATH.
Takes about six minutes, ends by itself after fifteen, and prints a table in Markdown at the end. Durations grow with
other load of the machine; tasks are therefore counted a second time in processor time, which does not.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE)]

from dashboard_object import complain, count_ready, make, report  # noqa: E402
from dashboard_rest import count_requests, rest, settle  # noqa: E402
from playwright.sync_api import Browser  # noqa: E402
from process import cpu_seconds, resident_mib  # noqa: E402

from e2e.browsing import Visit, chromium, homeport, log_in, main_thread_tasks  # noqa: E402
from homeport.client import kubeconfig  # noqa: E402
from homeport.client.http import HttpClient  # noqa: E402
from homeport.dashboard.page import load  # noqa: E402

WATCH_TASKS = """
globalThis.tasks = [];
new PerformanceObserver((list) => { for (const each of list.getEntries()) tasks.push(Math.round(each.duration)); })
  .observe({ type: "longtask", buffered: true });
"""
LOG_OUT = """
async () => fetch("session", { method: "DELETE", headers: { "X-Homeport-Key": localStorage.getItem("homeport-key") } })
"""
ROUNDS = 20
MOST_SECONDS = 900
LONG_TASK = 50.0  # milliseconds


class Writer:
    """Writes from a thread of its own, with a connection of its own."""

    def __init__(self, config: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._enough = False
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._client = self._run(self._connect(config))

    async def _connect(self, config: Path) -> HttpClient:
        return HttpClient(kubeconfig.load(config))

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def do(self, work: Callable[..., Any], *args: Any) -> Any:
        return self._run(work(self._client, *args))

    def churn(self, machines: int, rate: int, seconds: float) -> Any:
        return asyncio.run_coroutine_threadsafe(self._churn(machines, rate, seconds), self._loop)

    async def _churn(self, machines: int, rate: int, seconds: float) -> float:
        """Gives how many changes a second were made."""
        begun, done, passed, self._enough = time.monotonic(), 0, 0.0, False
        while (passed := time.monotonic() - begun) < seconds and not self._enough:
            due = int(passed * rate) - done
            await asyncio.gather(
                *(report(self._client, (done + k) * 7919 % machines, f"change {done + k}") for k in range(due))
            )
            done += due
            await asyncio.sleep(0.05)
        return done / passed

    def stop(self, churning: Any) -> float:
        """Before its time."""
        self._enough = True
        return float(churning.result())

    def close(self) -> None:
        self._run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def plane(folder: Path) -> Iterator[tuple[Path, int]]:
    data = folder / "data"
    with open(folder / "log", "wb") as log:
        command = [sys.executable, "-m", "homeport", "up", "--data", str(data), "--listen", "127.0.0.1:0"]
        process = subprocess.Popen([*command, "--log-level", "warning"], stdout=log, stderr=subprocess.STDOUT)
    try:
        while not (data / "run.json").exists():
            if process.poll() is not None:
                raise SystemExit((folder / "log").read_text())
            time.sleep(0.2)
        yield data, process.pid
    finally:
        process.terminate()
        process.wait(120)


def link(data: Path) -> str:
    done = homeport("dashboard", "--data", str(data))
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout.split()[0]


def cold(browser: Browser, data: Path) -> tuple[float, float, float]:
    """Seconds to the first paint, until the front page has its content, and until every machine is counted, in a
    browser and a session that know nothing."""
    address = link(data)
    begun = time.perf_counter()
    visit = log_in(browser, address)
    visit.page.wait_for_selector("main article")
    content = time.perf_counter() - begun
    visit.page.wait_for_selector("main .sum:not(:has([role=status]))")
    whole = time.perf_counter() - begun
    paint = visit.page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000")
    visit.page.evaluate(LOG_OUT)  # or its watches would last for a while
    visit.page.context.close()
    return float(paint), content, whole


def p95(samples: list[float]) -> float:
    return statistics.quantiles(samples, n=20)[-1]


def appears(visit: Visit, text: str) -> None:
    visit.page.wait_for_function(
        "text => document.querySelector('main').innerText.includes(text)", arg=text, polling=10
    )


def delays(visit: Visit, write: Callable[[int], str]) -> list[float]:
    found = []
    for number in range(ROUNDS):
        time.sleep(0.4 + number % 7 / 10)  # people do not write as fast as they can
        text = write(number)
        written = time.perf_counter()
        appears(visit, text)
        found.append(time.perf_counter() - written)
    return found


RESULTS: list[tuple[str, str, str]] = []
BEGUN = time.monotonic()


def tell(text: str) -> None:
    print(f"{time.monotonic() - BEGUN:4.0f} s  {text}", flush=True)


def show(name: str, value: str, aim: str = "-") -> None:
    tell(f"{name:66} {value}")
    RESULTS.append((name, aim, value))


def print_table() -> None:
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"\n{os.cpu_count()} cores, load {load}, {time.monotonic() - BEGUN:.0f} s\n")
    print("| | aim | measured |\n|---|---|---|")
    for row in RESULTS:
        print(f"| {' | '.join(row)} |")


def give_up(signum: int, frame: object) -> None:
    raise SystemExit(f"not finished after {MOST_SECONDS} s: the machine is too busy to measure anything")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=10_000)
    parser.add_argument("--changes", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=20.0)
    asked = parser.parse_args()
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(MOST_SECONDS)
    with tempfile.TemporaryDirectory(prefix="homeport-bench-") as folder, plane(Path(folder)) as (data, pid):
        writer = Writer(data / "kubeconfig")
        writer.do(make, asked.machines)
        tell(f"{asked.machines} Machines created")
        writer.do(complain, "first")
        with chromium() as browser:
            measure(browser, data, pid, writer, asked)
        writer.close()
    print_table()
    return 0


def measure(browser: Browser, data: Path, pid: int, writer: Writer, asked: argparse.Namespace) -> None:
    files = load()
    show("script of the first page, gzip, KB", f"{len(files['app.js'].packed) / 1000:.1f}", "60")
    settle(pid)
    tell("the plane is at rest")
    alone = rest(pid, lambda: requests(writer))
    unwatched = cost(pid, writer, asked)
    paints = [cold(browser, data) for _ in range(5)]
    show("first paint, cold, s (median of 5)", f"{statistics.median(each[0] for each in paints):.2f}", "1")
    show(
        "front page with its content, cold, s (median of 5)",
        f"{statistics.median(each[1] for each in paints):.2f}",
        "1",
    )
    show("all machines counted, cold, s (median of 5)", f"{statistics.median(each[2] for each in paints):.2f}")
    visit = log_in(browser, link(data))
    visit.page.context.add_init_script(WATCH_TASKS)
    visit.page.reload()
    visit.page.wait_for_selector("main article")
    visit.page.wait_for_selector("main .sum:not(:has([role=status]))")
    settle(pid)
    tell("the plane is at rest, with a page")
    watched = rest(pid, lambda: requests(writer))
    show("the plane at rest, % of a core: no page, mean of a minute (of 10 s)", str(alone))
    show("the plane at rest, % of a core: a page, mean of a minute (of 10 s)", str(watched))
    show("what the page adds at rest, % of a core", f"{watched.mean - alone.mean:.2f}", "1")
    added = Counter(watched.requests) - Counter(alone.requests)
    show("requests of the page at rest, a minute", ", ".join(f"{n:.0f} {what}" for what, n in added.most_common()))
    causes = delays(visit, lambda number: said(writer, number))
    show(
        "a cause on the front page, s after the write: median, p95",
        f"{statistics.median(causes):.2f}, {p95(causes):.2f}",
        "2",
    )
    visit.go("#/cluster/Cluster/default/big")
    visit.page.wait_for_selector("ul.tree li")
    trees = delays(visit, lambda number: counted(writer, number, asked.machines))
    show("the tree, s after the write: median, p95", f"{statistics.median(trees):.2f}, {p95(trees):.2f}", "0.5 (p95)")
    show("elements of the tree", str(visit.page.locator("ul.tree li").count()), "300")
    churning = writer.churn(asked.machines, asked.changes, MOST_SECONDS)
    trees = delays(visit, lambda number: counted(writer, ROUNDS + number, asked.machines))
    show("the tree, with the changes, s: median, p95", f"{statistics.median(trees):.2f}, {p95(trees):.2f}", "0.5 (p95)")
    writer.stop(churning)
    show("the plane with the changes and no page, % of a core", f"{unwatched:.0f}")
    table(visit, writer, pid, asked)


def cost(pid: int, writer: Writer, asked: argparse.Namespace) -> float:
    """Percent of one core that the changes take without any page."""
    before: float = cpu_seconds([pid])
    writer.churn(asked.machines, asked.changes, asked.seconds).result()
    return (cpu_seconds([pid]) - before) / float(asked.seconds) * 100


class MainThread:
    """Processor time of a page's main thread: unlike the duration of a task, it does not grow with the load."""

    def __init__(self, visit: Visit) -> None:
        self._session = visit.page.context.new_cdp_session(visit.page)
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})
        self._before = self._read()

    def _read(self) -> dict[str, float]:
        found = self._session.send("Performance.getMetrics")["metrics"]
        return {each["name"]: each["value"] for each in found}

    def since(self, name: str) -> float:
        return float(self._read()[name] - self._before[name])


def table(visit: Visit, writer: Writer, pid: int, asked: argparse.Namespace) -> None:
    page = visit.page
    page.evaluate("tasks.length = 0")
    begun = time.perf_counter()
    visit.go("#/machines")
    page.wait_for_selector(f"[role=table][aria-rowcount='{asked.machines + 1}']")
    show("the table with all rows, s", f"{time.perf_counter() - begun:.2f}")
    show("long tasks while it is filled, ms", str(page.evaluate("tasks")), "none")
    page.evaluate("tasks.length = 0")
    before = cpu_seconds([pid])
    churning = writer.churn(asked.machines, asked.changes, asked.seconds)
    thread = MainThread(visit)
    most = 0
    while not churning.done():
        page.evaluate("document.querySelector('[role=table]').scrollTop += 700")
        most = max(most, page.locator("[role=row]").count())
        time.sleep(0.2)
    show("changes a second", f"{churning.result():.0f}")
    show("long tasks over 50 ms meanwhile, with scrolling, ms", str(page.evaluate("tasks")), "none")
    busy = {name: thread.since(f"{name}Duration") * 1000 / asked.seconds for name in ("Task", "Script", "Layout")}
    show(
        "main thread, ms of processor time a second: all, script, layout", ", ".join(f"{e:.0f}" for e in busy.values())
    )
    show("row elements at most", str(most), "100")
    show("the plane meanwhile, % of a core", f"{(cpu_seconds([pid]) - before) / asked.seconds * 100:.0f}")
    took = traced(visit, writer, asked)
    show("tasks over 50 ms of processor time meanwhile, ms", str([round(e) for e in took if e > LONG_TASK]), "none")
    show("the longest task, ms of processor time", f"{max(took):.0f}", "50")
    taken = page.evaluate("""async () => {
      const box = document.querySelector("input[type=search]");
      const begun = performance.now();
      box.value = "00042"; box.dispatchEvent(new Event("input", { bubbles: true }));
      while (document.querySelector("[role=table]").ariaRowCount > 20) await new Promise(requestAnimationFrame);
      return performance.now() - begun;
    }""")
    show("a filter, ms", f"{taken:.0f}", "100")
    show("memory of the plane, MiB", f"{resident_mib([pid]):.0f}")
    heap = page.context.new_cdp_session(page).send("Runtime.getHeapUsage")["usedSize"]
    show("heap of the page, MiB", f"{heap / 1024 / 1024:.0f}")


def traced(visit: Visit, writer: Writer, asked: argparse.Namespace) -> list[float]:
    """Milliseconds of processor time of each task while the machines change and the table scrolls."""
    browser = visit.page.context.browser
    assert browser is not None
    browser.start_tracing(page=visit.page, categories=["disabled-by-default-devtools.timeline"])
    churning = writer.churn(asked.machines, asked.changes, asked.seconds / 2)
    while not churning.done():
        visit.page.evaluate("document.querySelector('[role=table]').scrollTop += 700")
        time.sleep(0.2)
    return main_thread_tasks(browser.stop_tracing())


def requests(writer: Writer) -> Counter[str]:
    found: Counter[str] = writer.do(count_requests)
    return found


def said(writer: Writer, number: int) -> str:
    writer.do(complain, f"cause number {number}")
    return f"cause number {number}"


def counted(writer: Writer, number: int, machines: int) -> str:
    writer.do(count_ready, number + 1)
    return f"{number + 1} of {machines}"


if __name__ == "__main__":
    sys.exit(main())
