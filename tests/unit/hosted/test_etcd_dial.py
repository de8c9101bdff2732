"""Connections to a datastore that says nothing."""

from __future__ import annotations

import datetime
import socket

import pytest

from capikit.handmade import HandmadeEtcd, ca_files
from homeport.capi.remote.pki import KeyPair
from homeport.hosted.etcd import dial
from homeport.hosted.etcd.dial import Access, DatastoreError, connect


async def test_an_endpoint_that_accepts_and_says_nothing_is_reported_as_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dial, "CONNECT_SECONDS", 0.2)
    etcd = HandmadeEtcd(datetime.datetime.now(datetime.UTC))
    certificate, key = etcd.client("root")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"127.0.0.1:{silent.getsockname()[1]}"
        access = Access("default", (endpoint,), ca_files(etcd.issuer, "ca")["ca.crt"], KeyPair(certificate, key))
        with pytest.raises(DatastoreError, match=rf"no endpoint answers \({endpoint}: no answer in time\)"):
            async with connect(access):
                raise AssertionError("nothing is there to talk to")
