from __future__ import annotations

from typing import Any

import pytest

from homeport.api.meta import Object, resource
from homeport.client.errors import Unauthorized
from homeport.runtime.telemetry.redact import REDACTED, is_sensitive, redacted, scrub


@resource("", "v1", "Secret", "secrets")
class Sealed(Object):
    data: dict[str, str] = {}


@pytest.mark.parametrize(
    "name",
    ["token", "bootstrapToken", "password", "PASSWORD", "Authorization", "clientSecret", "api_key", "private_key",
     "credentials", "set-cookie", "kubeconfig"],
)  # fmt: skip
def test_fields_that_hold_secrets_are_known_by_their_names(name: str) -> None:
    assert is_sensitive(name)
    assert redacted({name: "hunter2"}) == {name: REDACTED}
    assert redacted({name: {"a": "hunter2"}}) == {name: REDACTED}
    assert redacted({"spec": {"deep": [{name: "hunter2"}]}}) == {"spec": {"deep": [{name: REDACTED}]}}


@pytest.mark.parametrize("name", ["secret_name", "secretRef", "tokenExpiration", "object", "kubeconfig_path", "reason"])
def test_fields_about_secrets_are_shown(name: str) -> None:
    assert redacted({name: "x"}) == {name: "x"}


def test_numbers_are_not_redacted() -> None:
    assert redacted({"tokens": 5, "secret": None, "token": ""}) == {"tokens": 5, "secret": None, "token": ""}


@pytest.mark.parametrize(
    "obj",
    [
        {"kind": "Secret", "metadata": {"name": "a"}, "data": {"k": "aHVudGVyMg=="}, "stringData": {"k": "hunter2"}},
        Sealed(data={"k": "aHVudGVyMg=="}),
        {"kind": "SecretList", "items": [{"data": {"k": "aHVudGVyMg=="}}]},
    ],
)
def test_the_data_of_secrets_is_never_shown(obj: Any) -> None:
    text = str(redacted({"seen": obj, "all": [obj]}))
    assert "aHVudGVyMg" not in text
    assert "hunter2" not in text


def test_data_of_other_kinds_is_shown() -> None:
    config = {"kind": "ConfigMap", "data": {"k": "v"}}
    assert redacted({"seen": config}) == {"seen": config}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abcdefgh12345", "Authorization: Bearer [redacted]"),
        ("sent basic dXNlcjpwYXNz along", "sent basic [redacted] along"),
        ("got eyJhbGciOiJ.eyJzdWIiOiJ.c2ln today", "got [redacted] today"),
        ("https://root:hunter2@host/path", "https://root:[redacted]@host/path"),
        ("login failed: password=hunter2, retry", "login failed: password=[redacted], retry"),
        ('{"token": "hunter2"}', '{"token": "[redacted]"}'),
        ("key -----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY----- end", "key [redacted] end"),
        ("-----BEGIN PRIVATE KEY-----\nabc", "[redacted]"),
        ("the token of the bootstrap is not there yet", "the token of the bootstrap is not there yet"),
        ("mail a@b.c", "mail a@b.c"),
    ],
)
def test_texts_lose_what_looks_like_a_secret(text: str, shown: str) -> None:
    assert scrub(text) == shown
    assert redacted({"error": text, "list": [text]}) == {"error": shown, "list": [shown]}


def test_every_value_is_redacted_to_plain_data() -> None:
    endless: dict[str, Any] = {}
    endless["self"] = endless
    error = Unauthorized("token=abc is wrong")
    shown = redacted({"raw": b"abc", "error": error, "set": {1}, "endless": endless, "type": int})
    assert shown["raw"] == "<3 bytes>"
    assert shown["error"] == "Unauthorized: token=[redacted] is wrong"
    assert shown["set"] == [1]
    assert "..." in str(shown["endless"])
    assert shown["type"] == "<class 'int'>"
