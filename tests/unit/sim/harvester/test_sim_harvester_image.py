"""Images of the simulated Harvester: import, retries, classes, and what admission says about them."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from homeport.client.errors import Conflict, Invalid, NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import virtual
from homeport.sim.harvester.kind import IMAGE, STORAGE_CLASS, VM
from homeport.sim.harvester.object import condition
from homeport.sim.harvester.pace import Pace
from homeport.sim.harvester.world import Download, default_world
from unit.sim.harvester.harvester_kit import class_of, harvester, vm_manifest

NEW = Key("default", "noble")
URL = "https://images.example.com/noble.img"


def manifest(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "noble", "namespace": "default"},
        "spec": {"displayName": "noble", "sourceType": "download", "url": URL, **spec},
    }


@virtual
async def test_an_import_shows_its_progress_and_ends_with_a_class_of_its_own() -> None:
    async with harvester(pace=Pace(download=100.0)) as made:
        client = made.client()
        await client.create(manifest(), kind=IMAGE)
        await made.settled()
        begun = await client.get(IMAGE, NEW)
        assert condition(begun, "Initialized")["status"] == "True"
        assert condition(begun, "Imported")["status"] == "Unknown"
        await asyncio.sleep(50)
        await made.settled()
        assert (await client.get(IMAGE, NEW))["status"]["progress"] == 40
        await asyncio.sleep(60)
        await made.settled()
        image = await client.get(IMAGE, NEW)
        assert image["status"]["progress"] == 100
        assert condition(image, "Imported")["reason"] == "Imported"
        assert image["status"]["storageClassName"] == f"lh-{image.uid}"
        found = await client.get(STORAGE_CLASS, Key("", image["status"]["storageClassName"]))
        assert found["parameters"]["backingImage"] == f"vmi-{image.uid}"


@virtual
async def test_older_releases_name_the_class_after_the_image() -> None:
    world = msgspec.structs.replace(default_world(), version="v1.4.2")
    async with harvester(world=world) as made:
        assert await class_of(made, "talos-1.9") == "longhorn-talos-1.9"


@pytest.mark.parametrize(
    ("download", "stage", "text"),
    [
        (Download(URL, status=404), "Initialized", f"got 404 status code from {URL}"),
        (Download(URL, fails_at=40, message="sha512 does not match"), "Imported", "sha512 does not match"),
    ],
)
@virtual
async def test_an_import_that_keeps_failing_is_given_up_after_its_retries(
    download: Download, stage: str, text: str
) -> None:
    world = msgspec.structs.replace(default_world(), downloads=(download,))
    async with harvester(world=world) as made:
        client = made.client()
        await client.create(manifest(retry=2), kind=IMAGE)
        await made.settled()
        image = await client.get(IMAGE, NEW)
        assert condition(image, "RetryLimitExceeded")["status"] == "False"
        assert image["status"]["failed"] == 1
        await asyncio.sleep(60)
        await made.settled()
        image = await client.get(IMAGE, NEW)
        assert image["status"]["failed"] == 3
        assert condition(image, "RetryLimitExceeded")["status"] == "True"
        assert condition(image, stage)["status"] == "False"
        assert condition(image, stage)["message"] == f"retry attempted 2/2 failed due to error: {text}"
        with pytest.raises(NotFound):
            await client.get(STORAGE_CLASS, Key("", f"lh-{image.uid}"))


@virtual
async def test_two_images_of_a_namespace_have_different_display_names() -> None:
    async with harvester() as made:
        with pytest.raises(Conflict, match="A resource with the same name exists"):
            await made.client().create(manifest(displayName="talos-1.9"), kind=IMAGE)


@virtual
async def test_an_image_says_where_it_comes_from_and_keeps_to_it() -> None:
    async with harvester() as made:
        client = made.client()
        with pytest.raises(Invalid, match="url is required"):
            await client.create(manifest(url=""), kind=IMAGE)
        await client.create(manifest(), kind=IMAGE)
        with pytest.raises(Invalid, match="url cannot be modified"):
            await client.patch(IMAGE, NEW, MergePatch({"spec": {"url": URL + ".xz"}}))


@virtual
async def test_an_image_with_volumes_can_not_be_deleted() -> None:
    async with harvester() as made:
        client = made.client()
        await client.create(vm_manifest("node-0", await class_of(made)), kind=VM)
        await made.settled()
        with pytest.raises(Invalid, match="being used by volume default/node-0-disk-0"):
            await client.delete(IMAGE, Key("default", "rocky-9-cloud"))
        await client.delete(IMAGE, Key("default", "talos-1.9"))
        await made.settled()
        assert [image["metadata"]["name"] for image in (await client.list(IMAGE)).items] == ["rocky-9-cloud"]
