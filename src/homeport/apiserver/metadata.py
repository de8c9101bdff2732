"""Rules of metadata: what a writer may set, what the server sets, what never changes."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson

from homeport.apiserver.resource import Json, ServedKind
from homeport.apiserver.target import Target
from homeport.client.errors import BadRequest, Cause
from homeport.machinery.schema.name import dns_label, label_key, label_value

# Consonants and digits that form no words and are not mistaken for each other, as Kubernetes picks them.
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_ANNOTATIONS_LIMIT = 256 * 1024
_SET_BY_SERVER = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "selfLink")
_SET_BY_SERVER_TOO = ("deletionGracePeriodSeconds",)
_SPECIAL_FINALIZERS = frozenset({"foregroundDeletion", "orphan", "kubernetes"})
_OWNER = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")


def metadata_of(obj: Json) -> Json:
    """The metadata map of a client's object; made when absent, refused when it is something else."""
    meta = obj.get("metadata")
    if meta is None:
        meta = obj["metadata"] = {}
    if not isinstance(meta, dict):
        raise BadRequest(f"metadata: expected a map, got {type(meta).__name__}")
    for field in ("name", "generateName", "namespace", "resourceVersion", "uid"):
        value = meta.get(field)
        if value is None:
            meta.pop(field, None)
        elif not isinstance(value, str):
            raise BadRequest(f"metadata.{field}: expected a string, got {type(value).__name__}")
    return meta


def strip_create(meta: Json) -> None:
    """Ignores what the client sets about identity and deletion; those fields have no owner."""
    for field in _SET_BY_SERVER + _SET_BY_SERVER_TOO:
        if field != "generation":  # kinds that don't count it keep what they are given
            meta.pop(field, None)


def check_immutable(target: Target, meta: Json, old: Json) -> None:
    """A patch may not touch these; a whole new body is simply overruled."""
    for field in ("uid", "deletionTimestamp"):
        given = meta.get(field)
        if given and given != old.get(field):
            cause = Cause.invalid(f"metadata.{field}", f'"{given}": field is immutable')
            raise target.invalid([cause])


def stamp_create(meta: Json, now: str) -> None:
    """A new object's identity. Whatever the client said about it is overruled."""
    strip_create(meta)
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = generated_name(meta["generateName"])
    meta["uid"] = str(uuid.uuid4())
    meta["creationTimestamp"] = now


def generated_name(stem: str) -> str:
    return stem[:58] + "".join(secrets.choice(_SUFFIX) for _ in range(5))


def carry_over(meta: Json, old: Json) -> None:
    """On update the server's fields stay as they were."""
    for field in ("name", "namespace", *_SET_BY_SERVER, *_SET_BY_SERVER_TOO):
        if field in old:
            meta[field] = old[field]
        else:
            meta.pop(field, None)
    if "generateName" in old:
        meta["generateName"] = old["generateName"]


def check_metadata(meta: Json, old: Json | None, served: ServedKind) -> list[Cause]:
    causes: list[Cause] = []
    if old is None:
        causes += _check_name(meta, served)
    for field in ("labels", "annotations", "ownerReferences", "finalizers"):
        value = meta.get(field)
        if value is None:
            meta.pop(field, None)
        elif old is None or value != old.get(field):
            causes += _CHECKS[field](value)
    if not causes and not served.custom and meta.get("finalizers") != (old or {}).get("finalizers"):
        causes += _check_unqualified(meta.get("finalizers") or ())
    if old is not None and old.get("deletionTimestamp"):
        causes += _check_new_finalizers(meta.get("finalizers") or (), old.get("finalizers") or ())
    return causes


def finalizer_warnings(meta: Json, old: Json | None, asked: Sequence[str] | None = None) -> Iterator[str]:
    """Warnings about new finalizers of custom objects. `asked`: those of the request itself."""
    known = (old or {}).get("finalizers") or ()
    new = set(meta.get("finalizers") or ()).difference(known)
    for name in sorted(new if asked is None else new.intersection(asked)):
        if "/" not in name and name not in _SPECIAL_FINALIZERS:
            path = " including a path (/)" if "." in name else ""
            yield (
                f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name{path} to avoid accidental '
                "conflicts with other finalizer writers"
            )


def _check_name(meta: Json, served: ServedKind) -> Iterator[Cause]:
    stem = meta.get("generateName", "")
    if stem and (wrong := served.naming(_completed(stem))):
        yield _bad("metadata.generateName", stem, wrong)
    name = meta.get("name", "")
    if not name:
        yield Cause.required("metadata.name", "name or generateName is required")
    elif wrong := served.naming(name):
        yield _bad("metadata.name", name, wrong)
    namespace = meta.get("namespace", "")
    if served.namespaced:
        for each in dns_label(namespace):
            yield _bad("metadata.namespace", namespace, each)


def _completed(stem: str) -> str:
    """The beginning of a name may end in a dash, since something will follow."""
    return stem[:-2] + "a" if len(stem) > 1 and stem.endswith("-") else stem


def _bad(field: str, value: Any, wrong: str) -> Cause:
    return Cause.invalid(field, f"{_quoted(value)}: {wrong}")


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else orjson.dumps(value).decode()


def _strings(value: Any, field: str) -> Iterator[Cause]:
    """Bodies of clients are decoded before they come here; what a webhook made of them is not."""
    if not isinstance(value, dict):
        yield Cause("FieldValueTypeInvalid", f"Invalid value: must be a map of strings, got {value!r:.60}", field)
        return
    for key, item in value.items():
        if not isinstance(item, str):
            yield Cause(
                "FieldValueTypeInvalid",
                f"Invalid value: {item!r:.60}: must be a string: quote it",
                f"{field}[{key}]",
            )


def _check_labels(value: Any) -> list[Cause]:
    causes = list(_strings(value, "metadata.labels"))
    if causes:
        return causes
    for key, item in value.items():
        causes += [_bad("metadata.labels", key, wrong) for wrong in label_key(key)]
        causes += [_bad("metadata.labels", item, wrong) for wrong in label_value(item)]
    return causes


def _check_annotations(value: Any) -> list[Cause]:
    causes = list(_strings(value, "metadata.annotations"))
    if causes:
        return causes
    causes += [_bad("metadata.annotations", key, wrong) for key in value for wrong in label_key(key.lower())]
    size = sum(len(k.encode()) + len(v.encode()) for k, v in value.items())
    if size > _ANNOTATIONS_LIMIT:
        message = f"Too long: may not be more than {_ANNOTATIONS_LIMIT} bytes"
        causes.append(Cause("FieldValueTooLong", message, "metadata.annotations"))
    return causes


def _check_owners(value: Any) -> list[Cause]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return [Cause("FieldValueTypeInvalid", "Invalid value: must be a list of maps", "metadata.ownerReferences")]
    causes: list[Cause] = []
    controller = ""
    for i, owner in enumerate(value):
        where = f"metadata.ownerReferences[{i}]"
        causes += [
            Cause.required(f"{where}.{field}", "must not be empty")
            for field in ("apiVersion", "kind", "name", "uid")
            if not owner.get(field)
        ]
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            causes.append(_bad(where, _owner(owner), "/v1, Kind=Event is disallowed from being an owner"))
        if not owner.get("controller"):
            continue
        shown = f"{owner.get('kind', '')}/{owner.get('name', '')}"
        if controller:
            why = (
                'Only one reference can have Controller set to true. Found "true" in references for '
                f"{controller} and {shown}"
            )
            causes.append(_bad("metadata.ownerReferences", [_owner(each) for each in value], why))
        controller = controller or shown
    return causes


def _owner(owner: Json) -> Json:
    """With its fields in the order in which messages show them."""
    return {field: owner[field] for field in _OWNER if field in owner}


def _check_finalizers(value: Any) -> list[Cause]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return [Cause("FieldValueTypeInvalid", "Invalid value: must be a list of strings", "metadata.finalizers")]
    causes = [_bad("metadata.finalizers", each, wrong) for each in value for wrong in label_key(each)]
    if {"orphan", "foregroundDeletion"} <= set(value):
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        causes.append(Cause.invalid("metadata.finalizers", f"{_quoted(value)}: {text}"))
    return causes


def _check_unqualified(finalizers: Iterable[str]) -> Iterator[Cause]:
    """Built-in kinds take no finalizers but qualified ones and those of Kubernetes itself."""
    for i, name in enumerate(finalizers):
        if "/" not in name and name not in _SPECIAL_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            yield _bad(f"metadata.finalizers[{i}]", name, text)


def _check_new_finalizers(new: Iterable[str], old: Iterable[str]) -> list[Cause]:
    added = sorted(set(new) - set(old))
    if not added:
        return []
    listed = ", ".join(f'"{item}"' for item in added)
    message = (
        "Forbidden: no new finalizers can be added if the object is being deleted, "
        f"found new finalizers []string{{{listed}}}"
    )
    return [Cause("FieldValueForbidden", message, "metadata.finalizers")]


_CHECKS = {
    "labels": _check_labels,
    "annotations": _check_annotations,
    "ownerReferences": _check_owners,
    "finalizers": _check_finalizers,
}
