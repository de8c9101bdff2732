"""Which kinds an API server serves, and under which names: discovery as needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from homeport.api.meta import Resource
from homeport.client.errors import BadRequest, NotFound
from homeport.client.protocol import Client

Json = dict[str, Any]

# All groups with all their kinds in one answer; servers before Kubernetes 1.27 send the plain list instead.
_AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


@dataclass(frozen=True, slots=True)
class ServerKinds:
    """The version of a server, and every `group/version` and `group/version/Kind` that it serves."""

    version: str
    api_versions: frozenset[str]


class RestMapper:
    """Which kinds a cluster serves, asked as needed. Made for one loop: definitions come and go."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._groups: dict[str, Mapping[str, Resource]] = {}

    async def find(self, api_version: str, kind: str) -> Resource:
        """Raises NotFound."""
        if kind not in self._groups.get(api_version, {}):
            self._groups[api_version] = await self._ask(api_version)
        found = self._groups[api_version].get(kind)
        if found is None:
            raise NotFound(f"the cluster serves no {kind} of {api_version}{await self._advice(api_version)}")
        return found

    async def version(self) -> str:
        """Of the server, for example v1.33.1; '' if it does not say."""
        return str((await self._get("/version")).get("gitVersion", ""))

    async def served(self) -> ServerKinds:
        """Everything that the cluster serves: three requests, or one per group and version where it is an old one."""
        version = await self.version()
        roots = [await self._get(path, _AGGREGATED) for path in ("/api", "/apis")]
        if all(root.get("kind") == "APIGroupDiscoveryList" for root in roots):
            self._groups = {name: kinds for root in roots for name, kinds in _aggregated(root)}
            names = list(self._groups)
        else:
            names = list(roots[0].get("versions") or ())
            for group in roots[1].get("groups") or ():
                names += [each["groupVersion"] for each in group.get("versions") or ()]
            for name in names:
                self._groups[name] = await self._ask(name)
        kinds = {f"{name}/{kind}" for name in names for kind in self._groups[name]}
        return ServerKinds(version, frozenset(kinds | set(names)))

    async def listed(self) -> list[Resource]:
        """Every kind once, in one of its versions. Some of them can't be listed."""
        await self.served()
        found: dict[tuple[str, str], Resource] = {}
        for kinds in self._groups.values():
            for each in kinds.values():
                found.setdefault((each.group, each.kind), each)
        return list(found.values())

    async def _ask(self, api_version: str) -> dict[str, Resource]:
        group, version = _parse(api_version)
        listed = await self._get(f"/apis/{group}/{version}" if group else f"/api/{version}")
        return {
            each["kind"]: Resource(group, version, each["kind"], each["name"], bool(each.get("namespaced")))
            for each in listed.get("resources") or ()
            if "/" not in each["name"]
        }

    async def _advice(self, api_version: str) -> str:
        """What to do about it: manifests grow old, and definitions come late."""
        group = _parse(api_version)[0]
        listed = await self._get(f"/apis/{group}") if group else {}
        versions = [each["groupVersion"] for each in listed.get("versions") or ()]
        if versions and api_version not in versions:
            return f", but it serves {', '.join(versions)}: use that version in the manifest"
        return ": install its CustomResourceDefinition first" if group else ""

    async def _get(self, path: str, accept: str = "application/json") -> Json:
        """Nothing, where nothing is served."""
        # Both clients answer raw requests; those that wrap one pass its attributes on.
        raw = getattr(self._client, "raw", None)
        if raw is None:
            raise BadRequest("the kinds that the cluster serves can't be read through this connection")
        answer = await raw("GET", path, accept=accept)
        if answer.status == 404:
            return {}
        answer.check(f"GET {path}")
        found: Json = answer.json()
        return found


def _parse(api_version: str) -> tuple[str, str]:
    group, _, version = api_version.rpartition("/")
    return group, version


def _aggregated(root: Json) -> Iterator[tuple[str, dict[str, Resource]]]:
    """The kinds of each group and version. A version that could not be read has none."""
    for item in root.get("items") or ():
        group = (item.get("metadata") or {}).get("name", "")
        for found in item.get("versions") or ():
            version = found["version"]
            kinds = {}
            for each in found.get("resources") or ():
                kind = (each.get("responseKind") or {}).get("kind", "")
                if kind:
                    namespaced = each.get("scope") == "Namespaced"
                    kinds[kind] = Resource(group, version, kind, each["resource"], namespaced)
            yield f"{group}/{version}" if group else version, kinds
