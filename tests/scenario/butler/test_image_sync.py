"""ImageSyncs: an image at any provider, brought once, verified, used again, and reported with the cause if it can't be."""

from __future__ import annotations

import asyncio
import hashlib
from functools import partial
from pathlib import Path

import pytest
from aiohttp.web import BaseRequest, Response, StreamResponse

from conformance.provider.harvester import open_harvester
from conformance.provider.nutanix import open_nutanix
from conformance.provider.vendor import Open
from homeport.api.butler.v1alpha1 import ImageSync, ProviderConfig
from homeport.client.protocol import Key
from homeport.machinery import condition
from homeport.runtime.testing import virtual
from homeport.sim.engine.fault import Drop, Fault, Match
from scenario.butler.infrastructure import NAMESPACE, SYSTEM
from scenario.butler.picture import ONE, SCHEMATIC, Answer, Gallery, gallery
from scenario.capi.fault import Killer

VENDORS: dict[str, Open] = {
    "nutanix-v4": partial(open_nutanix, version="v4"),
    "nutanix-v3": partial(open_nutanix, version="v3"),
    "harvester": open_harvester,
}
PRISM = [VENDORS["nutanix-v4"], VENDORS["nutanix-v3"]]
DISK = b"a disk image" * 100


@pytest.fixture(params=list(VENDORS))
def vendor(request: pytest.FixtureRequest) -> Open:
    return VENDORS[request.param]


@virtual
async def test_an_image_of_the_factory_arrives_and_machines_boot_from_it(vendor: Open) -> None:
    async with gallery(vendor) as g:
        path = await g.factory()
        sync = await g.ready()
        (picture,) = g.pictures()
        assert sync.status.provider_image_ref == picture.id
        assert sync.status.artifact_url == picture.url == g.url(path)
        assert (sync.status.progress, picture.size) == (100, 5000)
        assert picture.name == f"talos-v1.9.3-nocloud-amd64-{SCHEMATIC[:8]}"
        assert g.verified(sync).startswith("False NoChecksum")
        assert g.requests == [path]
        config = await g.i.plane.until(
            ProviderConfig, SYSTEM, lambda obj: picture.id in {each.id for each in obj.status.images}, 60
        )
        assert {each.os for each in config.status.images if each.id == picture.id} == {"talos"}
        await g.i.machine(image=picture.id, userData="")
        await g.i.running()


@virtual
async def test_progress_is_shown_while_the_provider_downloads(vendor: Open) -> None:
    async with gallery(vendor) as g:
        g.slow(100.0)
        await g.factory()
        seen = set()
        for _ in range(40):
            await g.i.pass_time(5)
            sync = await g.i.client.get(ImageSync, ONE)
            if sync.status.phase == "Downloading":
                seen.add(sync.status.progress or 0)
                assert (condition.find(sync.status.conditions, "Ready") or {})["reason"] == "ImageDownloading"
        assert sync.status.phase == "Ready"
        assert len(seen) > 3
        assert max(seen) < 100


@virtual
async def test_a_checksum_is_verified_by_the_provider_where_it_can(vendor: Open) -> None:
    async with gallery(vendor) as g:
        g.files["/rocky-9.qcow2"] = DISK
        own, other = ("sha512", "sha256") if g.on_harvester else ("sha256", "sha512")
        digests = {"sha256": hashlib.sha256(DISK).hexdigest(), "sha512": hashlib.sha512(DISK).hexdigest()}
        await g.sync(source={"url": g.url("/rocky-9.qcow2"), own: digests[own]})
        assert g.verified(await g.ready()).startswith("True Verified")
        g.files["/debian.qcow2"] = DISK
        await g.sync("two", source={"url": g.url("/debian.qcow2"), other: digests[other]})
        told = g.verified(await g.ready("two"))
        assert told.startswith("False NotVerified")
        assert own in told


@virtual
async def test_an_image_with_the_wrong_checksum_is_refused_and_a_corrected_one_arrives(vendor: Open) -> None:
    async with gallery(vendor) as g:
        g.files["/rocky-9.qcow2"] = DISK
        own = "sha512" if g.on_harvester else "sha256"
        length = 128 if g.on_harvester else 64
        await g.sync(source={"url": g.url("/rocky-9.qcow2"), own: "0" * length})
        sync = await g.until("Failed", "InvalidConfiguration", "checksum", "correct the checksum")
        assert sync.status.next_attempt
        assert sync.status.attempts
        assert sync.status.provider_image_ref == ""
        await g.change({"source": {own: getattr(hashlib, own)(DISK).hexdigest()}})
        assert g.verified(await g.ready()).startswith("True Verified")
        assert len(g.pictures()) == 1


@virtual
async def test_a_file_that_does_not_exist_is_reported_with_its_url_and_tried_again(vendor: Open) -> None:
    async with gallery(vendor) as g:
        await g.sync(source={"url": g.url("/rocky-9.qcow2")})
        sync = await g.until("Failed", "NotFound", g.url("/rocky-9.qcow2"), "404", "Correct the URL")
        assert sync.status.failure_reason == "NotFound"
        g.files["/rocky-9.qcow2"] = DISK
        await g.ready(timeout=900)
        (picture,) = g.pictures()
        assert (picture.name, picture.size) == ("rocky-9", len(DISK))


async def _refused(request: BaseRequest) -> StreamResponse:
    return Response(status=403)


async def _overloaded(request: BaseRequest) -> StreamResponse:
    return Response(status=503)


async def _half(request: BaseRequest) -> StreamResponse:
    """The connection ends in the middle."""
    answer = StreamResponse(headers={"Content-Length": str(len(DISK))})
    await answer.prepare(request)
    await answer.write(DISK[:100])
    assert request.transport is not None
    request.transport.close()
    return answer


async def _stalled(request: BaseRequest) -> StreamResponse:
    """Nothing more comes, and the connection stays."""
    answer = StreamResponse(headers={"Content-Length": str(len(DISK))})
    await answer.prepare(request)
    await answer.write(DISK[:100])
    await asyncio.Event().wait()
    return answer


@pytest.mark.parametrize(
    ("answer", "phase", "words"),
    [
        (_refused, "Failed", ("NotFound", "403", "may be read without a login")),
        (_overloaded, "Downloading", ("Unreachable", "503", "it is tried again")),
        (_half, "Downloading", ("Unreachable", "unexpected EOF", "it is tried again")),
        (_stalled, "Downloading", ("Unreachable", "no data for 60 s", "it is tried again")),
    ],
    ids=["refused", "overloaded", "cut", "stalled"],
)
def test_a_source_that_fails_is_reported_and_leaves_no_half_image(
    vendor: Open, answer: Answer, phase: str, words: tuple[str, ...]
) -> None:
    @virtual
    async def run() -> None:
        async with gallery(vendor) as g:
            url = g.url("/rocky-9.qcow2")
            g.answers["/rocky-9.qcow2"] = answer
            await g.sync(source={"url": url})
            sync = await g.until(phase, url, *words)
            assert sync.status.provider_image_ref == ""
            g.files["/rocky-9.qcow2"] = DISK
            del g.answers["/rocky-9.qcow2"]
            await g.ready(timeout=3600)
            (picture,) = g.pictures()
            assert picture.size == len(DISK)

    run()


@virtual
async def test_a_server_with_a_certificate_that_the_vendor_does_not_trust_is_named_and_another_url_is_used(
    vendor: Open,
) -> None:
    async with gallery(vendor) as g:
        g.files["/rocky-9.qcow2"] = DISK
        url = g.untrusted_url("/rocky-9.qcow2")
        await g.sync(source={"url": url})
        await g.until("Failed", "InvalidConfiguration", url, "x509", "a CA that is trusted there")
        assert g.requests == []
        await g.change({"source": {"url": g.url("/rocky-9.qcow2")}})
        await g.ready()
        (picture,) = g.pictures()
        assert picture.size == len(DISK)


@virtual
async def test_full_storage_is_reported_and_tried_again_when_there_is_room(vendor: Open) -> None:
    async with gallery(vendor) as g:
        g.fill_disks()
        await g.factory()
        await g.until("Failed", "InsufficientCapacity", "Free storage space")
        g.i.vendor.clear_faults()
        await g.ready()
        assert len(g.pictures()) == 1


@virtual
async def test_an_outage_of_the_provider_delays_an_image_and_makes_no_second_one(vendor: Open) -> None:
    async with gallery(vendor) as g:
        g.slow(60.0)
        await g.factory()
        await g.until("Downloading")
        g.i.vendor.refuse(503)
        await g.until("Downloading", "Unreachable")
        g.i.vendor.clear_faults()
        await g.ready()
        assert len(g.pictures()) == 1
        g.i.vendor.refuse(503)
        await g.i.pass_time(1300)
        sync = await g.i.client.get(ImageSync, ONE)
        assert (sync.status.phase, sync.status.failure_reason) == ("Ready", "Unreachable")


@virtual
async def test_two_that_ask_for_the_same_image_share_it(vendor: Open) -> None:
    async with gallery(vendor) as g:
        path = await g.factory(deletionPolicy="Delete")
        first = await g.ready()
        await g.factory("two", displayName="the-same-again", deletionPolicy="Delete")
        second = await g.ready("two")
        assert second.status.provider_image_ref == first.status.provider_image_ref
        assert g.requests == [path]
        await g.i.client.delete(ImageSync, ONE)
        await g.i.plane.gone(ImageSync, ONE)
        assert len(g.pictures()) == 1  # the other one uses it


@virtual
async def test_an_image_of_somebody_else_from_the_same_url_is_used_and_never_deleted(vendor: Open) -> None:
    async with gallery(vendor) as g:
        g.files["/rocky-9.qcow2"] = DISK
        planted = await g.plant("rocky", g.url("/rocky-9.qcow2"))
        await g.i.pass_time(5)
        before = len(g.requests)
        await g.sync(source={"url": g.url("/rocky-9.qcow2")}, deletionPolicy="Delete")
        assert (await g.ready()).status.provider_image_ref == planted
        assert len(g.requests) == before
        await g.i.client.delete(ImageSync, ONE)
        await g.i.plane.gone(ImageSync, ONE)
        assert [each.id for each in g.pictures()] == [planted]


@virtual
async def test_a_name_that_another_image_has_is_refused(vendor: Open) -> None:
    async with gallery(vendor) as g:
        g.files["/rocky-9.qcow2"] = DISK
        await g.plant("golden", g.url("/other.qcow2"))
        await g.sync(source={"url": g.url("/rocky-9.qcow2")}, displayName="golden")
        await g.until("Failed", "InUse", "golden", "spec.displayName")
        await g.change({"displayName": "golden-2"})
        await g.ready()


@virtual
async def test_an_image_that_somebody_deletes_is_brought_again(vendor: Open) -> None:
    async with gallery(vendor) as g:
        await g.factory()
        await g.ready()
        (picture,) = g.pictures()
        await g.drop(picture)
        await g.i.pass_time(1500)
        sync = await g.ready()
        (again,) = g.pictures()
        assert sync.status.provider_image_ref == again.id


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
def test_the_image_goes_with_its_object_only_if_the_policy_says_so(vendor: Open, policy: str) -> None:
    @virtual
    async def run() -> None:
        async with gallery(vendor) as g:
            await g.factory(**({} if policy == "Retain" else {"deletionPolicy": policy}))
            await g.ready()
            await g.i.client.delete(ImageSync, ONE)
            await g.i.plane.gone(ImageSync, ONE)
            assert len(g.pictures()) == (1 if policy == "Retain" else 0)

    run()


def test_kills_at_every_write_make_no_second_image(vendor: Open) -> None:
    @virtual
    async def run() -> None:
        killer = Killer(lambda: 1)
        async with gallery(vendor, wrap=killer.wrap) as g:
            g.slow(30.0)
            await g.factory(deletionPolicy="Delete")
            while await killer.death(within=250):
                await g.i.restart()
            await g.ready()
            assert len(g.pictures()) == 1
            assert len(g.requests) == 1
            await g.i.client.delete(ImageSync, ONE)
            while await killer.death(within=250):
                await g.i.restart()
            await g.i.plane.gone(ImageSync, ONE)
            assert g.pictures() == []
            assert killer.kills > 3

    run()


@virtual
async def test_a_lost_reply_to_the_create_makes_no_second_image(vendor: Open) -> None:
    async with gallery(vendor) as g:
        match = (
            Match(verb="create", resource="virtualmachineimages")
            if g.on_harvester
            else Match(method="POST", route="*/images")
        )
        g.core.faults.add(Fault(Drop("after"), match, times=1))
        await g.factory()
        await g.ready()
        assert len(g.pictures()) == 1
        assert len(g.requests) == 1


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prism", PRISM, ids=["v4", "v3"])
def test_a_file_is_uploaded_and_its_checksum_is_known(prism: Open, tmp_path: Path) -> None:
    @virtual
    async def run() -> None:
        (tmp_path / "rocky-9.qcow2").write_bytes(DISK * 5000)
        async with gallery(prism, images=tmp_path) as g:
            await g.sync(source={"file": "rocky-9.qcow2"}, deletionPolicy="Delete")
            sync = await g.ready()
            (picture,) = g.pictures()
            assert (picture.name, picture.size) == ("rocky-9", len(DISK) * 5000)
            assert sync.status.artifact_sha256 == hashlib.sha256(DISK * 5000).hexdigest()
            assert g.verified(sync).startswith("True Verified")
            await g.i.client.delete(ImageSync, ONE)
            await g.i.plane.gone(ImageSync, ONE)
            assert g.pictures() == []

    run()


@pytest.mark.parametrize("prism", PRISM, ids=["v4", "v3"])
def test_an_upload_that_was_interrupted_is_done_again(prism: Open, tmp_path: Path) -> None:
    @virtual
    async def run() -> None:
        (tmp_path / "rocky-9.qcow2").write_bytes(DISK)
        async with gallery(prism, images=tmp_path) as g:
            g.core.faults.add(Fault(Drop("before"), Match(method="PUT", route="*/file"), times=2))
            await g.sync(source={"file": "rocky-9.qcow2"})
            await g.until("Uploading", "Unreachable")
            await g.i.restart()
            await g.ready()
            (picture,) = g.pictures()
            assert picture.size == len(DISK)

    run()


def test_files_outside_the_folder_are_not_read(tmp_path: Path) -> None:
    @virtual
    async def run() -> None:
        folder = tmp_path / "images"
        folder.mkdir()
        (tmp_path / "secret").write_bytes(b"x")
        (folder / "link").symlink_to(tmp_path / "secret")
        async with gallery(PRISM[0], images=folder) as g:
            for number, name in enumerate(("../secret", str(tmp_path / "secret"), "link")):
                await g.sync(f"no{number}", source={"file": name})
                await g.until("Failed", "outside the folder", name=f"no{number}")
            await g.sync(source={"file": "missing.qcow2"})
            await g.until("Failed", "NotFound", "copy the image there")
            (folder / "empty.qcow2").touch()
            await g.sync("empty", source={"file": "empty.qcow2"})
            await g.until("Failed", "is empty", name="empty")
            assert g.pictures() == []

    run()


@virtual
async def test_where_files_cannot_be_uploaded_the_message_says_what_to_do_instead(vendor: Open) -> None:
    async with gallery(vendor) as g:
        await g.sync(source={"file": "rocky-9.qcow2"})
        await g.until("Failed", "spec.source.url")


async def _waits_for_provider(g: Gallery) -> None:
    await g.i.client.delete(ProviderConfig, SYSTEM)
    await g.i.plane.gone(ProviderConfig, SYSTEM)


@virtual
async def test_an_image_waits_for_its_provider_and_the_provider_for_its_images(vendor: Open) -> None:
    async with gallery(vendor) as g:
        await _waits_for_provider(g)
        await g.factory()
        await g.until("Failed", "NotFound", 'ProviderConfig "main" not found')
        await g.i.config()
        await g.ready()
        await g.i.client.delete(ProviderConfig, SYSTEM)
        await g.i.says("Ready", "False", "InUse", f"ImageSync {NAMESPACE}/one")
        await g.i.client.delete(ImageSync, ONE)
        await g.i.plane.gone(ProviderConfig, SYSTEM)


@virtual
async def test_a_provider_of_another_team_is_refused(vendor: Open) -> None:
    async with gallery(vendor) as g:
        await _waits_for_provider(g)
        own = {**g.i.vendor.platform_part(), "credentialsRef": {"name": "credentials"}}
        scope = {"type": "team", "teamRef": {"name": "shop"}}
        await g.i.config({"type": g.i.type, g.i.type: own, "scope": scope})
        await g.i.plane.have({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        body = {
            "apiVersion": "butler.butlerlabs.dev/v1alpha1",
            "kind": "ImageSync",
            "metadata": {"name": "one", "namespace": "other"},
            "spec": {
                "providerConfigRef": {"name": "main", "namespace": NAMESPACE},
                "source": {"url": g.url("/x.qcow2")},
            },
        }
        await g.i.plane.have(body)
        found = await g.i.plane.until(
            ImageSync, Key("other", "one"), lambda sync: sync.status.phase == "Failed", 60, what="Failed"
        )
        assert (condition.find(found.status.conditions, "Ready") or {})["reason"] == "ProviderAccessDenied"
