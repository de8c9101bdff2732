"""One suite, three servers, and a fourth on demand. HOMEPORT_CONFORMANCE=local,http,real,workload picks some of them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from conformance.client import api as api_module
from conformance.client.api import Api, install, normal_for, short
from conformance.client.golden import Golden
from conformance.client.server import Server, start
from conformance.client.widget import widget_crd
from homeport.api.meta import Resource
from realkube import find_binaries

HERE = Path(__file__).parent
ALL = ("local", "http", "real")
# In a workload cluster controllers and a kubelet are at work: what these look at is changed while they look.
LIVELY = frozenset(
    {
        "test_nested_lists_of_a_deployment",
        "test_what_may_not_change_later",
        # These see `kube-root-ca.crt` come, namespaces end and garbage go, if the controllers are quicker than the test.
        "test_a_limit_with_a_version_reads_the_store",
        "test_a_list_has_items_in_order_of_their_names",
        "test_a_namespace_is_finalized_by_its_subresource",
        "test_a_namespace_waits_for_its_contents",
        "test_a_watch_ends_when_its_time_has_passed",
        "test_a_watch_from_nowhere_begins_with_what_is_there",
        "test_all_namespaces_are_listed_together",
        "test_all_namespaces_at_once",
        "test_an_aborted_watch_leaves_the_client_usable",
        "test_an_empty_list_still_has_a_version",
        "test_an_exact_version_is_read_exactly",
        "test_delete_options_in_the_query",
        "test_deleting_what_is_not_there_with_preconditions",
        "test_field_selectors_select",
        "test_initial_events_end_with_a_bookmark",
        "test_label_selectors_select",
        "test_metadata_alone",
        "test_of_a_type_without_content_only_the_metadata_is_asked_for",
        "test_pages_are_of_one_moment",
        "test_the_last_page_has_no_continuation_when_the_count_fits",
        "test_the_ways_to_begin_a_watch",
        "test_version_zero_takes_what_is_at_hand",
        "test_kinds_that_answer_with_the_object",
        "test_propagation_leaves_its_finalizer",
        "test_a_pod_on_a_node_is_given_time",
        "test_a_pod_without_a_node_goes_at_once",
        "test_a_pod_that_has_ended_goes_at_once",
        "test_pods_are_selected_by_node_and_phase",
        "test_a_strategic_patch_merges_lists_by_key",
        "test_the_status_of_built_in_kinds",
        "test_a_pod_that_never_ran_is_gone_at_once",
        "test_tables_for_people",
        "test_a_deployment_is_scaled",
        "test_what_a_scale_may_say",
    }
)
RECORD = os.environ.get("HOMEPORT_RECORD") == "1"


def chosen() -> tuple[str, ...]:
    if RECORD:
        return ("real",)
    return tuple(os.environ.get("HOMEPORT_CONFORMANCE", ",".join(ALL)).split(","))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.conformance)
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            server = getattr(item, "callspec", None)
            if server is not None and "server" in server.params:
                # Under --dist loadgroup each server runs once, in one worker.
                item.add_marker(pytest.mark.xdist_group(f"conformance-{server.params['server']}"))


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=chosen())
async def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    if request.param == "real":
        found = find_binaries()
        if isinstance(found, str):
            pytest.skip(found)
    async with start(request.param, tmp_path_factory.mktemp(request.param)) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def client(server: Server) -> AsyncIterator[Any]:
    made = server.client()
    yield made
    await made.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def widgets(client: Any) -> Resource:
    """A CRD with a bit of everything, in a group of this module alone."""
    return await install(client, widget_crd(f"w{short()}.example.com"))


@pytest_asyncio.fixture(loop_scope="session")
async def api(request: pytest.FixtureRequest, server: Server, client: Any) -> AsyncIterator[Api]:
    if server.name == "workload" and request.node.originalname in LIVELY:
        pytest.skip("in a workload cluster others work on the same objects")
    ns = f"t-{short()}"
    await client.create({"metadata": {"name": ns}}, kind=api_module.NAMESPACES)
    client.warnings.texts.clear()
    group = request.getfixturevalue("widgets").group if "widgets" in request.fixturenames else ""
    module = request.path.stem.removeprefix("test_")
    golden = Golden(module, request.node.originalname, normal_for(ns, group), record=RECORD)
    made = Api(server, client, ns, golden)
    yield made
    await made.close()
    if not request.node.stash.get(FAILED, False):
        golden.save()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Any:
    made = pyfuncitem.funcargs.get("api")
    try:
        result = yield
    except Exception as error:
        if isinstance(made, Api) and made.golden.verdict():
            error.add_note(made.golden.verdict())
        raise
    if isinstance(made, Api) and made.golden.verdict():
        pytest.fail(made.golden.verdict(), pytrace=False)
    return result


FAILED: pytest.StashKey[bool] = pytest.StashKey()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report
