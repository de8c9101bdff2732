"""Releases from their first install to their end, on a cluster in memory and in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from homeport.api.meta import Resource
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch, Write
from homeport.helm.errors import ReleaseError
from homeport.helm.release.releases import FOREIGN_SECONDS
from homeport.runtime.testing import virtual
from present import present
from scenario.helm.small import CONFIG_MAP, JOB, SECRET, chart, cluster, config_map, desired, job

HOOKED = chart(
    {
        "early": job("early", "pre-install", 1),
        "earliest": job("earliest", "pre-install", -1, "hook-succeeded"),
        "one": config_map("one"),
        "late": job("late", "post-install,post-upgrade"),
        "end": job("end", "pre-delete"),
        "over": job("over", "post-delete", policy="hook-succeeded"),
    }
)


@virtual
async def test_objects_get_the_marks_of_helm() -> None:
    async with cluster() as c:
        outcome = await c.releases.install(desired(chart({"one": config_map("one")})))
        assert present(outcome.release).status == "deployed"
        metadata = (await c.client.get(CONFIG_MAP, Key("default", "one"))).metadata
        assert metadata["labels"] == {"app.kubernetes.io/managed-by": "Helm"}
        assert metadata["annotations"] == {
            "meta.helm.sh/release-name": "web",
            "meta.helm.sh/release-namespace": "default",
        }


@virtual
async def test_hooks_run_in_the_order_of_their_weights_and_block_nothing() -> None:
    async with cluster() as c:
        outcome = await c.releases.install(desired(HOOKED))
        assert present(outcome.wait).reason == "WaitingForHook"
        assert await c.names(JOB) == {"earliest"}
        assert await c.names() == set()
        outcome = await c.until_done(lambda: c.releases.install(desired(HOOKED)))
        assert c.jobs == ["earliest", "early", "late"]
        assert await c.names(JOB) == {"early", "late"}  # earliest was deleted when all of its event had succeeded
        assert present(outcome.release).description == "Install complete"


@virtual
async def test_objects_that_a_revision_no_longer_has_are_deleted_except_those_to_keep() -> None:
    keep = {"helm.sh/resource-policy": "keep"}
    first = chart({"one": config_map("one"), "two": config_map("two"), "kept": config_map("kept", annotations=keep)})
    second = chart({"one": config_map("one", "2"), "three": config_map("three")}, version="2.0.0")
    async with cluster() as c:
        await c.releases.ensure(desired(first))
        await c.releases.ensure(desired(second))
        assert await c.names() == {"one", "three", "kept"}
        assert await c.value("one") == "2"
        assert await c.statuses() == ["superseded", "deployed"]


@virtual
async def test_rollback_makes_a_new_revision_of_the_old_content() -> None:
    async with cluster() as c:
        await c.releases.ensure(desired(chart({"one": config_map("one")})))
        await c.releases.ensure(desired(chart({"two": config_map("two")}, version="2.0.0")))
        outcome = await c.releases.rollback("default", "web", 1)
        assert present(outcome.release).description == "Rollback to 1"
        assert await c.names() == {"one"}
        assert await c.statuses() == ["superseded", "superseded", "deployed"]


@virtual
async def test_uninstall_runs_its_hooks_and_leaves_what_does_not_belong_to_it() -> None:
    keep = {"helm.sh/resource-policy": "keep"}
    files = {**HOOKED, **chart({"two": config_map("two"), "kept": config_map("kept", annotations=keep)})}
    async with cluster() as c:
        await c.until_done(lambda: c.releases.install(desired(files)))
        foreign = MergePatch({"metadata": {"labels": {"app.kubernetes.io/managed-by": "someone"}}})
        await c.client.patch(CONFIG_MAP, Key("default", "two"), foreign)
        outcome = await c.until_done(lambda: c.releases.uninstall("default", "web"))
        assert c.jobs[3:] == ["end", "over"]
        assert await c.names() == {"two", "kept"}
        assert len(outcome.kept) == 2
        assert await c.statuses() == []


@virtual
async def test_history_is_kept_if_asked_for_and_the_name_can_be_used_again() -> None:
    async with cluster() as c:
        await c.releases.ensure(desired(chart({"one": config_map("one")})))
        await c.releases.uninstall("default", "web", keep_history=True)
        assert await c.statuses() == ["uninstalled"]
        await c.releases.ensure(desired(chart({"one": config_map("one")})))
        assert await c.statuses() == ["uninstalled", "deployed"]


@virtual
async def test_an_object_of_someone_else_refuses_the_release_before_anything_is_written() -> None:
    files = chart({"one": config_map("one"), "two": config_map("two")})
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two", "namespace": "default"}}
    async with cluster() as c:
        await c.client.create(body, Write(), kind=CONFIG_MAP)
        with pytest.raises(ReleaseError, match="ConfigMap default/two exists and does not belong to the release"):
            await c.releases.install(desired(files))
        assert await c.names() == {"two"}
        assert await c.statuses() == []
        await c.releases.install(desired(files, take_ownership=True))
        assert await c.value("two") == "1"


@virtual
async def test_a_refused_object_fails_the_release_and_a_better_chart_mends_it() -> None:
    bad = "apiVersion: v1\nkind: Service\nmetadata:\n  name: x\nspec:\n  ports:\n  - port: 99999999\n"
    async with cluster() as c:
        outcome = await c.releases.ensure(desired(chart({"one": config_map("one"), "bad": bad})))
        assert outcome.failed
        assert "Service default/x" in present(outcome.release).description
        again = await c.releases.ensure(desired(chart({"one": config_map("one"), "bad": bad})))
        assert present(again.release).version == 1  # the same again gives the same: no new revision
        outcome = await c.releases.ensure(desired(chart({"two": config_map("two")})))
        assert not outcome.failed
        assert await c.names() == {"two"}  # what the failed one had brought is gone
        assert await c.statuses() == ["failed", "deployed"]


@virtual
async def test_a_failed_hook_fails_the_release() -> None:
    async with cluster() as c:
        await c.releases.install(desired(HOOKED))
        await c.finish("Failed")
        outcome = await c.releases.install(desired(HOOKED))
        assert outcome.failed
        assert "pre-install hook Job earliest" in present(outcome.release).description
        assert await c.names() == set()


@virtual
async def test_a_hook_that_never_ends_fails_after_its_time() -> None:
    async with cluster() as c:
        await c.releases.install(desired(HOOKED, hook_timeout_seconds=60.0))
        await asyncio.sleep(61)
        outcome = await c.releases.install(desired(HOOKED, hook_timeout_seconds=60.0))
        assert outcome.failed
        assert "not done after 60 s" in present(outcome.release).description


@virtual
async def test_a_hook_is_not_run_again_if_its_job_removed_itself() -> None:
    async with cluster() as c:
        await c.releases.install(desired(chart({"h": job("h", "pre-install"), "one": config_map("one")})))
        await c.client.delete(JOB, Key("default", "h"))
        outcome = await c.releases.install(desired(chart({"h": job("h", "pre-install"), "one": config_map("one")})))
        assert present(outcome.release).status == "deployed"
        assert await c.names(JOB) == set()


@virtual
async def test_a_job_of_another_run_is_not_taken_for_the_hook() -> None:
    files = chart({"h": job("h", "pre-install", policy="hook-failed"), "one": config_map("one")})
    async with cluster() as c:
        await c.until_done(lambda: c.releases.install(desired(files)))
        await c.releases.uninstall("default", "web")
        outcome = await c.releases.install(desired(files))
        assert outcome.failed
        assert "exists already" in present(outcome.release).description


@virtual
async def test_values_that_change_make_an_upgrade_and_the_same_values_make_none() -> None:
    files = chart({"one": config_map("one", "{{ .Values.size }}")})
    async with cluster() as c:
        for size in ("1", "1", "2"):
            await c.releases.ensure(desired(files, values={"size": size}))
        assert await c.statuses() == ["superseded", "deployed"]
        assert await c.value("one") == "2"


@virtual
async def test_history_is_bounded() -> None:
    files = chart({"one": config_map("one", "{{ .Values.size }}")})
    async with cluster() as c:
        for size in range(6):
            await c.releases.ensure(desired(files, values={"size": str(size)}, history_limit=3))
        assert [each.version for each in await c.releases.history("default", "web")] == [4, 5, 6]


@virtual
async def test_drift_is_found_and_repaired() -> None:
    async with cluster() as c:
        outcome = await c.releases.ensure(desired(chart({"one": config_map("one"), "two": config_map("two")})))
        release = present(outcome.release)
        assert await c.releases.drift(release) == ()
        await c.client.patch(CONFIG_MAP, Key("default", "one"), MergePatch({"data": {"value": "9"}}))
        await c.client.delete(CONFIG_MAP, Key("default", "two"))
        found = await c.releases.repair(release)
        assert [(each.object["metadata"]["name"], each.missing, each.fields) for each in found] == [
            ("one", False, ("data.value",)),
            ("two", True, ()),
        ]
        assert await c.releases.drift(release) == ()
        assert await c.value("one") == "1"


@virtual
async def test_templates_look_up_what_is_on_the_cluster() -> None:
    text = config_map("one", '{{ (lookup "v1" "ConfigMap" .Release.Namespace "seen").data.value | default "none" }}')
    text = text.replace('"{{', "{{").replace('}}"', "}}")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "seen", "namespace": "default"}}
    async with cluster() as c:
        await c.client.create({**body, "data": {"value": "here"}}, Write(), kind=CONFIG_MAP)
        await c.releases.ensure(desired(chart({"one": text})))
        assert await c.value("one") == "here"


@virtual
async def test_definitions_of_a_chart_come_before_its_objects() -> None:
    definition = (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: buoys.example.com}\n"
        "spec:\n  group: example.com\n  scope: Namespaced\n  names: {kind: Buoy, plural: buoys}\n"
        "  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n"
    )
    buoy = "apiVersion: example.com/v1\nkind: Buoy\nmetadata:\n  name: red\n"
    buoys = Resource("example.com", "v1", "Buoy", "buoys")
    async with cluster() as c:
        files = {**chart({"red": buoy}), "crds/buoy.yaml": definition.encode()}
        outcome = await c.until_done(lambda: c.releases.ensure(desired(files)))
        assert present(outcome.release).status == "deployed"
        await c.client.get(buoys, Key("default", "red"))
        await c.until_done(lambda: c.releases.uninstall("default", "web"))
        with pytest.raises(NotFound):
            await c.client.get(buoys, Key("default", "red"))
        definitions = Resource(
            "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False
        )
        await c.client.get(definitions, Key("", "buoys.example.com"))  # as with Helm, it stays


@virtual
async def test_what_helm_began_is_left_alone_for_a_while_and_then_taken_up() -> None:
    files = chart({"one": config_map("one")})
    async with cluster() as c:
        outcome = await c.releases.install(desired(files))
        release = present(outcome.release)
        release.raw.pop("homeport")  # as Helm writes it
        release.set_status("pending-upgrade", "Preparing upgrade")
        await c.releases._storage.update(release)
        outcome = await c.releases.ensure(desired(files))
        assert present(outcome.wait).reason == "ReleasePending"
        await asyncio.sleep(FOREIGN_SECONDS)
        outcome = await c.releases.ensure(desired(files))
        assert present(outcome.release).status == "deployed"


@virtual
async def test_a_record_that_cannot_be_read_is_reported_and_nothing_is_done() -> None:
    async with cluster() as c:
        await c.releases.install(desired(chart({"one": config_map("one")})))
        broken = MergePatch({"data": {"release": "bm90IGEgcmVjb3Jk"}})
        await c.client.patch(SECRET, Key("default", "sh.helm.release.v1.web.v1"), broken)
        with pytest.raises(ReleaseError, match=r"Secret default/sh.helm.release.v1.web.v1: not a release record"):
            await c.releases.uninstall("default", "web")
        assert await c.names() == {"one"}


@virtual
async def test_what_is_desired_again_while_it_is_uninstalled_is_installed_afterwards() -> None:
    async with cluster() as c:
        await c.until_done(lambda: c.releases.install(desired(HOOKED)))
        assert present((await c.releases.uninstall("default", "web")).wait).reason == "WaitingForHook"
        outcome = await c.until_done(lambda: c.releases.ensure(desired(HOOKED)))
        assert c.jobs == ["earliest", "early", "late", "end", "over", "earliest", "early", "late"]
        assert present(outcome.release).version == 1
        assert await c.names() == {"one"}


@virtual
async def test_an_uninstall_that_failed_can_be_tried_again_or_taken_back() -> None:
    files = chart({"one": config_map("one"), "end": job("end", "post-delete", policy="before-hook-creation")})
    async with cluster() as c:
        await c.releases.install(desired(files))
        await c.releases.uninstall("default", "web")
        await c.finish("Failed")
        outcome = await c.releases.uninstall("default", "web")
        assert outcome.failed
        assert "post-delete hook Job end" in present(outcome.release).description
        outcome = await c.until_done(lambda: c.releases.ensure(desired(files)))
        assert present(outcome.release).version == 2
        assert await c.names() == {"one"}
        outcome = await c.until_done(lambda: c.releases.uninstall("default", "web"))
        assert outcome.release is None
        assert await c.names() == set()


@virtual
async def test_random_values_stay_the_same_over_upgrades() -> None:
    files = chart({"one": config_map("one", "{{ randAlphaNum 20 }}"), "two": config_map("two", "{{ .Values.x }}")})
    async with cluster() as c:
        await c.releases.ensure(desired(files, values={"x": "1"}))
        before = await c.value("one")
        await c.releases.ensure(desired(files, values={"x": "2"}))
        assert await c.value("one") == before


@virtual
async def test_a_job_that_removed_itself_is_neither_missing_nor_run_again() -> None:
    text = job("once", "x").replace('  annotations:\n    helm.sh/hook: x\n    helm.sh/hook-weight: "0"\n', "")
    text = text.replace("spec:\n  template", "spec:\n  ttlSecondsAfterFinished: 0\n  template", 1)
    async with cluster() as c:
        release = present((await c.releases.ensure(desired(chart({"once": text})))).release)
        assert present(await c.releases.wait(release)).reason == "JobRunning"
        await c.finish()
        await c.client.delete(JOB, Key("default", "once"))
        assert await c.releases.wait(release) is None
        assert await c.releases.repair(release) == ()
        assert await c.names(JOB) == set()
