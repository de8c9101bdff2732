"""Creates the copies on the target, and verifies them."""

from __future__ import annotations

from homeport.api.meta import Unstructured
from homeport.capi.object.paused import has_annotation
from homeport.client.errors import AlreadyExists, BadRequest, Conflict, Invalid, NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.move.errors import MoveRefused
from homeport.move.graph import Selection
from homeport.move.node import Node
from homeport.move.preflight import Existing, is_copy, occupied, read_existing
from homeport.move.record import Held
from homeport.move.replica import MARK, Mark, render_copy, render_status
from homeport.move.side import MANAGER, NAMESPACE, Side, find

_ATTEMPTS = 10


class Copier:
    """Copies one selection. What an earlier attempt copied, and has not changed since, is left as it is."""

    def __init__(self, source: Side, target: Side, held: Held, selection: Selection) -> None:
        self._source = source
        self._target = target
        self._held = held
        self._selection = selection
        self._uids: dict[str, str] = {}  # of the target, by those of the source
        self._ours = {each.uid for each in held.record.paused}

    async def run(self) -> None:
        existing = await read_existing(self._target, self._selection)
        for namespace in sorted({node.key.namespace for node in self._selection.nodes} - {""}):
            await self._hold_namespace(namespace)
        for group in self._selection.groups():
            for node in group:
                self._uids[node.uid] = await self._copy(node, existing.get(node.place))

    async def verify(self) -> None:
        """Read again from the target: nothing is deleted on the strength of what we remember."""
        existing: Existing = await read_existing(self._target, self._selection)
        missing = [str(node) for node in self._selection.nodes if not _is_there(node, existing.get(node.place))]
        if missing:
            text = f"the target does not have a complete copy of {', '.join(missing[:5])}"
            raise MoveRefused([f"{text}: something deletes or changes it there. Nothing was deleted from the source"])

    async def _hold_namespace(self, name: str) -> None:
        key = Key("", name)
        if await find(self._target, NAMESPACE, key) is not None:
            return
        here = await find(self._source, NAMESPACE, key)
        meta = here.metadata if here is not None else {}
        kept = {field: meta[field] for field in ("labels", "annotations") if meta.get(field)}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **kept}}
        try:
            await self._target.create(body, MANAGER, kind=NAMESPACE)
        except AlreadyExists:
            return

    async def _copy(self, node: Node, there: Unstructured | None) -> str:
        """The UID of the copy. Controllers of the target report the pause on it while we write: then we look again."""
        for _ in range(_ATTEMPTS):
            if there is not None:
                if problem := occupied(node, there):
                    raise MoveRefused([problem])
                known = is_copy(node, there)
                if known is None or known.resource_version == node.version:
                    return there.uid
            await self._held.check()
            mark = Mark(self._held.record.move, node.uid, paused=self._is_own_pause(node))
            made = await self._write(node, there, mark)
            if made is not None:
                await self._complete(node, made, mark)
                return made.uid
            there = await find(self._target, node.kind.resource, node.key)
        text = f"{node} changes on the target faster than it can be written"
        raise MoveRefused([f"{text}: stop what writes to it there, and run this command again"])

    def _is_own_pause(self, node: Node) -> bool:
        return has_annotation(node.obj) and node.uid not in self._ours

    async def _write(self, node: Node, there: Unstructured | None, mark: Mark) -> Unstructured | None:
        """None: it came, went or changed since we looked."""
        kind, body = node.kind.resource, render_copy(node, mark, self._uids)
        try:
            if there is None:
                return await self._target.create(body, MANAGER, kind=kind)
            meta = {**body["metadata"], "uid": there.uid, "resourceVersion": there.resource_version}
            return await self._target.replace({**body, "metadata": meta}, MANAGER, kind=kind)
        except (AlreadyExists, Conflict, NotFound):
            return None

    async def _complete(self, node: Node, made: Unstructured, mark: Mark) -> None:
        """Status, then who manages which field, and with that the mark that the copy is complete."""
        kind, key = node.kind.resource, node.key
        if node.kind.status and node.status:
            status = render_status(node, int(made.metadata.get("generation") or 0))
            await self._target.patch(kind, key, MergePatch({"status": status}), MANAGER, subresource="status")
        done = Mark(mark.move, mark.uid, node.version, mark.paused)
        meta = {"uid": made.uid, "annotations": {MARK: done.render()}}
        fields = node.obj.metadata.get("managedFields")
        try:
            body = {"metadata": {**meta, **({"managedFields": fields} if fields else {})}}
            await self._target.patch(kind, key, MergePatch(body), MANAGER)
        except (Invalid, BadRequest):  # written through a version that the target does not know
            await self._target.patch(kind, key, MergePatch({"metadata": meta}), MANAGER)


def _is_there(node: Node, there: Unstructured | None) -> bool:
    if there is None:
        return False
    mark = is_copy(node, there)
    return mark.resource_version == node.version if mark is not None else not occupied(node, there)
