"""Whose an object is: a release's, somebody else's, or a stand-in that gives way."""

from __future__ import annotations

from typing import Any

from homeport.helm.release.ownership import foreign, marked, stands_in
from homeport.runtime.definition import SHARED_LABEL


def crd(**labels: str) -> dict[str, Any]:
    return {"kind": "CustomResourceDefinition", "metadata": {"name": "a.example.com", "labels": labels}}


def test_a_definition_that_stands_in_for_another_project_gives_way_to_its_release_once() -> None:
    ours = crd(**{SHARED_LABEL: "true"})
    assert stands_in(ours)
    assert foreign(ours, "flux", "flux-system")
    taken = marked(ours, "flux", "flux-system")
    assert not stands_in(taken)
    assert foreign(taken, "flux", "flux-system") == ""
    assert foreign(taken, "other", "flux-system")
    assert not stands_in(crd())
