"""Records of releases: encoding, times, names, ownership, managed fields."""

from __future__ import annotations

import base64
import gzip
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.helm.errors import ReleaseError
from homeport.helm.release.content import chart_digest, chart_record, parse_manifest, uninstall_waves
from homeport.helm.release.ownership import foreign, marked
from homeport.helm.release.record import (
    Release,
    check_name,
    decode,
    encode,
    format_time,
    from_secret,
    parse_time,
    to_secret,
)
from homeport.helm.release.target import moved_fields

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON))
def test_a_record_is_decoded_to_what_was_encoded(raw: dict[str, Any]) -> None:
    assert decode(encode(raw)) == raw


def test_a_record_that_was_never_compressed_is_read() -> None:
    assert decode(base64.b64encode(b'{"name": "old"}')) == {"name": "old"}


@pytest.mark.parametrize(
    "data", [b"!", b"bm90IGpzb24=", base64.b64encode(b"[]"), base64.b64encode(b"\x1f\x8b\x08broken")]
)
def test_what_is_not_a_record_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a release record"):
        decode(data)


def test_a_record_cannot_fill_the_memory() -> None:
    bomb = base64.b64encode(gzip.compress(b" " * (65 << 20)))
    with pytest.raises(ValueError, match="larger than 64 MiB"):
        decode(bomb)


def test_a_secret_has_the_name_type_and_labels_of_helm() -> None:
    raw = {"name": "web", "namespace": "n", "version": 3, "info": {"status": "deployed"}}
    secret = to_secret(Release(raw, {"team": "a"}), 1_700_000_000.9)
    assert secret["type"] == "helm.sh/release.v1"
    assert secret["metadata"]["name"] == "sh.helm.release.v1.web.v3"
    labels = {"name": "web", "owner": "helm", "status": "deployed", "version": "3", "createdAt": "1700000000"}
    assert secret["metadata"]["labels"] == {**labels, "team": "a"}
    back = from_secret(secret)
    assert (back.raw, back.labels) == (raw, {"team": "a"})


def test_an_updated_secret_keeps_what_helm_wrote_and_names_the_version_that_it_replaces() -> None:
    raw = {"name": "web", "namespace": "n", "version": 1, "info": {"status": "failed"}, "chart": {"schemamodtime": "x"}}
    secret = to_secret(Release(raw, {}, resource_version="7"), 5.0)
    assert secret["metadata"]["resourceVersion"] == "7"
    assert secret["metadata"]["labels"]["modifiedAt"] == "5"
    assert from_secret(secret).chart == {"schemamodtime": "x"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0.0),
        (None, 0.0),
        ("nonsense", 0.0),
        ("2026-01-01T00:00:00Z", 1767225600.0),
        ("2026-01-01T01:00:00.123456789+01:00", 1767225600.123456),
    ],
)
def test_times_of_helm_are_read(text: Any, expected: float) -> None:
    assert parse_time(text) == pytest.approx(expected)


def test_a_time_is_read_as_it_was_written() -> None:
    assert parse_time(format_time(1767225600.25)) == 1767225600.25


@pytest.mark.parametrize("name", ["web", "a.b-c", "x" * 53])
def test_a_valid_name_is_accepted(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", "Web", "-x", "x-", "a..b", "x" * 54, "a/b"])
def test_a_wrong_name_is_refused(name: str) -> None:
    with pytest.raises(ReleaseError, match="is not valid"):
        check_name(name)


def test_a_marked_object_belongs_to_its_release_alone() -> None:
    obj = marked({"metadata": {"name": "x", "labels": {"app.kubernetes.io/managed-by": "me", "a": "b"}}}, "web", "n")
    assert foreign(obj, "web", "n") == ""
    assert "instead of 'other'" in foreign(obj, "other", "n")
    assert obj["metadata"]["labels"]["a"] == "b"
    assert "is missing" in foreign({"metadata": {}}, "web", "n")


def test_fields_that_an_update_of_helm_set_move_to_its_apply() -> None:
    update = {"manager": "helm", "operation": "Update", "fieldsV1": {"f:data": {"f:a": {}, "f:b": {}}}, "time": "t"}
    applied = {"manager": "helm", "operation": "Apply", "fieldsV1": {"f:data": {"f:c": {}}}}
    other = {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:x": {}}}
    status = {"manager": "helm", "operation": "Update", "subresource": "status", "fieldsV1": {}}
    moved = moved_fields([applied, update, other, status])
    assert moved == [{**applied, "fieldsV1": {"f:data": {"f:a": {}, "f:b": {}, "f:c": {}}}}, other, status]
    assert moved_fields([update]) == [{**update, "operation": "Apply"}]
    assert moved_fields([applied, other, status]) is None


def test_lists_are_unfolded_and_objects_without_a_name_refused() -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\n# nothing\n"
    assert [obj["metadata"]["name"] for obj in parse_manifest(text, "x")] == ["a"]
    with pytest.raises(ReleaseError, match="generateName can't be used"):
        parse_manifest("{apiVersion: v1, kind: Pod, metadata: {generateName: a-}}", "release x")
    with pytest.raises(ReleaseError, match="lacks apiVersion, kind or metadata"):
        parse_manifest("{kind: Pod}", "release x")


def test_webhooks_and_custom_objects_go_before_the_controllers_that_serve_them() -> None:
    objects = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "b"}},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "c"}},
        {"apiVersion": "example.com/v1", "kind": "Buoy", "metadata": {"name": "d"}},
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "e"}},
    ]  # fmt: skip
    waves = [[obj["metadata"]["name"] for obj in wave] for wave in uninstall_waves(objects)]
    assert waves == [["e"], ["d"], ["c", "b", "a"]]


def test_a_chart_is_recorded_with_its_templates_values_and_files() -> None:
    files = {
        "Chart.yaml": b"apiVersion: v2\nname: x\nversion: 1.0.0\nappVersion: 2\n",
        "values.yaml": b"a: 1\n",
        "templates/one.yaml": b"x",
        "charts/sub/Chart.yaml": b"name: sub\n",
        "README.md": b"hello",
    }
    record = chart_record(files)
    assert record["metadata"] == {"apiVersion": "v2", "name": "x", "version": "1.0.0", "appVersion": "2"}
    assert record["values"] == {"a": 1}
    assert [each["name"] for each in record["templates"] + record["files"]] == ["templates/one.yaml", "README.md"]
    assert (record["schema"], record["lock"]) == (None, None)
    assert chart_digest(files) != chart_digest({**files, "charts/sub/Chart.yaml": b"name: other\n"})
