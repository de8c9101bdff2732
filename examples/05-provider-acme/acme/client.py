"""HTTP to the Acme API: every failure becomes one of the errors of `homeport.infra.error`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from homeport.client.dial import DialOptions
from homeport.infra.error import (
    Denied,
    Exhausted,
    Misconfigured,
    Missing,
    ProviderError,
    Rejected,
    Stale,
    Throttled,
    Unreachable,
)
from homeport.infra.vendor.account import Account
from homeport.infra.vendor.endpoint import Endpoint
from homeport.infra.vendor.task import Task, TaskStatus

Json = dict[str, Any]
_TIMEOUT = aiohttp.ClientTimeout(total=60.0, connect=15.0)
_STATES: Mapping[str, TaskStatus] = {"queued": "queued", "running": "running", "done": "succeeded", "failed": "failed"}


@dataclass(frozen=True, slots=True)
class Token:
    value: str = field(repr=False)
    origin: str  # the Secret that it comes from, for messages


class Client:
    """One Acme API and one token."""

    def __init__(self, endpoint: Endpoint, address: str, token: Token, dial: DialOptions) -> None:
        self.address = address
        self._endpoint = endpoint  # limits the rate, and spares an API that is down
        self._account = Account(endpoint.clock)  # spares an account whose token was refused
        self._token = token
        self._proxy = dial.proxy or None
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=dial.tls()), timeout=_TIMEOUT, trust_env=False
        )

    async def close(self) -> None:
        await self._http.close()

    # -- what the API offers -----------------------------------------------------------------------------------

    async def named(self, collection: str, name: str, field: str) -> Json:
        """The image or network of this name. `field` is where the name was read, for the message."""
        found = await self._items(f"/v1/{collection}")
        for each in found:
            if each["name"] == name:
                return each
        known = ", ".join(sorted(each["name"] for each in found)) or "none"
        text = f"{field}: {collection.removesuffix('s')} {name!r} not found on Acme {self.address}; there are: {known}"
        raise Missing(text)

    async def machine(self, id: str) -> Json | None:
        try:
            found: Json = await self._call("GET", f"/v1/machines/{id}")
        except Missing:
            return None
        return found

    async def machines(self, label: str, value: str) -> list[Json]:
        return await self._items("/v1/machines", {"label": f"{label}={value}"})

    async def create_machine(self, body: Json, request_id: str) -> str:
        """Gives the id of the job."""
        return str((await self._call("POST", "/v1/machines", body=body, request_id=request_id))["job"])

    async def start_machine(self, id: str) -> None:
        await self._call("POST", f"/v1/machines/{id}/start")

    async def delete_machine(self, id: str) -> str:
        """Gives the id of the job."""
        return str((await self._call("DELETE", f"/v1/machines/{id}"))["job"])

    async def jobs(self, ids: Sequence[str]) -> list[Task]:
        found = await self._items("/v1/jobs", {"ids": ",".join(ids)})
        return [
            Task(each["id"], _STATES[each["state"]], each["progress"], (each["machine"],), each["message"])
            for each in found
        ]

    async def free_memory(self) -> int:
        """In GiB, on all hosts together."""
        return int((await self._call("GET", "/v1/capacity"))["freeMemoryGiB"])

    # -- requests ----------------------------------------------------------------------------------------------

    async def _items(self, path: str, query: Mapping[str, str] | None = None) -> list[Json]:
        found: list[Json] = (await self._call("GET", path, query=query))["items"]
        return found

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
        request_id: str = "",
    ) -> Any:
        self._account.check()
        headers = {"Authorization": f"Bearer {self._token.value}"}
        if request_id:
            headers["Idempotency-Key"] = request_id
        async with self._endpoint.turn():
            try:
                async with self._http.request(
                    method,
                    f"https://{self.address}{path}",
                    params=query,
                    json=body,
                    headers=headers,
                    proxy=self._proxy,
                ) as reply:
                    content = await reply.json(content_type=None)
                    if reply.status >= 400:
                        raise self._error(reply, content if isinstance(content, dict) else {})
            except TimeoutError:
                raise Unreachable(f"Acme {self.address} did not answer within {_TIMEOUT.total:.0f} s") from None
            except aiohttp.ClientConnectorCertificateError as error:
                text = (
                    f"spec.endpoint: the certificate of Acme {self.address} is not trusted: {error.certificate_error}"
                )
                raise Misconfigured(text) from None
            except (aiohttp.ClientError, OSError, ValueError) as error:
                text = f"Acme {self.address} can't be reached: {error or type(error).__name__}"
                raise Unreachable(text) from None
        self._account.accept()
        return content

    def _error(self, reply: aiohttp.ClientResponse, content: Json) -> ProviderError:
        said = content.get("error") or {}
        code, text = str(said.get("code", "")), f"Acme {self.address}: {said.get('message') or f'HTTP {reply.status}'}"
        match reply.status:
            case 401:
                refused = f"Acme {self.address} rejects the token of {self._token.origin}: correct the key token in it"
                return self._account.refuse(Denied(refused, code=code))
            case 403:
                return Denied(f"{text}; grant the role to the token of {self._token.origin}", code=code)
            case 404:
                return Missing(text, code=code)
            case 409 | 412:
                return Stale(text, code=code)
            case 429:
                return Throttled(f"Acme {self.address} is throttling", after=float(reply.headers["Retry-After"]))
            case status if status >= 500:
                return Unreachable(text, code=code)
        return Exhausted(text, code=code) if code == "no-capacity" else Rejected(text, code=code)


def job_error(task: Task, what: str) -> ProviderError:
    """The error of a job that failed. Acme begins its message with a code."""
    code, _, text = task.error.partition(": ")
    said = f"{what}: {text or code or 'the job failed without a message'}"
    return Exhausted(said, code=code) if code == "no-capacity" else Rejected(said, code=code)
