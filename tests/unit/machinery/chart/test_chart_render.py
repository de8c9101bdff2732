"""Charts rendered from files: values, dependencies, templates, hooks."""

from __future__ import annotations

import gzip
import io
import tarfile
from typing import Any

import pytest

from homeport.machinery.chart import Capabilities, ChartError, ReleaseInfo, Rendered, load_chart, render, unpack

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: made\ndata:\n"
OLD = Capabilities(helm_version="v3.22.0")


def chart_files(name: str = "demo", more: str = "", **files: str) -> dict[str, bytes]:
    """Files by their paths, in which __ is a slash and _DOT_ a dot."""
    made = {"Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: 1.2.3\n{more}".encode()}
    for path, text in files.items():
        made[path.replace("__", "/").replace("_DOT_", ".")] = text.encode()
    return made


def below(folder: str, files: dict[str, bytes]) -> dict[str, bytes]:
    return {f"charts/{folder}/{path}": content for path, content in files.items()}


def rendered(
    files: dict[str, bytes], values: dict[str, Any] | None = None, capabilities: Capabilities | None = None
) -> Rendered:
    return render(load_chart(files), values or {}, ReleaseInfo("web", "shop"), capabilities)


def data(template: str, values: str = "", given: dict[str, Any] | None = None, **more: str) -> dict[str, Any]:
    """The data of a ConfigMap whose lines are the template."""
    files = chart_files(values_DOT_yaml=values, templates__made_DOT_yaml=CONFIG + template, **more)
    made: dict[str, Any] = rendered(files, given).manifests[0].object["data"]
    return made


def packed(files: dict[str, bytes], top: str = "demo/") -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb") as plain, tarfile.open(fileobj=plain, mode="w") as tar:
        for path, content in files.items():
            member = tarfile.TarInfo(top + path)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def test_numbers_of_values_look_as_helm_shows_them() -> None:
    made = data("  a: {{ .Values.count | quote }}\n  b: {{ toYaml .Values.count | quote }}\n", "count: 10000000")
    assert made == {"a": "1e+07", "b": "10000000"}


def test_a_null_of_the_user_removes_a_default() -> None:
    made = data("  a: {{ toJson .Values.map | quote }}\n", "map: {x: 1, z: 2}", {"map": {"x": None}})
    assert made == {"a": '{"z":2}'}


def test_a_subchart_sees_its_own_values_and_the_globals() -> None:
    child = chart_files(
        "child", values_DOT_yaml="a: 1\nb: 2", templates__c_DOT_yaml=CONFIG + "  v: {{ toJson .Values | quote }}"
    )
    parent = chart_files(values_DOT_yaml="child: {b: 3}\nglobal: {g: x}")
    made = rendered({**parent, **below("child", child)})
    assert made.manifests[0].source == "demo/charts/child/templates/c.yaml"
    assert made.manifests[0].object["data"]["v"] == '{"a":1,"b":3,"global":{"g":"x"}}'


def test_conditions_and_tags_disable_dependencies() -> None:
    child = chart_files("child", templates__c_DOT_yaml=CONFIG + "  v: {{ .Chart.Name }}")
    needs = "dependencies:\n- {name: child, version: '*', condition: child.enabled, tags: [back]}\n"
    files = {**chart_files(more=needs), **below("child", child)}
    assert len(rendered(files).manifests) == 1
    assert not rendered(files, {"child": {"enabled": False}}).manifests
    assert not rendered(files, {"tags": {"back": False}}).manifests
    assert rendered(files, {"tags": {"back": False}, "child": {"enabled": True}}).manifests


def test_a_dependency_under_two_aliases_is_rendered_twice() -> None:
    child = chart_files(
        "child", templates__c_DOT_yaml=CONFIG + "  v: {{ .Chart.Name }}-{{ .Values.x }}", values_DOT_yaml="x: a"
    )
    needs = "dependencies:\n- {name: child, version: 1.x, alias: one}\n- {name: child, version: '>=1', alias: two}\n"
    files = {**chart_files(more=needs, values_DOT_yaml="two: {x: b}"), **below("child", child)}
    made = [each.object["data"]["v"] for each in rendered(files).manifests]
    assert made == ["one-a", "two-b"]


def test_values_are_imported_from_a_dependency() -> None:
    child = chart_files("child", values_DOT_yaml="exports: {shared: {port: 1}}\nown: {deep: {x: z}}")
    needs = "dependencies:\n- {name: child, version: '*', import-values: [shared, {child: own.deep, parent: taken}]}\n"
    files = chart_files(more=needs, templates__t_DOT_yaml=CONFIG + "  v: {{ .Values.port }}{{ .Values.taken.x }}")
    assert rendered({**files, **below("child", child)}).manifests[0].object["data"]["v"] == "1z"


def test_a_parent_overrides_the_definitions_of_its_subchart() -> None:
    child = chart_files(
        "child",
        templates___h_DOT_tpl='{{ define "n" }}child{{ end }}',
        templates__c_DOT_yaml=CONFIG + '  v: {{ include "n" . }}',
    )
    parent = chart_files(templates___h_DOT_tpl='{{ define "n" }}parent{{ end }}')
    assert rendered({**parent, **below("child", child)}).manifests[0].object["data"]["v"] == "parent"


def test_definitions_of_a_tpl_text_are_known_inside_of_it_only() -> None:
    files = chart_files(
        templates___h_DOT_tpl='{{ define "outer" }}{{ include "inner" . }}{{ end }}{{ define "inner" }}file{{ end }}',
        templates__t_DOT_yaml=CONFIG
        + '  a: {{ tpl `{{ define "inner" }}text{{ end }}{{ include "outer" . }}` . }}\n  b: {{ include "outer" . }}',
    )
    assert rendered(files).manifests[0].object["data"] == {"a": "text", "b": "file"}


def test_a_missing_value_is_empty_and_a_field_of_it_is_an_error() -> None:
    assert data("  a: x{{ .Values.none }}y{{ (.Values.none).more }}\n") == {"a": "xy"}
    with pytest.raises(ChartError, match=r"demo/templates/made\.yaml, line 6: .*'more'"):
        data("  a: {{ .Values.none.more }}\n")


def test_an_error_names_the_file_and_line_of_the_innermost_template() -> None:
    helper = '\n{{ define "h" }}\n{{ fail "no luck" }}{{ end }}'
    with pytest.raises(
        ChartError, match=r"demo/templates/_h\.tpl, line 3: .*no luck \(rendering demo/templates/made\.yaml\)"
    ):
        data('  a: {{ include "h" . }}\n', templates___h_DOT_tpl=helper)


def test_required_names_what_is_missing() -> None:
    with pytest.raises(ChartError, match="set the host"):
        data('  a: {{ required "set the host" .Values.host }}\n')


def test_a_template_that_calls_itself_ends_with_an_error() -> None:
    with pytest.raises(ChartError, match=r"nested too deeply|include each other"):
        data('  a: {{ include "h" . }}\n', templates___h_DOT_tpl='{{ define "h" }}{{ include "h" . }}{{ end }}')


def test_hooks_are_set_apart_with_weights_and_policies() -> None:
    hook = (
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: j\n  annotations:\n    helm.sh/hook: pre-install, Post-Upgrade\n"
        "    helm.sh/hook-weight: '-5'\n    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded\n"
    )
    unknown = hook.replace("pre-install, Post-Upgrade", "crd-install")
    made = rendered(chart_files(templates__a_DOT_yaml=f"{hook}---\n{unknown}---\n{CONFIG}  a: b\n"))
    assert [each.object["kind"] for each in made.manifests] == ["ConfigMap"]
    assert [(each.events, each.weight, each.delete_policies) for each in made.hooks] == [
        (("pre-install", "post-upgrade"), -5, ("before-hook-creation", "hook-succeeded"))
    ]


def test_objects_come_in_the_order_of_installation() -> None:
    kinds = ["Widget", "Deployment", "Service", "Namespace", "APIService", "Alpha", "Secret"]
    text = "---\n".join(f"apiVersion: v1\nkind: {kind}\nmetadata:\n  name: x\n" for kind in kinds)
    made = rendered(chart_files(templates__a_DOT_yaml=text))
    assert [each.object["kind"] for each in made.manifests] == [
        "Namespace", "Secret", "Service", "Deployment", "APIService", "Alpha", "Widget",
    ]  # fmt: skip


def test_notes_of_subcharts_are_left_out_unless_asked_for() -> None:
    child = chart_files("child", templates__NOTES_DOT_txt="child of {{ .Release.Name }}")
    files = {**chart_files(templates__NOTES_DOT_txt="hello {{ .Release.Name }}"), **below("child", child)}
    assert rendered(files).notes == "hello web"
    whole = render(load_chart(files), {}, ReleaseInfo("web"), subchart_notes=True)
    assert whole.notes == "child of web\nhello web"


def test_a_library_chart_gives_definitions_only() -> None:
    library = chart_files(
        "lib",
        "type: library\n",
        templates___h_DOT_tpl='{{ define "n" }}lib{{ end }}',
        templates__x_DOT_yaml="{{ fail `no` }}",
    )
    files = {**chart_files(templates__t_DOT_yaml=CONFIG + '  v: {{ include "n" . }}'), **below("lib", library)}
    assert rendered(files).manifests[0].object["data"]["v"] == "lib"
    with pytest.raises(ChartError, match="library"):
        rendered(library)


def test_crds_are_not_rendered() -> None:
    crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: '{{ x }}'\n"
    made = rendered(chart_files(crds__a_DOT_yaml=crd))
    assert [each.object["metadata"]["name"] for each in made.crds] == ["{{ x }}"]
    assert not made.manifests


def test_values_are_checked_with_the_schemas_of_chart_and_subcharts() -> None:
    schema = '{"properties": {"port": {"type": "integer"}}, "required": ["port"]}'
    child = chart_files("child", values_DOT_schema_DOT_json=schema)
    files = {**chart_files(values_DOT_schema_DOT_json=schema), **below("child", child)}
    assert rendered(files, {"port": 1, "child": {"port": 2}}).values["port"] == 1
    with pytest.raises(ChartError, match=r"demo: values.port.*\n.*demo/charts/child: values\.\(all\): .*port"):
        rendered(files, {"port": "x"})


def test_an_archive_inside_of_an_archive_is_a_subchart() -> None:
    child = packed(chart_files("child", templates__c_DOT_yaml=CONFIG + "  v: x"), "child/")
    files = unpack(packed({**chart_files(), "charts/child-1.2.3.tgz": child}))
    assert len(rendered(files).manifests) == 1


@pytest.mark.parametrize("path", ["../x", "demo/../../x", "/etc/x"])
def test_an_archive_does_not_lead_outside(path: str) -> None:
    with pytest.raises(ChartError, match=r"outside|absolute"):
        unpack(packed({path: b"x"}, top="" if path.startswith("demo") else "demo/"))


def test_an_archive_that_unpacks_into_too_much_is_refused() -> None:
    with pytest.raises(ChartError, match="larger than"):
        unpack(packed({"large": bytes(6 << 20)}))
    with pytest.raises(ChartError, match="larger than"):
        unpack(packed({f"part{i}": bytes(4 << 20) for i in range(27)}))


def test_lookup_gets_what_the_template_asks_for() -> None:
    asked: list[tuple[str, ...]] = []

    def look(*of: str) -> dict[str, Any]:
        asked.append(of)
        return {"data": {"a": "kept"}}

    files = chart_files(
        templates__t_DOT_yaml=CONFIG + '  v: {{ (lookup "v1" "Secret" .Release.Namespace "s").data.a }}'
    )
    made = render(load_chart(files), {}, ReleaseInfo("web", "shop"), lookup=look)
    assert made.manifests[0].object["data"]["v"] == "kept"
    assert asked == [("v1", "Secret", "shop", "s")]


def test_nulls_of_defaults_differ_between_helm_3_and_4() -> None:
    files = chart_files(
        values_DOT_yaml="a: {b: null}\nc: null", templates__t_DOT_yaml=CONFIG + "  v: {{ toJson .Values | quote }}"
    )
    assert rendered(files, capabilities=OLD).manifests[0].object["data"]["v"] == '{"a":{"b":null},"c":null}'
    assert rendered(files).manifests[0].object["data"]["v"] == '{"a":{}}'


@pytest.mark.parametrize("capabilities", [OLD, Capabilities()])
def test_a_block_at_the_end_of_an_object_keeps_its_line_break(capabilities: Capabilities) -> None:
    made = rendered(chart_files(templates__t_DOT_yaml=CONFIG + "  a: |\n    text"), capabilities=capabilities)
    assert made.manifests[0].object["data"]["a"] == "text\n"


def test_numbers_where_helm_expects_a_string_are_taken_as_text() -> None:
    files = chart_files(more="appVersion: 1.5\n", templates__t_DOT_yaml=CONFIG + "  a: x{{ .Chart.AppVersion }}")
    assert rendered(files).manifests[0].object["data"]["a"] == "x1.5"


def test_whole_numbers_that_are_looked_up_are_int64() -> None:
    template = CONFIG + '  v: {{ typeOf (lookup "v1" "X" "" "x").spec.replicas }}'
    made = render(
        load_chart(chart_files(templates__t_DOT_yaml=template)),
        {},
        ReleaseInfo("web"),
        lookup=lambda *_: {"spec": {"replicas": 3}},
    )
    assert made.manifests[0].object["data"]["v"] == "int64"
