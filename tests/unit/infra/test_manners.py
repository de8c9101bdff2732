"""Endpoints, errors and virtual addresses: the parts of a provider that need no vendor."""

from __future__ import annotations

import pytest
import yaml

from homeport.infra.cluster.vip import VirtualAddress, with_virtual_address
from homeport.infra.error import Denied, Missing, ProviderError, Throttled, Unreachable, delay_of, policy_of
from homeport.infra.vendor.endpoint import Endpoint
from homeport.runtime.clock import LoopClock
from homeport.runtime.testing import virtual

ADDRESS = VirtualAddress("10.0.0.100", 6443, "ens3")


async def _fail(endpoint: Endpoint, error: ProviderError) -> None:
    with pytest.raises(type(error)):
        async with endpoint.turn():
            raise error


def _is_open(endpoint: Endpoint) -> bool:
    return endpoint.open


@virtual
async def test_a_burst_passes_and_what_is_more_waits_for_its_turn() -> None:
    clock = LoopClock()
    endpoint = Endpoint("e", clock, per_second=10, burst=5, most=10)
    for _ in range(5):
        async with endpoint.turn():
            pass
    assert clock.monotonic() == 0
    for _ in range(10):
        async with endpoint.turn():
            pass
    assert 1.0 <= clock.monotonic() < 1.1


@virtual
async def test_an_endpoint_that_is_down_is_asked_by_one_and_less_and_less_often() -> None:
    import asyncio

    clock = LoopClock()
    endpoint = Endpoint("e", clock, patience=3, rest=2.0, longest=60.0)
    for _ in range(3):
        await _fail(endpoint, Unreachable("it is down"))
    assert _is_open(endpoint)
    with pytest.raises(Unreachable, match="it is down"):
        async with endpoint.turn():
            raise AssertionError("nobody gets through")
    await asyncio.sleep(2.1)
    assert not _is_open(endpoint)
    await _fail(endpoint, Unreachable("still down"))
    await asyncio.sleep(2.1)
    assert _is_open(endpoint)
    await asyncio.sleep(2.1)
    async with endpoint.turn():
        pass
    assert not _is_open(endpoint)


@virtual
async def test_the_first_failure_in_a_row_is_told_to_all_who_use_the_endpoint() -> None:
    endpoint, told = Endpoint("e", LoopClock(), patience=3), list[str]()
    endpoint.doubted.append(lambda: told.append("doubt"))
    for expected in (1, 1):
        await _fail(endpoint, Unreachable("it is down"))
        assert len(told) == expected
    async with endpoint.turn():
        pass
    await _fail(endpoint, Unreachable("it is down"))
    assert len(told) == 2
    await _fail(endpoint, Denied("no"))
    assert len(told) == 3
    await _fail(endpoint, Missing("no such VM"))
    assert len(told) == 3


@virtual
async def test_a_refusal_is_an_answer_and_being_throttled_makes_everybody_wait() -> None:
    clock = LoopClock()
    endpoint = Endpoint("e", clock, patience=1)
    await _fail(endpoint, Denied("no"))
    assert not _is_open(endpoint)
    await _fail(endpoint, Throttled("slow", after=7))
    async with endpoint.turn():
        pass
    assert clock.monotonic() >= 7


@virtual
async def test_an_endpoint_that_answers_quickly_is_sent_more_requests_up_to_a_limit() -> None:
    clock = LoopClock()
    endpoint = Endpoint("e", clock)
    for _ in range(10_000):
        async with endpoint.turn():
            pass
    assert clock.monotonic() < 70  # at the first rate it takes 198 s
    assert endpoint.rate.per_second == 200


@virtual
async def test_an_endpoint_that_answers_slowly_or_has_nobody_waiting_is_sent_no_more() -> None:
    import asyncio

    slow = Endpoint("slow", LoopClock(), burst=1)
    for _ in range(50):
        async with slow.turn():
            await asyncio.sleep(0.6)
    assert slow.rate.per_second == 50
    unused = Endpoint("unused", LoopClock())
    for _ in range(500):
        async with unused.turn():
            await asyncio.sleep(0.05)
    assert unused.rate.per_second == 50


@virtual
async def test_each_throttling_halves_the_requests_and_they_grow_slowly_from_then_on() -> None:
    clock = LoopClock()
    endpoint = Endpoint("e", clock)
    for _ in range(5):  # at the same time, as requests that were under way
        await _fail_at_once(endpoint, 3)
        await _fail_at_once(endpoint, 3)
    assert endpoint.rate.per_second == 5
    began = clock.monotonic()
    for _ in range(100):
        async with endpoint.turn():
            pass
    assert clock.monotonic() - began > 16
    assert 6 < endpoint.rate.per_second < 8


async def _fail_at_once(endpoint: Endpoint, number: int) -> None:
    import asyncio

    together = asyncio.Barrier(number)

    async def throttled() -> None:
        async with endpoint.turn():
            await together.wait()
            raise Throttled("slow", after=1)

    found = await asyncio.gather(*(throttled() for _ in range(number)), return_exceptions=True)
    assert [type(each) for each in found] == [Throttled] * number


def test_what_fails_again_and_again_is_tried_less_and_less_often() -> None:
    error = Unreachable("x")
    delays = [delay_of(error, count) for count in range(1, 12)]
    assert delays == sorted(delays)
    assert delays[0] == 2.0
    assert delays[-1] == 120.0
    assert delay_of(Throttled("x", after=30), 5) == 30
    assert policy_of(Missing("x")).reason == "NotFound"
    assert policy_of(ProviderError("x")).reason == "ProviderError"


INIT = b"""## template: jinja
#cloud-config
write_files:
-   path: /run/kubeadm/kubeadm.yaml
    content: |
      hello
runcmd:
- kubeadm init --config /run/kubeadm/kubeadm.yaml
"""


@pytest.mark.parametrize(("version", "file"), [("v1.28.0", "admin.conf"), ("v1.30.0", "super-admin.conf")])
def test_the_virtual_address_is_added_beside_the_files_that_there_are(version: str, file: str) -> None:
    made = with_virtual_address(INIT, ADDRESS, version)
    files = yaml.safe_load(made)["write_files"]
    assert [each["path"] for each in files] == ["/etc/kubernetes/manifests/kube-vip.yaml", "/run/kubeadm/kubeadm.yaml"]
    pod = yaml.safe_load(files[0]["content"])
    env = {each["name"]: each["value"] for each in pod["spec"]["containers"][0]["env"]}
    assert (env["address"], env["vip_interface"], env["port"]) == ("10.0.0.100", "ens3", "6443")
    assert pod["spec"]["volumes"][0]["hostPath"]["path"] == f"/etc/kubernetes/{file}"
    assert made.startswith(b"## template: jinja\n#cloud-config\n")


@pytest.mark.parametrize(
    ("data", "host"),
    [
        (INIT.replace(b"hello", b"kube-vip"), "10.0.0.100"),
        (b'{"ignition": {}}', "10.0.0.100"),
        (INIT, "api.example.com"),
    ],
)
def test_a_virtual_address_is_not_forced_on_anybody(data: bytes, host: str) -> None:
    assert with_virtual_address(data, VirtualAddress(host, 6443, "ens3"), "v1.30.0") == data


@virtual
async def test_a_user_whose_own_settings_are_wrong_does_not_close_the_endpoint_for_others() -> None:
    endpoint = Endpoint("harvester", LoopClock(), patience=2)
    error = Unreachable("TLS failed: the CA in the kubeconfig is another one")
    error.own = True
    for _ in range(5):
        await _fail(endpoint, error)
    assert not _is_open(endpoint)
    async with endpoint.turn():
        pass
