"""Charts and records that were made to harm a cluster: they are refused before anything is touched."""

from __future__ import annotations

import asyncio
import base64
import random
from typing import Any

import orjson
import pytest

from homeport.api.meta import Resource
from homeport.client.protocol import Key, MergePatch, Write
from homeport.helm.errors import ReleaseError
from homeport.helm.release.record import decode, encode
from homeport.runtime.clock import LoopClock
from homeport.runtime.testing import virtual
from scenario.helm.small import CONFIG_MAP, JOB, SECRET, chart, cluster, config_map, desired, job

DEFINITION = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
RECORD = Key("default", "sh.helm.release.v1.web.v1")


def definition(name: str) -> bytes:
    spec = {"group": "example.com", "names": {"kind": name.capitalize(), "plural": f"{name}s"}, "scope": "Namespaced"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    return orjson.dumps(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{name}s.example.com"},
            "spec": {**spec, "versions": [version]},
        }
    )


@virtual
async def test_a_chart_too_large_for_a_record_is_refused_before_its_definitions_are_created() -> None:
    noise = random.Random(0).randbytes(1 << 20)
    files = {**chart({"one": config_map("one")}), "crds/a.yaml": definition("gauge"), "docs/noise": noise}
    async with cluster() as c:
        with pytest.raises(ReleaseError, match=r"release default/web does not fit into a Secret \(1 MiB\)"):
            await c.releases.ensure(desired(files))
        assert (await c.client.list(DEFINITION)).items == []
        assert await c.names() == set()


@virtual
async def test_one_object_rendered_twice_with_different_content_is_refused() -> None:
    async with cluster() as c:
        with pytest.raises(ReleaseError, match="ConfigMap default/one is there twice"):
            await c.releases.ensure(desired(chart({"a": config_map("one", "1"), "b": config_map("one", "2")})))
        assert await c.names() == set()
        await c.releases.ensure(desired(chart({"a": config_map("one"), "b": config_map("one")})))
        assert await c.names() == {"one"}


@virtual
async def test_a_file_of_definitions_without_a_kind_is_refused_in_words() -> None:
    async with cluster() as c:
        with pytest.raises(ReleaseError, match=r"buoy/crds/a\.yaml: expected objects with apiVersion, kind and"):
            await c.releases.ensure(desired({**chart({}), "crds/a.yaml": b"a: 1"}))


@virtual
async def test_a_hook_does_not_delete_an_object_that_is_not_from_a_hook() -> None:
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "h", "namespace": "default"}}
    container = {"name": "main", "image": "example.com/job:1"}
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    async with cluster() as c:
        made = await c.client.create({**body, "spec": spec}, Write(), kind=JOB)
        outcome = await c.releases.install(desired(chart({"h": job("h", "pre-install")})))
        assert outcome.failed
        assert outcome.release is not None
        assert "Job/h exists already and is not from a hook" in outcome.release.description
        assert (await c.client.get(JOB, Key("default", "h"))).uid == made.uid


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("info", [], "info has the wrong type"),
        ("version", "x", "version has the wrong type"),
        ("hooks", [1], "hooks has the wrong type"),
        ("hooks", {"a": 1}, "hooks has the wrong type"),
        ("manifest", {}, "manifest has the wrong type"),
        ("namespace", "kube-system", "a release in namespace 'kube-system'"),
        ("name", "other", "the record is of release 'other'"),
        ("version", 7, "revision 7"),
    ],
)
def test_a_record_that_someone_changed_is_not_believed(field: str, value: Any, message: str) -> None:
    @virtual
    async def run() -> None:
        async with cluster() as c:
            await c.releases.install(desired(chart({"one": config_map("one")})))
            secret = await c.client.get(SECRET, RECORD)
            raw = {**decode(base64.b64decode(secret["data"]["release"])), field: value}
            data = base64.b64encode(encode(raw).encode()).decode()
            await c.client.patch(SECRET, RECORD, MergePatch({"data": {"release": data}}))
            for work in (c.releases.uninstall("default", "web"), c.releases.ensure(desired(chart({})))):
                with pytest.raises(ReleaseError, match=rf"Secret default/{RECORD.name}: .*{message}"):
                    await work
            assert await c.names() == {"one"}

    run()


@virtual
async def test_a_record_of_a_newer_helm_is_not_overlooked() -> None:
    labels = {"owner": "helm", "name": "web", "version": "1", "status": "deployed"}
    meta = {"name": "sh.helm.release.v2.web.v1", "namespace": "default", "labels": labels}
    body = {"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v2", "metadata": meta}
    async with cluster() as c:
        await c.client.create(body, Write(), kind=SECRET)
        with pytest.raises(ReleaseError, match=r"of type 'helm.sh/release.v2' is from a newer Helm"):
            await c.releases.ensure(desired(chart({"one": config_map("one")})))
        assert await c.names(CONFIG_MAP) == set()


async def test_others_go_on_while_a_chart_is_rendered() -> None:
    """In real time: the loop turns while a template computes."""
    busy = "{{ range until 400 }}{{ range until 400 }}{{ end }}{{ end }}"
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.001)
            turns += 1

    async with cluster() as c:
        counting = asyncio.create_task(count())
        await asyncio.sleep(0.01)
        before, start = turns, LoopClock().now()
        await c.releases.ensure(desired(chart({"one": config_map("one", busy)})))
        seconds = LoopClock().now() - start
        counting.cancel()
        assert turns - before > seconds * 10, "the loop stood still"
