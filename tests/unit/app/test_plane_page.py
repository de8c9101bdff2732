"""The port of the dashboard: that of the last start, else the next free one after that of the API."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from homeport.app.plane.earlier import Earlier, read_earlier, write_earlier
from homeport.app.plane.web import serve_page
from homeport.client.config import Config
from homeport.client.dial import DIRECT, DialOptions

API = 6443


@dataclass
class Page:
    """A page whose machine has `taken` ports."""

    taken: set[int] = field(default_factory=set)
    asked: list[int] = field(default_factory=list)

    async def start(self, base: Config, host: str, port: int, *, dial: DialOptions) -> str:
        assert host == "127.0.0.1"
        self.asked.append(port)
        if port in self.taken:
            raise OSError("address already in use")
        return f"http://{host}:{port or 40_001}/dashboard/"

    async def stop(self) -> None: ...


async def served(page: Page, earlier: int = 0, api: int = API) -> str:
    return await serve_page(page, Config(f"https://127.0.0.1:{api}"), earlier, dial=DIRECT)


async def test_the_first_start_takes_the_port_after_that_of_the_api() -> None:
    assert await served(Page()) == "http://127.0.0.1:6444/dashboard/"


async def test_a_later_start_takes_the_port_of_the_start_before() -> None:
    page = Page()
    assert await served(page, earlier=6447) == "http://127.0.0.1:6447/dashboard/"
    assert page.asked == [6447]  # also while the port after that of the API is free


async def test_a_taken_port_gives_way_to_the_next_and_not_to_a_random_one() -> None:
    assert await served(Page(taken={6444, 6445})) == "http://127.0.0.1:6446/dashboard/"
    assert await served(Page(taken={7000, 6444}), earlier=7000) == "http://127.0.0.1:6445/dashboard/"


async def test_a_taken_port_is_tried_once() -> None:
    page = Page(taken={6444})
    assert await served(page, earlier=6444) == "http://127.0.0.1:6445/dashboard/"
    assert page.asked == [6444, 6445]


async def test_if_all_are_taken_the_system_chooses() -> None:
    page = Page(taken=set(range(6444, 6544)))
    assert await served(page) == "http://127.0.0.1:40001/dashboard/"
    assert page.asked[-1] == 0


@pytest.mark.parametrize("earlier", [-1, 65_536, 70_000])
async def test_no_port_beyond_the_last_is_asked_for(earlier: int) -> None:
    """Some event loops would take the remainder."""
    page = Page(taken={65_535})
    await served(page, earlier=earlier, api=65_534)
    assert page.asked == [65_535, 0]


def test_the_port_is_remembered_and_absent_in_directories_of_before(tmp_path: Path) -> None:
    write_earlier(tmp_path, Earlier("127.0.0.1:6443", ("prism",), 6447))
    assert read_earlier(tmp_path) == Earlier("127.0.0.1:6443", ("prism",), 6447)
    (tmp_path / "up.json").write_text('{"listen": "127.0.0.1:6443", "simulators": ["prism"]}')
    assert read_earlier(tmp_path) == Earlier("127.0.0.1:6443", ("prism",), 0)
