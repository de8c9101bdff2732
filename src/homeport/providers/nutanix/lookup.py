"""Names of specs turned into what Prism Central knows them by: read in bulk, kept for a moment, shared by everybody."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from homeport.api.nutanix.v1beta1 import Category as DesiredCategory
from homeport.api.nutanix.v1beta1 import Identifier, ImageLookup
from homeport.infra.error import Ambiguous, Misconfigured, Missing, ProviderError
from homeport.infra.preflight.near import near
from homeport.providers.nutanix.prism.record import Category, Container, Element, Image, Prism, Project, Subnet, Vm
from homeport.runtime.clock import Clock

_FRESH_SECONDS = 60.0
_NEW_SECONDS = 2.0  # a name that is missing is asked for again, unless the list is this new
_CATEGORY_SECONDS = 300.0
_GATHER_SECONDS = 0.02  # how long a question waits for others like it
_NAMES_AT_ONCE = 20
_DEFAULT_FORMAT = "capx-{{.BaseOS}}-{{.K8sVersion}}-*"


class Named(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


@dataclass(slots=True)
class _Listing(Generic[T]):
    """A list of Prism Central and when it was read; several who ask at once share one request."""

    read: Callable[[], Awaitable[list[T]]]
    clock: Clock
    items: Sequence[T] = ()
    read_at: float = float("-inf")
    reading: asyncio.Task[Sequence[T]] | None = None

    async def get(self, *, younger_than: float = _FRESH_SECONDS) -> Sequence[T]:
        if self.clock.monotonic() - self.read_at < younger_than:
            return self.items
        if self.reading is None or self.reading.done():
            self.reading = asyncio.get_running_loop().create_task(self._refresh())
            self.reading.add_done_callback(_noticed)  # whoever asked may be gone by then
        return await asyncio.shield(self.reading)

    async def _refresh(self) -> Sequence[T]:
        self.items = await self.read()
        self.read_at = self.clock.monotonic()
        return self.items


class Lookup:
    def __init__(self, prism: Prism, clock: Clock) -> None:
        self._prism = prism
        self._elements = _Listing(prism.elements, clock)
        self._subnets = _Listing(prism.subnets, clock)
        self._images = _Listing(prism.images, clock)
        self._projects = _Listing(prism.projects, clock)
        self._containers = _Listing(prism.containers, clock)
        self._categories: dict[tuple[str, str], tuple[float, Category]] = {}
        self._clock = clock
        self._asked: dict[str, asyncio.Future[list[Vm]]] = {}  # names of machines that somebody waits for

    # -- one thing by name or UUID -----------------------------------------------------------------------------

    async def element(self, wanted: Identifier, field: str) -> Element:
        def usable(each: Element) -> bool:
            return not each.is_central

        return await self._one(self._elements, wanted, field, "cluster", usable)

    async def disconnected(self, wanted: Identifier) -> Element | None:
        """The cluster of this name, if Prism Central reports now that it can't reach it."""
        found = _matching(await self._elements.get(younger_than=_NEW_SECONDS), wanted)
        return next((each for each in found if not each.connected), None)

    async def subnet(self, wanted: Identifier, element: Element, field: str) -> Subnet:
        def usable(each: Subnet) -> bool:
            return each.kind == "OVERLAY" or not each.cluster_ids or element.id in each.cluster_ids

        try:
            return await self._one(self._subnets, wanted, field, "subnet", usable, element)
        except Missing as error:
            elsewhere = await self._elements_of(_matching(await self._subnets.get(), wanted))
            if not elsewhere:
                raise
            there = " and ".join(repr(name) for name in elsewhere)
            said, near_ones, names = error.message.partition("; did you mean")  # where it is comes before those
            raise Missing(f"{said}; {wanted} is on cluster {there}{near_ones}{names}") from error

    async def _elements_of(self, subnets: Iterable[Subnet]) -> list[str]:
        """Names of the clusters that have one of them."""
        ids = {each for subnet in subnets for each in subnet.cluster_ids}
        return sorted(each.name for each in await self._elements.get() if each.id in ids)

    async def image(self, wanted: Identifier, field: str) -> Image:
        return await self._one(self._images, wanted, field, "image", lambda each: True)

    async def project(self, wanted: Identifier, field: str) -> Project:
        return await self._one(self._projects, wanted, field, "project", lambda each: True)

    async def container(self, wanted: Identifier, element: Element, field: str) -> Container:
        def usable(each: Container) -> bool:
            return each.cluster_id == element.id

        return await self._one(self._containers, wanted, field, "storage container", usable, element)

    async def newest_image(self, wanted: ImageLookup, version: str) -> Image:
        """The youngest image whose name fits the pattern of `imageLookup`."""
        pattern = image_pattern(wanted, version)
        for younger_than in (_FRESH_SECONDS, _NEW_SECONDS):
            found = [each for each in await self._images.get(younger_than=younger_than) if pattern.search(each.name)]
            if found:
                return max(found, key=lambda each: each.created)
        names = near(wanted.base_os, (each.name for each in await self._images.get()))
        raise Missing(
            f"spec.imageLookup: no image on Prism Central {self._prism.address} matches {pattern.pattern!r}{names}"
        )

    async def category(self, wanted: DesiredCategory, field: str) -> Category:
        found = await self.find_category(wanted.key, wanted.value)
        if found is None:
            raise Missing(
                f"{field}: Prism Central {self._prism.address} has no category {wanted.key}:{wanted.value}: create "
                "it in Prism Central, or correct the key and value"
            )
        return found

    async def find_category(self, key: str, value: str) -> Category | None:
        read_at, held = self._categories.get((key, value), (float("-inf"), None))
        if held is not None and self._clock.monotonic() - read_at < _CATEGORY_SECONDS:
            return held
        found = await self._prism.find_category(key, value)
        if found is None:
            self.forget_category(key, value)
        else:
            self.know_category(found)
        return found

    def know_category(self, category: Category) -> None:
        self._categories[category.key, category.value] = (self._clock.monotonic(), category)

    def forget_category(self, key: str, value: str) -> None:
        self._categories.pop((key, value), None)

    def forget(self) -> None:
        """Something that was looked up has changed: the next lookup reads everything again."""
        self._categories.clear()
        for listing in (self._elements, self._subnets, self._images, self._projects, self._containers):
            listing.read_at = float("-inf")

    # -- machines by name ---------------------------------------------------------------------------------------

    async def vms_named(self, name: str) -> list[Vm]:
        """As they are now. Those who ask at the same moment share a request."""
        waiting = self._asked.get(name)
        if waiting is None:
            loop = asyncio.get_running_loop()
            waiting = self._asked[name] = loop.create_future()
            if len(self._asked) == 1:
                self._asking = loop.create_task(self._ask_for_names())
        return await asyncio.shield(waiting)

    async def _ask_for_names(self) -> None:
        await asyncio.sleep(_GATHER_SECONDS)
        asked, self._asked = self._asked, {}
        names = list(asked)
        for start in range(0, len(names), _NAMES_AT_ONCE):
            some = names[start : start + _NAMES_AT_ONCE]
            try:
                found = await self._prism.find_vms(names=some)
            except ProviderError as error:
                for name in some:
                    asked[name].set_exception(error)
                    asked[name].exception()  # whoever asked may be gone
                continue
            for name in some:
                asked[name].set_result([vm for vm in found if vm.name == name])

    # -- lists, for preflight ----------------------------------------------------------------------------------

    async def elements(self) -> Sequence[Element]:
        return [each for each in await self.all_elements() if not each.is_central]

    async def all_elements(self, *, younger_than: float = _FRESH_SECONDS) -> Sequence[Element]:
        """With Prism Central's own entry among them."""
        return await self._elements.get(younger_than=younger_than)

    async def subnets(self) -> Sequence[Subnet]:
        return await self._subnets.get()

    async def images(self) -> Sequence[Image]:
        return await self._images.get()

    # -- inside ------------------------------------------------------------------------------------------------

    async def _one(
        self,
        listing: _Listing[T],
        wanted: Identifier,
        field: str,
        what: str,
        usable: Callable[[T], bool],
        element: Element | None = None,
    ) -> T:
        """`element`: the cluster that it has to be on."""
        where = f"cluster {element.name!r} of " if element is not None else ""
        where += f"Prism Central {self._prism.address}"
        for younger_than in (_FRESH_SECONDS, _NEW_SECONDS):
            items = [each for each in await listing.get(younger_than=younger_than) if usable(each)]
            found = _matching(items, wanted)
            if len(found) == 1:
                return found[0]
            if len(found) > 1:
                ids = [each.id for each in found]
                raise Ambiguous(
                    f"{field}: {len(found)} things on {where} are a {what} named {wanted}; give its UUID instead: "
                    f"{', '.join(ids)}",
                    ids,
                )
        names = near(wanted.name or wanted.uuid or "", (each.name for each in items))
        raise Missing(f"{field}: {what} {wanted} not found on {where}{names}")


def _noticed(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()


def image_pattern(wanted: ImageLookup, version: str) -> re.Pattern[str]:
    text = (wanted.format or _DEFAULT_FORMAT).replace("{{.BaseOS}}", wanted.base_os)
    text = text.replace("{{.K8sVersion}}", version.removeprefix("v"))
    try:
        return re.compile(text)
    except re.error as error:
        raise Misconfigured(f"spec.imageLookup.format: {text!r} is not a valid regular expression: {error}") from None


def _matching(items: Iterable[T], wanted: Identifier) -> list[T]:
    if wanted.type == "uuid":
        return [each for each in items if each.id.lower() == (wanted.uuid or "").lower()]
    same = [each for each in items if each.name == wanted.name]
    return same or [each for each in items if each.name.lower() == (wanted.name or "").lower()]
