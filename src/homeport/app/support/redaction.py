"""Removes secrets from objects and texts: by where they are, by what they look like, and by their very value. Pure."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

REMOVED = "(removed)"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# Fields whose value is a secret, or may contain one: bootstrap data, files and commands of cloud-init.
_FIELDS = re.compile(
    r"pass(word|wd|phrase)|token$|^secret$|credential(s)?$|kubeconfig$|user-?_?data|cloud-?_?init|private-?_?key|"
    r"api-?_?key|access-?_?key|client-?_?key|certificate-?_?key|^content$|commands$|authorization|encryption",
    re.IGNORECASE,
)
_PATTERNS = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"(?i)\b(?:bearer|basic) +[A-Za-z0-9+/=._-]{8,}"),
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*)?"),
    re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b"),
    re.compile(r"(?i)(?<=password)([\"']?\s*[=:]\s*)[\"']?[^\s\"',}]+"),
)
# In the text of a file or a log line: `api_key=...`, `"clientSecret": "..."`. A short word behind it is prose.
_ASSIGNED = re.compile(
    r"((?:pass(?:wd|phrase)|(?:api|access|secret|private|encryption)[-_]?key(?:[-_]?id)?|client[-_]?secret|token)"
    r"[\"']?\s*[=:]\s*)[\"']?[^\s\"',}]{8,}",
    re.IGNORECASE,
)
_SHORTEST = 6
# Values of Secrets that are words: to remove them everywhere would make every text unreadable.
_WORDS = frozenset(
    {"password", "default", "cluster", "kubernetes", "nutanix", "harvester", "basic_auth", "prismCentral"}
)


def is_secret(field: str) -> bool:
    """Whether the value of a field or variable of this name is a secret."""
    return _FIELDS.search(field) is not None


class Redaction:
    """Knows the values of all Secrets that were seen: `learn` them before anything is written."""

    def __init__(self) -> None:
        self._values: set[str] = set()

    def learn(self, secret: Mapping[str, Any]) -> None:
        """The data of a Secret: whole values, and the parts of those that are JSON, YAML or PEM."""
        for value in (secret.get("data") or {}).values():
            try:
                text = base64.b64decode(str(value), validate=True).decode()
            except (binascii.Error, ValueError):
                continue
            self._add([text, str(value), *_parts(text)])

    def learn_values(self, values: Iterable[str]) -> None:
        self._add(values)

    def _add(self, values: Iterable[str]) -> None:
        for each in values:
            text = each.strip()
            if len(text) >= _SHORTEST and text not in _WORDS:
                quoted = json.dumps(text)[1:-1]
                self._values |= {text, quoted, base64.b64encode(text.encode()).decode()}

    def text(self, text: str) -> str:
        return self.known(_unpatterned(text))

    def known(self, text: str) -> str:
        """Without the values that were learned; also for JSON."""
        for each in sorted(self._values, key=len, reverse=True):
            if each in text:
                text = text.replace(each, REMOVED)
        return text

    def object(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        """A copy without what is or looks like a secret. Of Secrets only the names of their keys stay."""
        made = dict(obj)
        meta = {name: value for name, value in (obj.get("metadata") or {}).items() if name != "managedFields"}
        notes = {name: value for name, value in (meta.get("annotations") or {}).items() if name != _LAST_APPLIED}
        made["metadata"] = {**meta, "annotations": notes} if "annotations" in meta else meta
        if obj.get("kind") == "Secret":
            for part in ("data", "stringData"):
                if part in made:
                    made[part] = dict.fromkeys(made[part] or {}, REMOVED)
        cleaned: dict[str, Any] = self._value(made)
        return cleaned

    def data(self, value: Any) -> Any:
        """A copy of plain data without what is or looks like a secret."""
        return self._value(value)

    def _value(self, value: Any, field: str = "") -> Any:
        if isinstance(value, Mapping):
            return {name: self._value(each, str(name)) for name, each in value.items()}
        if isinstance(value, list):
            return [self._value(each, field) for each in value]
        if isinstance(value, str):
            return REMOVED if value and _FIELDS.search(field) else _unpatterned(value)
        return value


def _unpatterned(text: str) -> str:
    for pattern in _PATTERNS:
        text = pattern.sub(REMOVED, text)
    return _ASSIGNED.sub(rf"\1{REMOVED}", text)


def _parts(text: str) -> Iterable[str]:
    """Texts within the value of a Secret that are secrets by themselves."""
    try:
        yield from _leaves(json.loads(text))
    except ValueError:
        for line in text.splitlines():
            # `token: abc` and `key: base64` of YAML files, and lines of PEM.
            name, colon, rest = line.strip().partition(": ")
            if (colon and _FIELDS.search(name.strip(" -"))) or name.endswith("-data"):
                yield rest.strip(" \"'")
            elif len(line) >= 40 and not line.startswith("-----"):
                yield line


def _leaves(value: Any, field: str = "") -> Iterable[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _leaves(each, str(name))
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each, field)
    elif isinstance(value, str) and _FIELDS.search(field):
        yield value
