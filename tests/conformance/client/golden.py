"""What the real server answered, kept beside the tests; every server must answer the same.

Names that differ from run to run (namespaces, groups of CRDs, uids, versions, times) are replaced before comparing.
HOMEPORT_RECORD=1 writes the files anew from the real server.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from homeport.client.errors import ApiError

FOLDER = Path(__file__).parent / "golden"
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_OBJECT = re.compile(r'Invalid value: "\{\\".*\}": ')
_VERSION_TEXT = re.compile(r"(ResourceVersion in (?:the precondition|record)) \(\d+\)")
_STORAGE = re.compile(r"StorageError: invalid object, Code: \d+, Key: \S+, ResourceVersion: \d+, AdditionalErrorMsg: ")
_REDACTED = re.compile(r'(<secret contents redacted>": )invalid .*')
_SCHEME = re.compile(r'in scheme "pkg/[^"]*"')
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class Normal:
    """Replaces what differs from run to run. The same value gets the same name, so identity stays visible."""

    def __init__(self, words: dict[str, str]) -> None:
        self.words = words  # text > placeholder
        self._numbers: dict[tuple[str, str], str] = {}

    def _number(self, kind: str, value: str) -> str:
        same_kind = sum(1 for known, _ in self._numbers if known == kind)
        return self._numbers.setdefault((kind, value), f"{kind}-{same_kind + 1}")

    def text(self, value: str) -> str:
        for word, placeholder in self.words.items():
            value = value.replace(word, placeholder)
        value = _TIME.sub("TIME", value)
        value = _OBJECT.sub('Invalid value: "OBJECT": ', value)  # whole objects, in the order of Go's struct fields
        value = _VERSION_TEXT.sub(r"\1 (VERSION)", value)
        value = _STORAGE.sub("", value)  # of etcd
        value = _REDACTED.sub(r"\1WHY", value)  # where exactly a parser gave up
        value = _SCHEME.sub('in scheme "SCHEME"', value)  # a line of Go source
        return _UID.sub(lambda found: self._number("UID", found[0]), value)

    def __call__(self, value: Any, key: str = "") -> Any:
        if isinstance(value, ApiError):
            return self(value.status)
        if isinstance(value, dict):
            if value.get("kind") == "Status":
                value = _in_order(value)
            if "containers" in value and value.get("serviceAccountName") == "default":
                # The real server runs without the plugin that names it, since nobody makes the accounts here.
                value = {k: v for k, v in value.items() if k not in ("serviceAccount", "serviceAccountName")}
            if "generateName" in value and "name" in value:
                value = {**value, "name": value["generateName"] + "SUFFIX"}
            return {self.text(name): self(inner, name) for name, inner in sorted(value.items())}
        if key == "managedFields":
            value = sorted(value, key=_manager)
        if isinstance(value, (list, tuple)):
            return [self(inner) for inner in value]
        if key == "resourceVersion" and value:
            return self._number("RV", value)
        return self.text(value) if isinstance(value, str) else value


def _in_order(status: dict[str, Any]) -> dict[str, Any]:
    """Refusals of custom resources list their causes in random order: sort them, and the message with them."""
    details = status.get("details") or {}
    causes = details.get("causes") or []
    if len(causes) < 2 or not str(details.get("group", "")).endswith(".example.com"):
        return status

    def joined(parts: list[dict[str, Any]]) -> str:
        return "[" + ", ".join(f"{c.get('field', '')}: {c['message']}" for c in parts) + "]"

    ordered = sorted(causes, key=lambda cause: (cause.get("field", ""), cause.get("message", "")))
    message = status["message"].replace(joined(causes), joined(ordered))
    return {**status, "message": message, "details": {**details, "causes": ordered}}


def _manager(entry: dict[str, Any]) -> tuple[str, ...]:
    # Servers sort by time, to the second: writes around a full second would come in another order.
    return tuple(str(entry.get(name, "")) for name in ("operation", "manager", "subresource", "apiVersion", "fieldsV1"))


_REJECTED = "the server rejected our request due to an error in our request"
# Where the recorded words are internals of Go, or show more than they should, ours are others. Each pair turns a text of
# kube-apiserver's into that of ours; everything else must be word for word.
_OURS: tuple[tuple[re.Pattern[str], str], ...] = (
    # It shows the whole object that a patch made, which may be a Secret. We show none of it.
    (re.compile(r'Invalid value: "OBJECT": '), 'Invalid value: "{...}": '),
    # It names the line of its source in which its table of kinds was made.
    (re.compile(r' in scheme "SCHEME"'), ""),
    # Its words for a body of a kind that it knows, sent to the path of another kind.
    (
        re.compile(r"converting \(\w+\.(\w+)\) to \(\w+\.(\w+)\): unknown conversion"),
        r"the path takes a \2, the body is a \1",
    ),
    # It can answer in protobuf, which ours takes in bodies alone.
    (
        re.compile(
            r"^406: Not Acceptable\n\nAvailable representations: "
            r"application/json, application/yaml, application/vnd.kubernetes.protobuf$"
        ),
        "only the following media types are accepted: application/json, application/yaml",
    ),
    # A template that may not change, shown with the names that its fields have in Go. Ours has those of the API.
    (
        re.compile(r'Invalid value: \{"labels":(\{[^{}]*\}),"Spec":\{"Volumes".*\}: field is immutable$'),
        r'Invalid value: {"metadata":{"labels":\1},"spec":{...}}: field is immutable',
    ),
    # Where its decoders gave up on a continue token that it did not make.
    (
        re.compile(
            r"(continue key is not valid: )"
            r"(?:illegal base64 data at input byte \d+|invalid character '.*' looking for beginning of value)$"
        ),
        r"\1it was not made by this server",
    ),
)
_TEMPLATE = re.compile(r'"spec":\{"containers".*\}\}: field is immutable$')
_TEMPLATE_SHORT = '"spec":{...}}: field is immutable'
# A difference between two Go structs, line by line: ours names the fields, or says nothing more.
_GO_DIFF = re.compile(r"\n@@ -\d+,\d+ \+\d+,\d+ @@\n(?: |[-+] ).*", re.DOTALL)
# A strategic patch that has a map where a list belongs: we say in which field.
_NO_LIST = re.compile(r'Invalid value: "map\[.*\]": cannot restore slice from map$')
_NO_LIST_OURS = 'Invalid value: "{...}": json: cannot unmarshal object into Go struct field '


def _ours(text: str) -> str:
    """What our server is to say where kube-apiserver says `text`."""
    for theirs, ours in _OURS:
        text = theirs.sub(ours, text)
    return text


def _same_text(wanted: str, got: str) -> bool:
    if got == _ours(wanted):
        return True
    if wanted == _REJECTED:  # a JSON patch that fails: ours goes on to say which operation, and why
        return got.startswith(f"{_REJECTED}: ")
    if _GO_DIFF.search(wanted):
        head = _GO_DIFF.sub("", wanted)
        return got == head or got.startswith(f"{head}\nspec.")
    if _TEMPLATE.search(got):
        return _TEMPLATE.sub(_TEMPLATE_SHORT, got) == _ours(wanted)
    if _NO_LIST.search(wanted):
        return got.startswith(_NO_LIST.sub(lambda _: _NO_LIST_OURS, wanted))
    return False


def _causes(causes: list[Any]) -> list[Any]:
    """kube-apiserver checks some metadata of custom objects twice, and then tells it twice. Conflicts of an apply with
    several managers come in the order of a Go map, which is none.
    """
    found = [cause for i, cause in enumerate(causes) if cause not in causes[:i]]
    if all(cause.get("reason") == "FieldManagerConflict" for cause in found):
        found.sort(key=lambda cause: (cause["field"], cause["message"]))
    return found


def _without_nothing(obj: dict[str, Any]) -> dict[str, Any]:
    """An empty list that comes back as null has no owner: kube-apiserver notes one before it drops the list."""
    entries = obj.get("metadata", {}).get("managedFields") if isinstance(obj.get("metadata"), dict) else None
    nothing = {f"f:{name}" for name, value in obj.items() if value is None}
    if not entries or not nothing:
        return obj
    kept = [
        {**entry, "fieldsV1": {k: v for k, v in entry["fieldsV1"].items() if k not in nothing or v}}
        for entry in entries
    ]
    return {**obj, "metadata": {**obj["metadata"], "managedFields": kept}}


def _excused(wanted: dict[str, Any], got: dict[str, Any]) -> bool:
    """kube-apiserver calls some mistakes of the asker its own failure: a 4xx with the same words is better."""
    return wanted.get("code") == 500 and wanted.get("message") == got.get("message") and 400 <= got.get("code", 0) < 500


def differences(wanted: Any, got: Any, path: str = "") -> list[str]:
    """One line for every place where two answers differ."""
    if wanted == got:
        return []
    if isinstance(wanted, dict) and isinstance(got, dict):
        if _excused(wanted, got):
            return []
        wanted = _without_nothing(wanted)
        found = []
        for name in sorted(wanted.keys() | got.keys()):
            found += differences(wanted.get(name, ABSENT), got.get(name, ABSENT), f"{path}.{name}")
        return found
    if isinstance(wanted, list) and isinstance(got, list):
        if path.endswith(".details.causes"):
            wanted, got = _causes(wanted), _causes(got)
        if len(wanted) == len(got):
            pairs = enumerate(zip(wanted, got, strict=True))
            return [line for i, pair in pairs for line in differences(*pair, f"{path}[{i}]")]
    if wanted == {} and got is ABSENT and path.endswith(".details"):
        return []  # details of nothing
    if isinstance(wanted, str) and isinstance(got, str) and _same_text(wanted, got):
        return []
    return [f"{path}:", f"  wanted {wanted!r}", f"  got    {got!r}"]


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()


class Golden:
    """The answers of one test. `check(label, value)` compares; when recording, it collects."""

    def __init__(self, module: str, test: str, normal: Normal, *, record: bool) -> None:
        self._file = FOLDER / f"{module}.json"
        self._test = test
        self._record = record
        self.normal = normal
        self._seen: dict[str, Any] = {}
        self._wrong: list[str] = []
        self._known: dict[str, Any] = {} if record else self._load().get(test, {})

    def _load(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self._file.read_text()) if self._file.exists() else {}
        return loaded

    def check(self, label: str, value: Any) -> None:
        """Differences are gathered, so that one run shows all of them; `verdict` fails the test."""
        assert label not in self._seen, f"label {label!r} used twice"
        value = self._seen[label] = self.normal(value)
        if self._record:
            return
        assert label in self._known, f"{self._test}: no recorded answer {label!r}; record it from the real server"
        known = self._known[label]
        if found := differences(known, value):
            self._wrong.append("\n".join([f"{label}: not as kube-apiserver answers", *found]))

    def verdict(self) -> str:
        """What was wrong, or nothing."""
        return "\n".join(self._wrong)

    def save(self) -> None:
        if self._record and self._seen:
            whole = self._load()
            whole[self._test] = {**whole.get(self._test, {}), **self._seen}  # the cases of one test come one by one
            self._file.write_text(json.dumps(whole, indent=1, sort_keys=True) + "\n")
