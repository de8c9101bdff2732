from __future__ import annotations

from homeport.platforms.butler.tenant.image import Image, choose_image

GUIDE = [
    Image("talos-1.9", "talos"),
    Image("rocky-9-cloud", "rocky", "default/image-x7"),
    Image("ubuntu-22.04", "ubuntu"),
]


def test_workers_get_the_image_of_their_system_though_the_provider_names_another() -> None:
    found = choose_image(GUIDE, "rocky", "v1.33.1", configured="talos-1.9")
    assert found.name == "rocky-9-cloud"
    assert "image talos-1.9 of the ProviderConfig is talos" in found.message


def test_an_image_of_the_provider_that_fits_is_taken() -> None:
    images = [*GUIDE, Image("rocky-8", "rocky")]
    assert choose_image(images, "rocky", "v1.33.1", configured="rocky-8").name == "rocky-8"


def test_an_image_with_this_very_version_comes_first_and_one_with_another_is_never_taken() -> None:
    images = [*GUIDE, Image("rocky-9-kube-v1.30.0", "rocky"), Image("rocky-9-kube-v1.33.1", "rocky")]
    assert choose_image(images, "rocky", "v1.33.1").name == "rocky-9-kube-v1.33.1"
    assert choose_image(images, "rocky", "v1.34.0").name == "rocky-9-cloud"
    assert not choose_image([Image("rocky-9-kube-v1.30.0", "rocky")], "rocky", "v1.34.0").name


def test_workers_keep_their_image_when_a_better_one_appears() -> None:
    images = [*GUIDE, Image("rocky-9-kube-v1.33.1", "rocky")]
    assert choose_image(images, "rocky", "v1.33.1", kept="rocky-9-cloud").name == "rocky-9-cloud"


def test_workers_leave_an_image_whose_kubernetes_is_not_the_new_version() -> None:
    images = [*GUIDE, Image("rocky-9-kube-v1.33.1", "rocky")]
    assert choose_image(images, "rocky", "v1.34.0", kept="rocky-9-kube-v1.33.1").name == "rocky-9-cloud"


def test_no_image_that_fits_is_an_answer_that_tells_what_to_do() -> None:
    found = choose_image(GUIDE[:1], "rocky", "v1.33.1", configured="talos-1.9")
    assert not found.name
    assert "it has: talos-1.9 (talos)" in found.message
    assert "Upload one, for example rocky-9-cloud" in found.message


def test_an_image_of_the_user_must_be_of_the_system_of_the_workers() -> None:
    assert choose_image(GUIDE, "rocky", "v1.33.1", given="default/image-x7").name == "default/image-x7"
    found = choose_image(GUIDE, "rocky", "v1.33.1", given="talos-1.9")
    assert (found.name, "imageRef: image talos-1.9 is talos" in found.message) == ("", True)
    assert choose_image(GUIDE, "rocky", "v1.33.1", given="not-listed").name == "not-listed"
