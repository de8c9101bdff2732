from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from homeport.apiserver.auth.rbac.rbac import GROUP, Rbac
from homeport.apiserver.request import SYSTEM
from homeport.apiserver.verb.admission import Admission, Attributes
from homeport.apiserver.verb.lifecycle import install
from homeport.client.errors import Forbidden, Invalid, NotFound
from homeport.store import Store
from unit.apiserver.admission_sample import ANNA, CONFIG_MAP, NAMESPACE, NODE, POD, attributes, kind, namespace, put


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = await Store.open(None)
    yield opened
    await opened.close()


async def test_a_kind_without_hooks_is_admitted() -> None:
    admission = Admission()
    for operation in ("CREATE", "UPDATE", "DELETE"):
        assert not admission.mutates(CONFIG_MAP, operation, "")
        assert not admission.validates(CONFIG_MAP, operation, "")


async def test_hooks_are_called_for_what_they_registered_for() -> None:
    admission = Admission()
    admission.on("", "configmaps", lambda a: None, ("UPDATE",))
    admission.on("*", "*", lambda a: None, ("DELETE",), subresources=("*",))
    assert admission.validates(CONFIG_MAP, "UPDATE", "")
    assert not admission.validates(CONFIG_MAP, "CREATE", "")
    assert not admission.validates(CONFIG_MAP, "UPDATE", "status")
    assert admission.validates(NODE, "DELETE", "anything")
    assert not admission.mutates(CONFIG_MAP, "UPDATE", "")


async def test_a_hook_may_change_or_replace_the_object_and_later_ones_see_it() -> None:
    admission = Admission()

    def in_place(a: Attributes) -> None:
        assert a.object is not None
        a.object["first"] = 1

    async def another(a: Attributes) -> dict[str, object]:
        assert a.object is not None
        return {**a.object, "second": a.object["first"]}

    admission.on("", "configmaps", in_place, mutating=True)
    admission.on("", "configmaps", another, mutating=True)
    changed = await admission.mutate(attributes())
    assert (changed["first"], changed["second"]) == (1, 1)


async def test_a_validating_hook_refuses_by_raising() -> None:
    admission = Admission()

    def refuse(a: Attributes) -> None:
        raise Invalid("no")

    admission.on("", "configmaps", refuse)
    with pytest.raises(Invalid):
        await admission.validate(attributes())


async def test_a_hook_added_later_is_called() -> None:
    admission = Admission()
    assert not admission.validates(CONFIG_MAP, "CREATE", "")
    admission.on("", "configmaps", lambda a: None)
    assert admission.validates(CONFIG_MAP, "CREATE", "")


async def test_a_redefined_kind_is_looked_at_again() -> None:
    admission = Admission()
    asked: list[int] = []

    class Curious:
        def mutates(self, served: object, operation: str, subresource: str) -> bool:
            asked.append(1)
            return False

        def validates(self, served: object, operation: str, subresource: str) -> bool:
            return False

        async def mutate(self, attributes: Attributes) -> None: ...

        async def validate(self, attributes: Attributes) -> None: ...

    admission.add(Curious())
    first = kind("Widget", "widgets", "example.org")
    for served in (first, first, kind("Widget", "widgets", "example.org")):
        admission.mutates(served, "CREATE", "")
    assert len(asked) == 2


async def test_nothing_is_created_in_a_namespace_that_is_not_there(store: Store) -> None:
    admission = Admission()
    install(admission, store)
    with pytest.raises(NotFound) as refused:
        await admission.mutate(attributes(namespace="x"))
    assert str(refused.value) == 'namespaces "x" not found'
    await namespace(store, "x")
    await admission.mutate(attributes(namespace="x"))
    assert not admission.mutates(NODE, "CREATE", "")
    assert not admission.mutates(CONFIG_MAP, "UPDATE", "")


async def test_nothing_is_created_in_a_namespace_that_is_ending(store: Store) -> None:
    admission = Admission()
    install(admission, store)
    meta = {"name": "x", "deletionTimestamp": "2026-11-15T20:37:46Z"}
    await put(store, "namespaces", "x", {"metadata": meta, "status": {"phase": "Terminating"}})
    with pytest.raises(Forbidden) as refused:
        await admission.mutate(attributes(namespace="x", name="late"))
    assert refused.value.status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "late" is forbidden: unable to create new content in namespace x '
        "because it is being terminated",
        "reason": "Forbidden",
        "details": {
            "name": "late",
            "kind": "configmaps",
            "causes": [
                {
                    "reason": "NamespaceTerminating",
                    "message": "namespace x is being terminated",
                    "field": "metadata.namespace",
                }
            ],
        },
        "code": 403,
    }


async def test_a_namespace_with_a_terminating_condition_only_is_active(store: Store) -> None:
    admission = Admission()
    install(admission, store)
    meta = {"name": "x", "labels": {"deletionTimestamp": "Terminating"}}
    await put(store, "namespaces", "x", {"metadata": meta, "status": {"phase": "Active"}})
    await admission.mutate(attributes(namespace="x"))


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_some_namespaces_can_not_be_deleted(store: Store, name: str) -> None:
    admission = Admission()
    install(admission, store)
    assert admission.validates(NAMESPACE, "DELETE", "")
    with pytest.raises(Forbidden) as refused:
        await admission.validate(attributes(NAMESPACE, "DELETE", name=name))
    assert str(refused.value) == f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    await admission.validate(attributes(NAMESPACE, "DELETE", name="other"))


async def test_a_pod_gets_the_default_service_account(store: Store) -> None:
    admission = Admission()
    install(admission, store)
    await namespace(store, "default")
    assert (await admission.mutate(attributes(POD, spec={})))["spec"]["serviceAccountName"] == "default"
    named = await admission.mutate(attributes(POD, spec={"serviceAccountName": "robot"}))
    assert named["spec"] == {"serviceAccountName": "robot", "serviceAccount": "robot"}


async def test_roles_and_bindings_are_checked_for_escalation(store: Store) -> None:
    admission, rbac = Admission(), Rbac()
    rbac.follow(store)
    install(admission, store, rbac)
    role = kind("ClusterRole", "clusterroles", GROUP, namespaced=False)
    binding = kind("ClusterRoleBinding", "clusterrolebindings", GROUP, namespaced=False)
    rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    with pytest.raises(Forbidden, match="not currently held"):
        await admission.validate(attributes(role, rules=rules, user=ANNA))
    await admission.validate(attributes(role, rules=rules, user=SYSTEM))
    with pytest.raises(NotFound):
        await admission.validate(attributes(binding, roleRef={"kind": "ClusterRole", "name": "x"}, user=ANNA))
