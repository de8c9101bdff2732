"""The official Kubernetes client for Python, typed and dynamic, against a plane."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

GROUP = "py.example.com"


@pytest.fixture(scope="module", params=["ours", "real"])
def api(request: pytest.FixtureRequest) -> Iterator[Any]:
    cluster = request.getfixturevalue(request.param)
    if cluster is None:
        pytest.skip(str(request.getfixturevalue("binaries")))
    made = config.new_client_from_config(str(cluster.kubeconfig))
    yield made
    made.close()
    made.rest_client.pool_manager.clear()


@pytest.fixture
def ns(api: Any) -> str:
    name = f"py-{uuid.uuid4().hex[:8]}"
    client.CoreV1Api(api).create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=name)))
    return name


def config_map(name: str, **data: str) -> Any:
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"app": name}), data=data)


def test_typed_objects_are_created_read_changed_and_deleted(api: Any, ns: str) -> None:
    core = client.CoreV1Api(api)
    made = core.create_namespaced_config_map(ns, config_map("a", k="v"))
    assert made.metadata.uid
    assert core.read_namespaced_config_map("a", ns).data == {"k": "v"}
    patched = core.patch_namespaced_config_map("a", ns, {"data": {"l": "w"}})
    assert patched.data == {"k": "v", "l": "w"}
    patched.data = {"only": "this"}
    assert core.replace_namespaced_config_map("a", ns, patched).data == {"only": "this"}
    with pytest.raises(ApiException) as caught:
        core.replace_namespaced_config_map("a", ns, made)
    assert caught.value.status == 409
    assert [item.metadata.name for item in core.list_namespaced_config_map(ns, label_selector="app=a").items] == ["a"]
    core.delete_namespaced_config_map("a", ns)
    with pytest.raises(ApiException) as caught:
        core.read_namespaced_config_map("a", ns)
    assert caught.value.status == 404
    assert caught.value.reason == "Not Found"


def test_pages_are_followed(api: Any, ns: str) -> None:
    core = client.CoreV1Api(api)
    for index in range(5):
        core.create_namespaced_config_map(ns, config_map(f"m{index}"))
    names, token = [], None
    while True:
        page = core.list_namespaced_config_map(ns, limit=2, _continue=token, label_selector="app")
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue
        if not token:
            break
    assert names == [f"m{index}" for index in range(5)]


def test_workloads_and_their_scale(api: Any, ns: str) -> None:
    apps = client.AppsV1Api(api)
    labels = {"app": "d"}
    pod = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels),
        spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="example.com/c:1")]),
    )
    spec = client.V1DeploymentSpec(selector=client.V1LabelSelector(match_labels=labels), template=pod)
    made = apps.create_namespaced_deployment(ns, client.V1Deployment(metadata=client.V1ObjectMeta(name="d"), spec=spec))
    assert made.spec.replicas == 1
    assert made.spec.strategy.rolling_update.max_surge == "25%"
    scale = apps.read_namespaced_deployment_scale("d", ns)
    scale.spec.replicas = 4
    assert apps.replace_namespaced_deployment_scale("d", ns, scale).spec.replicas == 4
    status = apps.patch_namespaced_deployment_status("d", ns, {"status": {"replicas": 4, "readyReplicas": 2}})
    assert status.status.ready_replicas == 2
    assert apps.read_namespaced_deployment("d", ns).metadata.generation == 2


def test_a_watch_follows_changes(api: Any, ns: str) -> None:
    core = client.CoreV1Api(api)
    start = core.list_namespaced_config_map(ns).metadata.resource_version
    only = {"field_selector": "metadata.name=w", "resource_version": start, "timeout_seconds": 20}

    def change() -> None:
        core.create_namespaced_config_map(ns, config_map("w"))
        core.patch_namespaced_config_map("w", ns, {"data": {"k": "v"}})
        core.delete_namespaced_config_map("w", ns)

    changing = threading.Thread(target=change)
    changing.start()
    watching = watch.Watch()
    seen = []
    for event in watching.stream(core.list_namespaced_config_map, ns, **only):
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            watching.stop()
    changing.join()
    assert seen == [("ADDED", "w"), ("MODIFIED", "w"), ("DELETED", "w")]


def test_a_watch_from_the_distant_past_is_gone_or_complete(api: Any, ns: str) -> None:
    core = client.CoreV1Api(api)
    core.create_namespaced_config_map(ns, config_map("a"))
    seen = [
        event["object"].metadata.name
        for event in watch.Watch().stream(core.list_namespaced_config_map, ns, timeout_seconds=1)
    ]
    assert "a" in seen


def test_service_account_tokens_and_reviews(api: Any, ns: str) -> None:
    core = client.CoreV1Api(api)
    core.create_namespaced_service_account(ns, client.V1ServiceAccount(metadata=client.V1ObjectMeta(name="robot")))
    request = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=3600))
    token = core.create_namespaced_service_account_token("robot", ns, request).status.token
    review = client.AuthenticationV1Api(api).create_token_review(
        client.V1TokenReview(spec=client.V1TokenReviewSpec(token=token))
    )
    assert review.status.user.username == f"system:serviceaccount:{ns}:robot"
    asked = client.V1SubjectAccessReview(
        spec=client.V1SubjectAccessReviewSpec(
            user=review.status.user.username,
            resource_attributes=client.V1ResourceAttributes(namespace=ns, verb="get", resource="pods"),
        )
    )
    assert client.AuthorizationV1Api(api).create_subject_access_review(asked).status.allowed is False


@pytest.fixture(scope="module")
def gadgets(api: Any) -> str:
    schema = client.V1JSONSchemaProps(type="object", x_kubernetes_preserve_unknown_fields=True)
    version = client.V1CustomResourceDefinitionVersion(
        name="v1",
        served=True,
        storage=True,
        schema=client.V1CustomResourceValidation(open_apiv3_schema=schema),
        subresources=client.V1CustomResourceSubresources(status={}),
    )
    definition = client.V1CustomResourceDefinition(
        metadata=client.V1ObjectMeta(name=f"gadgets.{GROUP}"),
        spec=client.V1CustomResourceDefinitionSpec(
            group=GROUP,
            scope="Namespaced",
            names=client.V1CustomResourceDefinitionNames(plural="gadgets", singular="gadget", kind="Gadget"),
            versions=[version],
        ),
    )
    extensions = client.ApiextensionsV1Api(api)
    extensions.create_custom_resource_definition(definition)
    name = definition.metadata.name
    watching = watch.Watch()
    for event in watching.stream(
        extensions.list_custom_resource_definition, field_selector=f"metadata.name={name}", timeout_seconds=20
    ):
        conditions = event["object"].status.conditions or []
        if any(condition.type == "Established" and condition.status == "True" for condition in conditions):
            watching.stop()
    return GROUP


def test_custom_objects(api: Any, ns: str, gadgets: str) -> None:
    custom = client.CustomObjectsApi(api)
    where = (gadgets, "v1", ns, "gadgets")
    body = {"apiVersion": f"{gadgets}/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"size": 1}}
    custom.create_namespaced_custom_object(*where, body)
    assert custom.patch_namespaced_custom_object(*where, "g", {"spec": {"size": 2}})["spec"] == {"size": 2}
    status = custom.patch_namespaced_custom_object_status(*where, "g", {"status": {"phase": "Up"}})
    assert status["status"] == {"phase": "Up"}
    assert len(custom.list_namespaced_custom_object(*where)["items"]) == 1
    custom.delete_namespaced_custom_object(*where, "g")
    with pytest.raises(ApiException):
        custom.get_namespaced_custom_object(*where, "g")


def test_the_dynamic_client(api: Any, ns: str, gadgets: str, tmp_path: Path) -> None:
    found = dynamic.DynamicClient(api, cache_file=str(tmp_path / "discovery"))
    kind = found.resources.get(api_version=f"{gadgets}/v1", kind="Gadget")
    body = {"apiVersion": f"{gadgets}/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"size": 1}}
    made = kind.create(body=body, namespace=ns)
    assert made.spec.size == 1
    assert kind.get(name="g", namespace=ns).metadata.uid == made.metadata.uid
    applied = kind.server_side_apply(
        body={**body, "spec": {"size": 3}}, name="g", namespace=ns, field_manager="py", force_conflicts=True
    )
    assert applied.spec.size == 3
    merged = kind.patch(
        body={"spec": {"more": "x"}}, name="g", namespace=ns, content_type="application/merge-patch+json"
    )
    assert merged.spec.more == "x"
    first = next(iter(kind.watch(namespace=ns, timeout=5)))
    assert (first["type"], first["object"].metadata.name) == ("ADDED", "g")
    kind.delete(name="g", namespace=ns)
    assert kind.get(namespace=ns).items == []
    maps = found.resources.get(api_version="v1", kind="ConfigMap")
    maps.create(body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}}, namespace=ns)
    assert [item.metadata.name for item in maps.get(namespace=ns).items if item.metadata.name == "d"] == ["d"]
