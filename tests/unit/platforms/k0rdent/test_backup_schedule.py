"""When backups are due."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from homeport.platforms.k0rdent.backup.reconciler import times_of
from homeport.platforms.k0rdent.backup.schedule import parse_schedule

NOW = datetime(2026, 11, 17, 8, 30, 5, tzinfo=UTC)  # a Tuesday


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 3 * * *", "2026-11-18T03:00"),
        ("@hourly", "2026-11-17T09:00"),
        ("*/20 8-9 * * mon-fri", "2026-11-17T08:40"),
        ("15,45 8 * * *", "2026-11-17T08:45"),
        ("0 0 29 feb *", "2028-02-29T00:00"),
        ("0 0 1 * 7", "2026-11-22T00:00"),
        ("0 0 1 * *", "2026-12-01T00:00"),
    ],
)
def test_the_next_time_of_a_schedule(text: str, expected: str) -> None:
    found = parse_schedule(text).next_after(NOW.timestamp())
    assert found is not None
    assert datetime.fromtimestamp(found, UTC).strftime("%Y-%m-%dT%H:%M") == expected


@pytest.mark.parametrize(
    "text", ["", "daily", "0 3 * *", "61 * * * *", "0 0 30 2 *", "x * * * *", "*/0 * * * *", "5-1 * * * *"]
)
def test_what_is_not_a_schedule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"schedule|not valid|never"):
        parse_schedule(text)


def test_backups_are_known_by_their_names() -> None:
    listed = ["nightly-20261117030000", "nightly-two-20261117030000", "nightly-soon", "other-20261117030000"]
    assert list(times_of("nightly", listed)) == ["nightly-20261117030000"]
