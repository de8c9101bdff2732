"""Images by object name or display name, and whether they can be used."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.meta import Unstructured
from homeport.client.protocol import Key
from homeport.infra.error import Misconfigured, Missing
from homeport.providers.harvester.image import Image, choose, ready
from homeport.runtime.outcome import Wait

FIELD = "spec.bootDisk.image"


def image(name: str, display: str = "", namespace: str = "default", **status: Any) -> Unstructured:
    return Unstructured(
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"displayName": display or name},
            "status": status,
        }
    )


def condition(type_: str, status: str, message: str = "") -> dict[str, str]:
    return {"type": type_, "status": status, "message": message}


def test_an_object_name_comes_before_a_display_name() -> None:
    found = choose(Key("default", "talos"), [image("image-x", "talos"), image("talos", "other")], FIELD)
    assert found.name == "talos"
    assert choose(Key("default", "talos"), [image("image-x", "talos")], FIELD).name == "image-x"


def test_a_display_name_of_two_images_is_refused_with_both_names() -> None:
    images = [image("image-a", "talos"), image("image-b", "talos")]
    with pytest.raises(Misconfigured, match="default/image-a, default/image-b"):
        choose(Key("default", "talos"), images, FIELD)


def test_a_missing_image_is_named_with_near_matches() -> None:
    with pytest.raises(Missing, match=r"spec\.bootDisk\.image: image 'default/rocky-9' not found; did you mean"):
        choose(Key("default", "rocky-9"), [image("rocky-9-cloud"), image("rocky-9", namespace="other")], FIELD)


def test_an_imported_image_has_the_class_of_its_status_or_the_older_form() -> None:
    imported = [condition("Imported", "True")]
    found = ready(image("a", conditions=imported, storageClassName="lh-1", virtualSize=5), FIELD)
    assert isinstance(found, Image)
    assert (found.storage_class, found.virtual_size) == ("lh-1", 5)
    older = ready(image("a", conditions=imported), FIELD)
    assert isinstance(older, Image)
    assert older.storage_class == "longhorn-a"


def test_an_image_that_is_being_imported_is_waited_for() -> None:
    found = ready(image("a", conditions=[condition("Imported", "Unknown")], progress=42), FIELD)
    assert isinstance(found, Wait)
    assert "42 %" in found.message


@pytest.mark.parametrize(
    "failed", [condition("RetryLimitExceeded", "True", "404"), condition("Imported", "False", "404")]
)
def test_an_image_whose_import_failed_is_reported_in_harvesters_words(failed: dict[str, str]) -> None:
    with pytest.raises(Misconfigured, match="404"):
        ready(image("a", conditions=[failed]), FIELD)


def test_an_attempt_that_failed_is_no_end_of_an_import() -> None:
    conditions = [condition("RetryLimitExceeded", "False", "retry attempted 1/3"), condition("Imported", "Unknown")]
    wait = ready(image("a", conditions=conditions), FIELD)
    assert isinstance(wait, Wait)
    assert wait.message.endswith("is being imported; the last attempt failed: retry attempted 1/3")
