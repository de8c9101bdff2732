"""Refusals of the API server, as a user reads them."""

from __future__ import annotations

import pytest

from homeport.app.denial import explain_denial
from homeport.client.errors import Forbidden

WHERE = 'in API group "cluster.x-k8s.io" in the namespace "harbour"'


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            Forbidden(f'machines.cluster.x-k8s.io is forbidden: User "jane" cannot list resource "machines" {WHERE}'),
            "you (user 'jane') may not list machines.cluster.x-k8s.io in namespace harbour: ask an administrator of "
            "the cluster for a Role with verb 'list' on resource 'machines' of API group 'cluster.x-k8s.io'",
        ),
        (
            Forbidden(
                'secrets "prism" is forbidden: User "jane" cannot get resource "secrets" in API group "" in the '
                'namespace "harbour": RBAC: role not found',
                name="prism",
            ),
            "you (user 'jane') may not get secrets prism in namespace harbour: ask an administrator of the cluster "
            "for a Role with verb 'get' on resource 'secrets' of API group ''",
        ),
        (
            Forbidden(
                'namespaces is forbidden: User "system:serviceaccount:a:b" cannot list resource "namespaces" in API '
                'group "" at the cluster scope'
            ),
            "you (user 'system:serviceaccount:a:b') may not list namespaces in the whole cluster: ask an administrator "
            "of the cluster for a ClusterRole with verb 'list' on resource 'namespaces' of API group ''",
        ),
        (Forbidden("machines is forbidden: the quota is used up"), "machines is forbidden: the quota is used up"),
    ],
)
def test_a_refusal_names_the_right_the_place_and_whom_to_ask(error: Forbidden, words: str) -> None:
    assert explain_denial(error) == words
