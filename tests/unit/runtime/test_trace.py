from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from homeport.api.meta import Resource
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.client.errors import Invalid, NotFound
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.outcome import Terminal, Wait
from homeport.runtime.telemetry import trace

CONFIG = Resource("", "v1", "ConfigMap", "configmaps")


@pytest.fixture
def spans() -> Iterator[Any]:
    pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.enable(provider)
    yield exporter
    trace.disable()


class Steps:
    def __init__(self, *results: Any) -> None:
        self._results = list(results)

    async def reconcile(self, key: Key) -> Wait | None:
        result = self._results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result  # type: ignore[no-any-return]


def test_nothing_is_wrapped_while_tracing_is_off() -> None:
    reconciler, client = Steps(), object()
    assert not trace.enabled()
    assert trace.traced_reconciler("machine", reconciler) is reconciler
    assert trace.traced_client(client) is client  # type: ignore[arg-type]
    with trace.span("anything", {"a": 1}) as current:
        assert current is None
    assert trace.span("a") is trace.span("b")


async def test_each_reconcile_is_a_span_that_says_how_it_ended(spans: Any) -> None:
    steps = Steps(None, Wait("NoData"), Terminal("Broken", "for good"))
    reconciler = trace.traced_reconciler("machine", steps)
    for _ in range(2):
        await reconciler.reconcile(Key("default", "a"))
    with pytest.raises(Terminal):
        await reconciler.reconcile(Key("default", "a"))
    done, wait, terminal = spans.get_finished_spans()
    assert done.name == "reconcile machine"
    assert done.attributes == {"homeport.controller": "machine", "homeport.object": "default/a"}
    assert wait.attributes["homeport.wait"] == "NoData"
    assert terminal.attributes["homeport.terminal"] == "Broken"
    assert not terminal.status.is_ok


async def test_calls_are_spans_within_the_reconcile_that_makes_them(spans: Any, tmp_path: Path) -> None:
    server = await EmbeddedServer.open(None, PKI.ensure(tmp_path / "pki"))
    client = trace.traced_client(server.client())
    key = Key("default", "a")
    body = {"metadata": {"name": "a", "namespace": "default"}, "data": {"k": "secret-content"}}
    with trace.span("outer"):
        await client.create(body, kind=CONFIG)
        await client.patch(CONFIG, key, MergePatch({"data": {"k": "2"}}))
        await client.list(CONFIG, Query(namespace="default"))
        async with client.watch(CONFIG, Query(), timeout=0.01):
            pass
        with pytest.raises(NotFound):
            await client.get(CONFIG, Key("default", "none"))
        with pytest.raises(Invalid):
            await client.create({"metadata": {"name": "A!", "namespace": "default"}}, kind=CONFIG)
        await client.delete(CONFIG, key)
    await client.close()
    await server.close()
    *calls, outer = spans.get_finished_spans()
    assert [each.name for each in calls] == [
        "create configmaps",
        "patch configmaps",
        "list configmaps",
        "get configmaps",
        "create configmaps",
        "delete configmaps",
    ]
    assert {each.parent.span_id for each in calls} == {outer.context.span_id}
    assert calls[0].attributes["homeport.object"] == "default/a"
    assert calls[1].attributes["homeport.object"] == "default/a"
    missing, refused = calls[3], calls[4]
    assert (missing.attributes["http.response.status_code"], missing.status.status_code.name) == (404, "UNSET")
    assert (refused.attributes["http.response.status_code"], refused.status.status_code.name) == (422, "ERROR")
    assert "secret-content" not in "".join(each.to_json() for each in calls)


def test_without_the_packages_the_error_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from homeport.runtime.telemetry import trace\n"
        "try: trace.enable()\n"
        "except trace.TracingUnavailable as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    assert "pip install 'homeport[tracing]'" in done.stdout


def test_tracing_that_is_off_imports_nothing() -> None:
    program = "import sys; from homeport.runtime.telemetry import trace; trace.span('x'); sys.exit('opentelemetry' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
