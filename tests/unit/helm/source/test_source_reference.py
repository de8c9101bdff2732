"""Addresses of charts, mirrors, versions and credentials."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from homeport.helm.errors import SourceError
from homeport.helm.source.credential import Credential, parse_credentials
from homeport.helm.source.reference import ChartLocation, OciReference, mirrored, parse_oci
from homeport.helm.source.version import choose_version

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("oci://registry.example.com/charts/buoy", OciReference("registry.example.com", "charts/buoy")),
        ("oci://localhost:5000/buoy:1.2.3", OciReference("localhost:5000", "buoy", "1.2.3")),
        (f"oci://h/a/b@{DIGEST}", OciReference("h", "a/b", "", DIGEST)),
        (f"oci://[::1]:5000/a-b:v1@{DIGEST}", OciReference("[::1]:5000", "a-b", "v1", DIGEST)),
    ],
)
def test_oci_reference_is_parsed_and_written_again(text: str, expected: OciReference) -> None:
    assert parse_oci(text) == expected
    assert str(expected) == text


@pytest.mark.parametrize(
    "text", ["registry.example.com/x", "oci://h", "oci://h/UPPER", "oci://h/../x", "oci://h/a@sha256:1"]
)
def test_a_wrong_reference_is_refused(text: str) -> None:
    with pytest.raises(SourceError, match="invalid OCI reference"):
        parse_oci(text)


def test_a_password_in_an_address_is_not_shown() -> None:
    assert "hidden" not in str(ChartLocation(repository="https://me:hidden@charts.example.com/x", chart="buoy"))
    with pytest.raises(SourceError) as refused:
        parse_oci("oci://me:hidden@host/buoy")
    assert "hidden" not in str(refused.value)


MIRRORS = {
    "oci://a.example.com": "oci://mirror.local/a",
    "oci://a.example.com/special": "oci://mirror.local/other",
    "https://charts.example.com": "/srv/charts",
    "https://old.example.com/stable": "oci://mirror.local/stable",
    "oci://b.example.com/x": "https://mirror.local/x",
}


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        (ChartLocation(oci="oci://a.example.com/buoy:1"), ChartLocation(oci="oci://mirror.local/a/buoy:1")),
        (ChartLocation(oci="oci://a.example.com/special/buoy"), ChartLocation(oci="oci://mirror.local/other/buoy")),
        (ChartLocation(oci="oci://a.example.com.evil/buoy"), ChartLocation(oci="oci://a.example.com.evil/buoy")),
        (
            ChartLocation(repository="https://charts.example.com/stable", chart="buoy", version="1.x"),
            ChartLocation(path="/srv/charts/stable", chart="buoy", version="1.x"),
        ),
        (
            ChartLocation(repository="https://old.example.com/stable/", chart="buoy"),
            ChartLocation(oci="oci://mirror.local/stable/buoy"),
        ),
        (
            ChartLocation(oci="oci://b.example.com/x/buoy:1.2.3"),
            ChartLocation(repository="https://mirror.local/x", chart="buoy", version="1.2.3"),
        ),
        (ChartLocation(path="/x"), ChartLocation(path="/x")),
    ],
)
def test_the_longest_prefix_with_a_mirror_is_replaced(location: ChartLocation, expected: ChartLocation) -> None:
    assert mirrored(location, MIRRORS) == expected


OFFERED = ["1.0.0", "v1.1.0", "1.2.0-rc.1", "1.10.0", "not-a-version"]


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [("", "1.10.0"), ("1.1.0", "v1.1.0"), ("v1.0.0", "1.0.0"), ("1.x", "1.10.0"), ("~1.1", "v1.1.0"), ("1.2.0-rc.1", "1.2.0-rc.1"),
     (">1.0 <1.5", "v1.1.0"), ("^1.2.0-0", "1.10.0")],
)  # fmt: skip
def test_a_version_is_chosen(wanted: str, chosen: str) -> None:
    assert choose_version(OFFERED, wanted, "here") == chosen


@pytest.mark.parametrize("wanted", ["2.x", "1.2.0", "nonsense", ">1.0 and <2"])
def test_a_version_that_is_not_on_offer_is_refused(wanted: str) -> None:
    with pytest.raises(SourceError, match=r"^here: "):
        choose_version(OFFERED, wanted, "here")


def secret(**data: str | bytes) -> dict[str, Any]:
    encoded = {
        key: base64.b64encode(text.encode() if isinstance(text, str) else text).decode() for key, text in data.items()
    }
    return {"metadata": {"namespace": "n", "name": "s"}, "data": encoded}


def test_a_docker_configuration_has_credentials_by_address() -> None:
    auths: dict[str, Any] = {
        "https://registry.example.com/v2/": {"auth": base64.b64encode(b"one:a:b").decode()},
        "registry.example.com/charts": {"username": "two", "password": "c"},
    }
    auths["helper.example.com"] = {}  # left to a program of the user's machine
    found = parse_credentials(secret(**{".dockerconfigjson": json.dumps({"auths": auths})}))
    assert found.find("helper.example.com") is None
    assert found.find("registry.example.com", "other/x") == Credential("one", "a:b")
    assert found.find("registry.example.com", "charts/x") == Credential("two", "c")
    assert found.find("registry.example.com", "chartsx") == Credential("one", "a:b")
    assert found.find("elsewhere.example.com") is None


def test_user_name_and_password_serve_every_host() -> None:
    found = parse_credentials(secret(username="me", password="pass\n"))
    assert found.find("any.example.com", "x") == Credential("me", "pass")


@pytest.mark.parametrize(
    "made",
    [secret(), secret(token="t0psecret"), secret(**{".dockerconfigjson": "{t0psecret"}), secret(**{".dockerconfigjson": '{"auths": {"h": {"auth": "t0psecret"}}}'})],
)  # fmt: skip
def test_a_secret_of_another_shape_is_refused_without_its_content(made: dict[str, Any]) -> None:
    with pytest.raises(SourceError, match="Secret n/s: ") as refused:
        parse_credentials(made)
    assert "t0psecret" not in str(refused.value)


def test_credentials_do_not_show_in_their_representation() -> None:
    found = parse_credentials(secret(username="me", password="t0psecret"))
    assert "t0psecret" not in repr(found) + repr(found.find("x"))
