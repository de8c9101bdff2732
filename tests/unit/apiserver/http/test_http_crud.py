from __future__ import annotations

from unit.apiserver.http.http_serving import CONFIG_MAPS, WIDGETS, Api, config_map, widget

MERGE = "application/merge-patch+json"


async def test_an_object_is_created_read_changed_and_deleted(api: Api) -> None:
    made = await api.post(WIDGETS, widget("a", color="red"))
    assert made.status == 201, made.body
    assert made.json["metadata"]["uid"]
    got = await api.get(f"{WIDGETS}/a")
    assert (got.status, got.json) == (200, made.json)
    changed = await api.call("PATCH", f"{WIDGETS}/a", {"spec": {"color": "blue"}}, content_type=MERGE)
    assert changed.json["spec"]["color"] == "blue"
    put = await api.call("PUT", f"{WIDGETS}/a", {**changed.json, "spec": {"color": "green"}})
    assert put.json["spec"] == {"color": "green"}
    gone = await api.call("DELETE", f"{WIDGETS}/a")
    assert (gone.status, gone.json["status"]) == (200, "Success")
    missing = await api.get(f"{WIDGETS}/a")
    assert (missing.status, missing.message) == (404, 'widgets.example.com "a" not found')


async def test_every_answer_carries_an_audit_id_and_may_not_be_cached(api: Api) -> None:
    got = await api.get(CONFIG_MAPS)
    assert got.headers["Cache-Control"] == "no-cache, private"
    assert len(got.headers["Audit-Id"]) == 36
    chosen = await api.get(CONFIG_MAPS, headers={"Audit-ID": "mine-1"})
    assert chosen.headers["Audit-Id"] == "mine-1"


async def test_a_list_is_joined_from_its_items(api: Api) -> None:
    for name in ("a", "b", "c"):
        await api.post(CONFIG_MAPS, config_map(name, key=name))
    page = await api.get(f"{CONFIG_MAPS}?limit=2")
    assert page.json["kind"] == "ConfigMapList"
    assert page.json["apiVersion"] == "v1"
    assert [item["metadata"]["name"] for item in page.json["items"]] == ["a", "b"]
    assert page.json["metadata"]["remainingItemCount"] == 1
    rest = await api.get(f"{CONFIG_MAPS}?limit=2&continue={page.json['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in rest.json["items"]] == ["c"]
    assert "continue" not in rest.json["metadata"]


async def test_an_apply_creates_and_then_updates(api: Api) -> None:
    path = f"{WIDGETS}/a?fieldManager=me"
    made = await api.call(
        "PATCH",
        path,
        b"apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {color: red}\n",
        content_type="application/apply-patch+yaml",
    )
    assert made.status == 201, made.body
    again = await api.call("PATCH", path, widget("a", color="blue"), content_type="application/apply-patch+yaml")
    assert (again.status, again.json["spec"]["color"]) == (200, "blue")
    assert [entry["manager"] for entry in again.json["metadata"]["managedFields"]] == ["me"]


async def test_an_apply_without_a_field_manager_is_refused(api: Api) -> None:
    refused = await api.call("PATCH", f"{WIDGETS}/a", widget("a"), content_type="application/apply-patch+yaml")
    assert refused.status == 422
    assert refused.message.endswith("fieldManager: Required value: is required for apply patch")


async def test_a_dry_run_is_not_kept(api: Api) -> None:
    made = await api.post(f"{CONFIG_MAPS}?dryRun=All", config_map("a"))
    assert made.status == 201
    assert (await api.get(f"{CONFIG_MAPS}/a")).status == 404
    refused = await api.post(f"{CONFIG_MAPS}?dryRun=Some", config_map("a"))
    assert refused.message == (
        'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"'
    )


async def test_scale_is_read_and_written_through_its_subresource(api: Api) -> None:
    await api.post(WIDGETS, widget("a", replicas=1))
    scale = await api.get(f"{WIDGETS}/a/scale")
    assert scale.json["kind"] == "Scale"
    written = await api.call("PUT", f"{WIDGETS}/a/scale", {**scale.json, "spec": {"replicas": 3}})
    assert written.status == 200, written.body
    assert (await api.get(f"{WIDGETS}/a")).json["spec"]["replicas"] == 3


async def test_deleting_a_collection_answers_with_what_was_in_it(api: Api) -> None:
    for name in ("a", "b"):
        await api.post(CONFIG_MAPS, config_map(name))
    gone = await api.call("DELETE", CONFIG_MAPS)
    assert [item["metadata"]["name"] for item in gone.json["items"]] == ["a", "b"]
    assert (await api.get(CONFIG_MAPS)).json["items"] == []


async def test_delete_options_come_from_the_body_or_the_query(api: Api) -> None:
    made = await api.post(CONFIG_MAPS, config_map("a"))
    wrong = await api.call("DELETE", f"{CONFIG_MAPS}/a", {"preconditions": {"uid": "other"}})
    assert wrong.status == 409
    both = await api.call("DELETE", f"{CONFIG_MAPS}/a", {"orphanDependents": True, "propagationPolicy": "Orphan"})
    assert both.status == 422
    bad = await api.call("DELETE", f"{CONFIG_MAPS}/a?propagationPolicy=Bad")
    assert bad.message == (
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Bad": supported values: '
        '"Foreground", "Background", "Orphan", "nil"'
    )
    right = await api.call("DELETE", f"{CONFIG_MAPS}/a", {"preconditions": {"uid": made.json["metadata"]["uid"]}})
    assert right.status == 200
