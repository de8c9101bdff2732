"""Checks of what platforms refuse: rights and limits of teams, templates, credentials, data stores."""

from __future__ import annotations

import re
from collections.abc import Iterator

from homeport.app.doctor.check.provider import diagnose, edit
from homeport.app.doctor.diagnosis import Diagnosis
from homeport.app.doctor.fact import Facts

# Condition of a ClusterDeployment > cause, layer, and the kind that the cure lists.
_DEPLOYMENT = {
    "TemplateReady": ("TemplateNotReady", "definition", "clustertemplates"),
    "CredentialReady": ("CredentialNotReady", "credential", "credentials.k0rdent.mirantis.com"),
}
_DENIED = frozenset({"ProviderAccessDenied", "TeamNotFound", "ValidationFailed"})
_POOL = frozenset({"PoolNotFound", "PoolNotReady", "PoolRefused"})
_DATA_STORE = re.compile(r"DataStore \S+ (?:does not exist|holds the data and no longer exists|is being deleted)[^\n]*")


def deployment(facts: Facts) -> Iterator[Diagnosis]:
    """A template or Credential that a ClusterDeployment can't use."""
    for each in facts.problems():
        if each.kind == "ClusterDeployment" and each.condition in _DEPLOYMENT:
            cause, layer, kinds = _DEPLOYMENT[each.condition]
            cure = facts.commands.kubectl("get", kinds, "-n", each.object.namespace)
            yield diagnose(each, layer, cure, cause=cause)


def access(facts: Facts) -> Iterator[Diagnosis]:
    """A provider, version or add-on that the team may not use."""
    for each in facts.problems():
        if each.reason in _DENIED:
            yield diagnose(each, "definition", edit(facts, each))


def pool(facts: Facts) -> Iterator[Diagnosis]:
    """A NetworkPool that can't be used; a full one is a matter of capacity."""
    for each in facts.problems():
        if each.reason in _POOL:
            cure = facts.commands.kubectl("get", "networkpools", "-n", "butler-system")
            yield diagnose(each, "definition", cure)


def data_store(facts: Facts) -> Iterator[Diagnosis]:
    """A hosted control plane without a place for its data."""
    for each in facts.problems():
        if found := _DATA_STORE.search(each.message):
            cure = facts.commands.kubectl("get", "datastores")
            yield diagnose(each, "definition", cure, cause="DataStoreNotFound", message=found.group())


CHECKS = (deployment, access, pool, data_store)
