"""Stories: requests on built-in kinds, in order, each on a server of its own. What a real kube-apiserver answered to
them is in answers/, written by tools/record_answers.py; the tests hold Homeport's server to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ANSWERS = Path(__file__).parent / "answers"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

Json = dict[str, Any]


class Step(NamedTuple):
    method: str
    path: str
    body: Json | None = None
    content_type: str = "application/json"
    # Why our answer is another one, where it is meant to be. Only what is in parentheses here may differ.
    differs: str = ""


def post(path: str, body: Json, *, differs: str = "") -> Step:
    return Step("POST", path, body, differs=differs)


def check(path: str, body: Json, *, differs: str = "") -> Step:
    """A create that leaves nothing behind."""
    return Step("POST", f"{path}?dryRun=All", body, differs=differs)


def put(path: str, body: Json, *, differs: str = "") -> Step:
    return Step("PUT", path, body, differs=differs)


def merge(path: str, body: Json, *, differs: str = "") -> Step:
    return Step("PATCH", path, body, MERGE, differs)


def strategic(path: str, body: Json, *, differs: str = "") -> Step:
    return Step("PATCH", path, body, STRATEGIC, differs)


def get(path: str, *, differs: str = "") -> Step:
    return Step("GET", path, differs=differs)


def delete(path: str, *, differs: str = "") -> Step:
    return Step("DELETE", path, differs=differs)


def copy(obj: Json) -> Json:
    found: Json = json.loads(json.dumps(obj))
    return found


Story = Callable[[], Iterator[Step]]

_TIMES = "creationTimestamp|deletionTimestamp|lastTransitionTime|lastUpdateTime|lastPhaseTransitionTime"
_VARYING = (
    (re.compile(rf'"(uid|resourceVersion|{_TIMES})": "[^"]*"'), r'"\1": "*"'),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r'"disruptedPods": \{[^}]*\}'), '"disruptedPods": "*"'),
    (re.compile(r'"clusterIP": "10\.96\.(?!0\.)[^"]*"'), '"clusterIP": "*"'),
    (re.compile(r'"clusterIPs": \["10\.96\.(?!0\.)[^"]*"\]'), '"clusterIPs": "*"'),
    (re.compile(r'"(nodePort|healthCheckNodePort)": 3[0-9]{4}'), r'"\1": "*"'),
)


def settled(code: int, answer: Json) -> Json:
    """An answer without what differs from run to run, and without what other parts of the server are tested for."""
    if answer.get("kind") == "Status":
        details = answer.get("details") or {}
        kept: Json = {"code": code, "message": answer.get("message", ""), "causes": details.get("causes", [])}
    elif "items" in answer:
        kept = {"code": code, "names": sorted(item["metadata"]["name"] for item in answer["items"] or ())}
    else:
        answer.get("metadata", {}).pop("managedFields", None)
        kept = {"code": code, "object": answer}
    text = json.dumps(kept, sort_keys=True)
    for pattern, replacement in _VARYING:
        text = pattern.sub(replacement, text)
    found: Json = json.loads(text)
    return found
