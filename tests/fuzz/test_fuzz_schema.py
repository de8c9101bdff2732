"""Requests made from our own OpenAPI documents: what they promise is served, and what they forbid is refused politely."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.core.result import Err, Ok

from fuzz.fuzz_bound import Deadline, Enough, Target

GROUPS = ("apis/example.com/v1", "apis/coordination.k8s.io/v1", "apis/rbac.authorization.k8s.io/v1")
ALLOWED = frozenset((501, 503, 504))


def _document(target: Target, name: str) -> dict[str, Any]:
    request = urllib.request.Request(
        f"{target.url}/openapi/v3/{name}", headers={"Authorization": f"Bearer {target.token}"}
    )
    with urllib.request.urlopen(request, context=target.tls, timeout=20) as answer:
        document: dict[str, Any] = json.load(answer)
    return document


def _operations(document: dict[str, Any]) -> list[Any]:
    """Everything but watches, which only end with time."""
    schema = schemathesis.openapi.from_dict(document)
    found = list(schema.get_all_operations())
    assert [each.err() for each in found if isinstance(each, Err)] == []
    operations = [each.ok() for each in found if isinstance(each, Ok)]
    return [each for each in operations if "/watch/" not in each.path]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", GROUPS)
def test_a_documented_group_never_fails(target: Target, deadline: Deadline, name: str) -> None:
    operations = _operations(_document(target, name))
    assert len(operations) > 5
    cases = st.sampled_from(operations).flatmap(lambda operation: operation.as_strategy())
    called = 0

    @settings(
        max_examples=1_000_000,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def fire(case: Any) -> None:
        nonlocal called
        if deadline.over:
            raise Enough
        called += 1
        _shorten(case)
        answer = case.call(
            base_url=target.url, headers={"Authorization": f"Bearer {target.token}"}, verify=False, timeout=15
        )
        assert answer.status_code < 500 or answer.status_code in ALLOWED, (
            case.as_curl_command(),
            answer.text,
            target.trouble,
        )

    with pytest.raises(Enough):
        fire()
    assert called
    assert target.alive, target.trouble


def _shorten(case: Any) -> None:
    """A watch of a second tells as much as one of an hour."""
    if case.query and "watch" in case.query:
        case.query["timeoutSeconds"] = 1
