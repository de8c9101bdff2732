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


BEHIND = Guard("https", "*", 8443, frozenset({"clusters.example", "clusters.example:444"}), forwarded=True)


@pytest.mark.parametrize("host", ["clusters.example", "clusters.example:444", "clusters.example:8443"])
def test_a_dashboard_behind_a_service_answers_under_the_names_it_was_given(host: str) -> None:
    assert BEHIND.refusal("GET", {"Host": host}) == ""
    assert BEHIND.refusal("POST", {"Host": host, "Origin": f"https://{host}"}) == ""
    assert "not accepted" in BEHIND.refusal("POST", {"Host": host, "Origin": f"http://{host}"})


@pytest.mark.parametrize("host", ["clusters.example:445", "evil.example", "*:8443", "127.0.0.1", "127.0.0.1:x", "a:1"])
def test_a_dashboard_behind_a_service_answers_under_no_other_name(host: str) -> None:
    assert "not called" in BEHIND.refusal("GET", {"Host": host})
    assert "not called" in BEHIND.refusal_of_login({"Host": host})


@pytest.mark.parametrize("host", ["127.0.0.1:40123", "localhost:1", "[::1]:65535"])
def test_a_forwarded_port_is_a_name_but_only_for_its_own_origin(host: str) -> None:
    assert BEHIND.refusal("POST", {"Host": host, "Origin": f"http://{host}"}) == ""
    assert "not accepted" in BEHIND.refusal("POST", {"Host": host, "Origin": "http://127.0.0.1:9"})
    assert "not called" in GUARD.refusal("GET", {"Host": "127.0.0.1:40123"})
