"""Trust bundles as templates and users write them."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from homeport.api.nutanix.v1beta1 import PrismCentral, TrustBundle
from homeport.client.protocol import Key
from homeport.infra.error import Misconfigured
from homeport.providers.nutanix.credential import parse_bundle, target_of

KEY = Key("default", "trust")
PEM = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----"


@pytest.mark.parametrize(
    "content",
    [
        {"binaryData": {"ca.crt": ""}},
        {"data": {"ca.crt": ""}},
        {"data": {"ca.crt": " \n"}},
        {"binaryData": {"ca-bundle.crt": ""}},
        {"binaryData": {"ca.crt": base64.b64encode(b"\n").decode()}},
        {"data": {"ca.crt": None}},
    ],
)
def test_an_empty_trust_bundle_is_ignored(content: dict[str, Any]) -> None:
    assert parse_bundle(content, KEY) is None


@pytest.mark.parametrize(
    "content",
    [
        {"data": {"ca.crt": PEM}},
        {"binaryData": {"ca.crt": base64.b64encode(PEM.encode()).decode()}},
        {"data": {"ca.crt": "", "ca-bundle.crt": PEM}},
        {"binaryData": {"ca.crt": ""}, "data": {"ca.crt": PEM}},
    ],
)
def test_a_bundle_is_found_under_either_key_as_text_or_bytes(content: dict[str, Any]) -> None:
    assert parse_bundle(content, KEY) == PEM.encode()


def test_a_name_rendered_from_an_unset_variable_is_ignored() -> None:
    def key(name: str) -> Key | None:
        bundle = TrustBundle(kind="ConfigMap", name=name)
        return target_of(PrismCentral(address="pc", additional_trust_bundle=bundle), "fleet").bundle

    assert key("<no value>") is None
    assert key("trust") == Key("fleet", "trust")


def test_a_config_map_without_either_key_is_refused_by_name() -> None:
    with pytest.raises(Misconfigured, match=r"ConfigMap default/trust .* ca\.crt or ca-bundle\.crt"):
        parse_bundle({"data": {"other": PEM}}, KEY)


def test_bytes_that_are_not_base64_name_their_key() -> None:
    with pytest.raises(Misconfigured, match=r"ConfigMap default/trust: binaryData\[ca\.crt\] is not valid base64"):
        parse_bundle({"binaryData": {"ca.crt": "a"}}, KEY)
