"""What is removed from a support bundle, and what stays."""

from __future__ import annotations

import base64
import json

import pytest

from homeport.app.support.redaction import REMOVED, Redaction


def secret(**values: str) -> dict[str, object]:
    return {"kind": "Secret", "data": {name: base64.b64encode(text.encode()).decode() for name, text in values.items()}}


def test_of_secrets_only_the_keys_stay() -> None:
    cleaned = Redaction().object(
        {**secret(password="x", other="y"), "stringData": {"z": "w"}, "metadata": {"name": "s"}}
    )
    assert (cleaned["data"], cleaned["stringData"]) == ({"password": REMOVED, "other": REMOVED}, {"z": REMOVED})


def test_the_last_applied_configuration_and_managed_fields_go_other_annotations_stay() -> None:
    notes = {"kubectl.kubernetes.io/last-applied-configuration": "x", "mine": "y"}
    cleaned = Redaction().object({"kind": "A", "metadata": {"annotations": notes, "managedFields": [1], "name": "n"}})
    assert cleaned["metadata"] == {"annotations": {"mine": "y"}, "name": "n"}


@pytest.mark.parametrize(
    "field", ["password", "passwd", "token", "userData", "kubeconfig", "privateKey", "content", "preKubeadmCommands"]
)
def test_fields_that_hold_secrets_are_emptied_also_in_lists(field: str) -> None:
    cleaned = Redaction().object({"kind": "A", "metadata": {}, "spec": {"many": [{field: ["one", "two"]}], field: "x"}})
    assert cleaned["spec"] == {"many": [{field: [REMOVED, REMOVED]}], field: REMOVED}


@pytest.mark.parametrize("field", ["name", "version", "secretName", "tokenTTL", "keys", "message"])
def test_other_fields_stay(field: str) -> None:
    assert Redaction().object({"kind": "A", "metadata": {}, "spec": {field: "text"}})["spec"] == {field: "text"}


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdefgh12345678",
        "https://admin:hunter2-and-more@prism:9440/",
        "token eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0.c2lnbmF0dXJl",
        "kubeadm join --token abcdef.0123456789abcdef",
        'password="hunter2-and-more"',
        "api_key=hunter2-and-more",
        '"clientSecret": "hunter2-and-more"',
        "AWS_SECRET_ACCESS_KEY=hunter2-and-more",
        "token: hunter2-and-more",
        "-----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY-----",
    ],
)
def test_what_looks_like_a_secret_is_removed_from_texts(text: str) -> None:
    cleaned = Redaction().text(f"before {text} after")
    assert REMOVED in cleaned
    for part in ("abcdefgh12345678", "hunter2", "eyJ", "0123456789abcdef", "PRIVATE"):
        assert part not in cleaned
    assert cleaned.startswith("before ")


@pytest.mark.parametrize("text", ["the token: it is old", "Secret default/a, key credentials: is not JSON", "keys: a"])
def test_sentences_about_secrets_stay(text: str) -> None:
    assert Redaction().text(text) == text


def test_values_of_secrets_are_removed_wherever_they_are_also_parts_of_json_and_kubeconfigs() -> None:
    redaction = Redaction()
    redaction.learn(secret(credentials=json.dumps([{"data": {"password": "pa55-w0rd"}}]), plain="correct-horse"))
    redaction.learn(secret(kubeconfig="users:\n- user:\n    token: opaque-text\n"))
    coded = base64.b64encode(b"correct-horse").decode()
    cleaned = redaction.text(f"a pa55-w0rd b correct-horse c {coded} d opaque-text e")
    assert cleaned == f"a {REMOVED} b {REMOVED} c {REMOVED} d {REMOVED} e"
    quoted = redaction.known(json.dumps({"said": 'x correct-horse "y"'}))
    assert json.loads(quoted) == {"said": f'x {REMOVED} "y"'}
