"""Requests from other hosts, origins and sites are refused before anything else is looked at."""

from __future__ import annotations

import pytest

from homeport.dashboard.guard import Guard

GUARD = Guard("http", "127.0.0.1", 6444)
HOST = {"Host": "127.0.0.1:6444"}
OWN = {**HOST, "Origin": "http://127.0.0.1:6444"}


def test_the_page_itself_is_served() -> None:
    assert GUARD.refusal("GET", HOST) == ""
    assert GUARD.refusal("GET", {"Host": "localhost:6444", "Sec-Fetch-Site": "none"}) == ""


@pytest.mark.parametrize(
    "host", ["evil.example:6444", "127.0.0.1:6443", "127.0.0.1", "", "127.0.0.1:6444.evil.example"]
)
def test_other_hosts_are_refused(host: str) -> None:
    assert "not called" in GUARD.refusal("GET", {"Host": host})


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://127.0.0.1:6444", "http://127.0.0.1:6443", "http://localhost:6444"],
)
def test_other_origins_are_refused(origin: str) -> None:
    assert "not accepted" in GUARD.refusal("POST", {**HOST, "Origin": origin})


def test_a_write_needs_an_origin() -> None:
    assert "no Origin" in GUARD.refusal("POST", HOST)
    assert "no Origin" in GUARD.refusal("GET", HOST, socket=True)
    assert GUARD.refusal("POST", OWN) == ""
    assert GUARD.refusal("GET", OWN, socket=True) == ""


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_sites_are_refused(site: str) -> None:
    assert "other sites" in GUARD.refusal("GET", {**HOST, "Sec-Fetch-Site": site})


def test_no_page_logs_anybody_in() -> None:
    assert GUARD.refusal_of_login(HOST) == ""
    assert GUARD.refusal_of_login(OWN)
    assert GUARD.refusal_of_login({**HOST, "Sec-Fetch-Site": "same-origin"})
    assert GUARD.refusal_of_login({"Host": "evil.example"})
