from __future__ import annotations

import stat
import threading
from pathlib import Path
from typing import Any

import orjson
import pytest

from homeport.apiserver.audit import AuditLog, Entry, as_event, redacted
from homeport.apiserver.request import User

ANNA = User("anna", ("devs",), "7", {"scopes": ("a",)})


def entry(**changes: Any) -> Entry:
    usual: dict[str, Any] = {
        "audit_id": "id-1",
        "uri": "/api/v1/namespaces/default/secrets/a",
        "verb": "get",
        "user": ANNA,
        "source": "127.0.0.1",
        "code": 200,
        "received": 1_800_000_000.25,
        "finished": 1_800_000_000.5,
    }
    return Entry(**{**usual, **changes})


def lines(path: Path) -> list[Any]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def test_an_event_says_who_did_what_and_how_it_ended() -> None:
    event = as_event(
        entry(
            resource="secrets",
            version="v1",
            namespace="default",
            name="a",
            code=403,
            reason="Forbidden",
            message="no",
            decision="forbid",
            user_agent="kubectl/v1",
            impersonated=User("ben"),
        )
    )
    assert event == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": "id-1",
        "stage": "ResponseComplete",
        "requestURI": "/api/v1/namespaces/default/secrets/a",
        "verb": "get",
        "user": {"username": "anna", "uid": "7", "groups": ["devs"], "extra": {"scopes": ["a"]}},
        "impersonatedUser": {"username": "ben"},
        "sourceIPs": ["127.0.0.1"],
        "userAgent": "kubectl/v1",
        "objectRef": {"resource": "secrets", "namespace": "default", "name": "a", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "status": "Failure", "message": "no", "reason": "Forbidden", "code": 403},
        "requestReceivedTimestamp": "2027-01-15T08:00:00.250000Z",
        "stageTimestamp": "2027-01-15T08:00:00.500000Z",
        "annotations": {"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": ""},
    }


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("/api?watch=true&limit=5", "/api?watch=true&limit=5"),
        ("/x?token=abc&limit=5", "/x?token=REDACTED&limit=5"),
        ("/x?a=b&access_token=abc", "/x?a=b&access_token=REDACTED"),
        ("/x?Client-Secret=s&apiKey=k", "/x?Client-Secret=REDACTED&apiKey=REDACTED"),
        ("/api/v1/secrets?limit=5", "/api/v1/secrets?limit=5"),
    ],
)
def test_secrets_in_the_address_are_not_written(uri: str, shown: str) -> None:
    assert redacted(uri) == shown


def test_entries_are_written_in_order_to_a_file_of_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "audit.log"
    audit = AuditLog(path)
    for number in range(100):
        audit.write(entry(audit_id=str(number)))
    audit.close()
    assert [event["auditID"] for event in lines(path)] == [str(number) for number in range(100)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert audit.dropped == 0


def test_a_second_start_goes_on_in_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    for number in range(2):
        audit = AuditLog(path)
        audit.write(entry(audit_id=str(number)))
        audit.close()
        audit.close()
    assert len(lines(path)) == 2


def test_a_full_file_is_put_aside_and_old_ones_go(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    size = len(orjson.dumps(as_event(entry(audit_id="00")))) + 1
    audit = AuditLog(path, max_bytes=2 * size, keep=3)
    for number in range(11):
        audit.write(entry(audit_id=f"{number:02}"))
    audit.close()
    aside = sorted(tmp_path.glob("audit-*.log"))
    assert len(aside) == 3
    kept = [event["auditID"] for file in (*aside, path) for event in lines(file)]
    assert kept == ["04", "05", "06", "07", "08", "09", "10"]
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in aside)


def test_a_place_that_can_not_be_written_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        AuditLog(tmp_path / "file" / "audit.log")


def first_written(path: Path, **options: int) -> AuditLog:
    audit = AuditLog(path, **options)
    audit.write(entry(audit_id="first"))
    while not path.stat().st_size:
        threading.Event().wait(0.001)
    return audit


def test_a_file_that_was_moved_away_is_created_again(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    audit = first_written(path, max_bytes=1)
    path.rename(tmp_path / "moved")
    audit.write(entry(audit_id="second"))
    audit.close()
    assert [event["auditID"] for event in lines(path)] == ["second"]
    assert audit.dropped == 0


def test_entries_that_can_not_be_written_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    audit = first_written(folder / "audit.log", max_bytes=1)
    folder.rename(tmp_path / "moved")
    folder.write_text("in the way")
    audit.write(entry())
    audit.close()
    assert audit.dropped == 1
