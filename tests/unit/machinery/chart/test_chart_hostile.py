"""Charts, archives and schemas that were made to harm: they end with a ChartError, in bounded time and memory."""

from __future__ import annotations

import io
import tarfile
from typing import Any

import orjson
import pytest

from homeport.machinery.chart import ChartError, ReleaseInfo, Rendered, crds_of, load_chart, render, unpack
from homeport.machinery.chart.schemacost import EndlessSchema, check_cost

CHART = b"apiVersion: v2\nname: bomb\nversion: 1.0.0\n"


def rendered(files: dict[str, bytes], values: dict[str, Any] | None = None) -> Rendered:
    return render(load_chart({"Chart.yaml": CHART, **files}), values or {}, ReleaseInfo("web", seed=b"secret"))


def archive(files: dict[str, bytes], pax: dict[str, str] | None = None) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        if pax is not None:
            info = tarfile.TarInfo("bomb/last")
            info.pax_headers = pax
            tar.addfile(info)
    return made.getvalue()


@pytest.mark.parametrize("pattern", ["*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", "**a**a**a**a**a**a**a**a**b"])
def test_a_pattern_of_file_names_takes_time_by_its_length_alone(pattern: str) -> None:
    made = rendered(
        {"a" * 200: b"x", "templates/t.yaml": f'{{{{ if .Files.Glob "{pattern}" }}}}no{{{{ end }}}}'.encode()}
    )
    assert made.manifests == ()


def test_a_layout_of_a_time_takes_time_by_its_length_alone() -> None:
    text = '{{ if (toDate (repeat 45 "5") (print (repeat 60 "1") "x")).IsZero }}{{ end }}'
    assert rendered({"templates/t.yaml": text.encode()}).manifests == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{{ range until 50 }}{{ derivePassword 1 "long" "p" "u" "s" }}{{ end }}', "at most 10 hashes of passwords"),
        ('{{ tpl .Values.t . }}', r"^text of tpl in bomb/templates/t\.yaml, line 1, line 1: "),
    ],
)  # fmt: skip
def test_a_template_is_stopped_with_a_short_message(text: str, message: str) -> None:
    with pytest.raises(ChartError, match=message) as caught:
        rendered({"templates/t.yaml": text.encode()}, {"t": "{{ tpl .Values.t . }}"})
    assert len(str(caught.value)) < 300


def test_values_that_are_nested_without_end_are_refused() -> None:
    values: dict[str, Any] = {}
    for _ in range(3000):
        values = {"a": values}
    with pytest.raises(ChartError, match="nested too deeply"):
        rendered({}, values)


def test_import_values_with_an_endless_path_are_refused() -> None:
    entry = b"dependencies: [{name: c, version: 1.0.0, import-values: [{child: x, parent: " + b"a." * 9000 + b"a}]}]\n"
    child = {"charts/c/Chart.yaml": CHART.replace(b"bomb", b"c"), "charts/c/values.yaml": b"x: {y: 1}"}
    with pytest.raises(ChartError, match="nested too deeply"):
        rendered({"Chart.yaml": CHART + entry, **child})


def test_aliases_of_charts_that_have_aliases_do_not_multiply_without_end() -> None:
    files: dict[str, bytes] = {}
    for depth in range(15):
        name, below = b"c%d" % depth, b"c%d" % (depth + 1)
        aliases = b"".join(b"- {name: %s, version: 1.0.0, alias: x%d}\n" % (below, i) for i in range(3))
        own = CHART.replace(b"bomb", name) + (b"dependencies:\n" + aliases if depth < 14 else b"")
        files["".join(f"charts/c{i}/" for i in range(1, depth + 1)) + "Chart.yaml"] = own
    with pytest.raises(ChartError, match="more than 1000 charts"):
        render(load_chart(files), {}, ReleaseInfo("web"))
    with pytest.raises(ChartError, match="more than 1000 charts"):
        crds_of(load_chart(files), {})


@pytest.mark.parametrize("path", ["values.yaml", "templates/t.yaml"])
@pytest.mark.parametrize("number", [b"0x" + b"f" * 5000, b"9" * 5000])
def test_a_number_with_thousands_of_digits_is_refused_in_words(path: str, number: bytes) -> None:
    with pytest.raises(ChartError, match="digits is too large"):
        rendered({path: b"a: " + number})


def test_a_weight_of_a_hook_beyond_64_bits_counts_as_none() -> None:
    text = 'metadata: {name: a, annotations: {helm.sh/hook: pre-install, helm.sh/hook-weight: "%s"}}' % ("9" * 5000)
    (hook,) = rendered({"templates/t.yaml": f"apiVersion: v1\nkind: Pod\n{text}\n".encode()}).hooks
    assert hook.weight == 0


def test_definitions_of_one_file_share_its_text() -> None:
    content = b"---\napiVersion: v1\nkind: A\nmetadata: {name: a}\n" * 50
    texts = [each.text for each in rendered({"crds/all.yaml": content}).crds]
    assert len(texts) == 50
    assert len({id(text) for text in texts}) == 1


def test_a_message_that_repeats_the_chart_is_cut() -> None:
    with pytest.raises(ChartError, match="version") as caught:
        load_chart({"Chart.yaml": b"apiVersion: v2\nname: a\nversion: " + b"1." * 100_000})
    assert len(str(caught.value)) == 4000


# -- archives ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pax",
    [
        {"GNU.sparse.map": "0,x", "GNU.sparse.size": "9999"},
        {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "abc"},
        {"size": "99999999999"},
    ],
)
def test_a_header_of_an_archive_that_lies_is_refused_in_words(pax: dict[str, str]) -> None:
    with pytest.raises(ChartError, match="chart archive: "):
        unpack(archive({"bomb/Chart.yaml": CHART}, pax))


def test_a_file_name_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(ChartError, match=r"templates/.*is not UTF-8: rename it"):
        load_chart(unpack(archive({"bomb/Chart.yaml": CHART, "bomb/templates/\udcff.yaml": b""})))


def test_archives_inside_of_an_archive_unpack_to_a_bounded_size_together() -> None:
    zeros = {f"s/{i}": bytes(4 << 20) for i in range(10)}
    inner = archive({"s/Chart.yaml": CHART, **zeros})
    whole = {"bomb/Chart.yaml": CHART, **{f"bomb/charts/s{i}.tgz": inner for i in range(4)}}
    with pytest.raises(ChartError, match=r"charts/s2\.tgz: .*larger than"):
        load_chart(unpack(archive(whole)))


# -- schemas -----------------------------------------------------------------------------------------------------------


def doubling(levels: int, **more: Any) -> dict[str, Any]:
    parts = {f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(levels)}
    return {**more, "$ref": "#/$defs/a0", "$defs": {**parts, f"a{levels}": {}}}


@pytest.mark.parametrize(
    "schema",
    [
        doubling(60),
        {"$ref": "urn:x:bomb", "$defs": {"b": doubling(60, **{"$id": "urn:x:bomb"})}},
        {"$ref": "other.json", "$defs": {"b": doubling(60, **{"$id": "other.json"})}},
        {"$id": "https://example.com/s.json", **doubling(60)},
        {"$ref": "#n", "$defs": {"n": {"$anchor": "n", "anyOf": [{"$ref": "#n"}]}}},
        {"$dynamicRef": "#n", "$defs": {"n": {"$dynamicAnchor": "n", "not": {"$dynamicRef": "#n"}}}},
        {"$ref": "#"},
        {"additionalProperties": {"oneOf": [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}]}},
        {"properties": {"list": {"items": doubling(60)}}, "$defs": doubling(60)["$defs"]},
    ],
)
def test_a_schema_that_multiplies_its_work_is_refused(schema: dict[str, Any]) -> None:
    deep: dict[str, Any] = {}
    for _ in range(40):
        deep = {"a": deep}
    with pytest.raises(EndlessSchema, match="more than 300000 steps"):
        check_cost(schema, {"deep": deep, "list": [1]})


def test_a_schema_that_multiplies_its_work_names_the_chart() -> None:
    with pytest.raises(ChartError, match=r"^bomb/values\.schema\.json: checking the values takes more than"):
        rendered({"values.schema.json": orjson.dumps(doubling(60))})


def test_a_schema_may_refer_to_itself_and_is_followed_as_deep_as_the_values_are() -> None:
    tree = {"type": "object", "properties": {"below": {"$ref": "#/$defs/tree"}}, "additionalProperties": False}
    schema = orjson.dumps({"$ref": "#/$defs/tree", "$defs": {"tree": tree}})
    assert rendered({"values.schema.json": schema}, {"below": {"below": {}}}).manifests == ()
    with pytest.raises(ChartError, match=r"values\.below\.below: "):
        rendered({"values.schema.json": schema}, {"below": {"below": {"wrong": 1}}})


@pytest.mark.parametrize("address", ["https://127.0.0.1:1/x.json", "http://localhost/x", "file:///etc/passwd"])
def test_a_schema_elsewhere_is_never_fetched(address: str) -> None:
    with pytest.raises(ChartError, match=r"only references inside of values\.schema\.json work"):
        rendered({"values.schema.json": orjson.dumps({"$ref": address})})


# -- the world outside -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ['env "HOME"', 'expandenv "$HOME"'])
def test_templates_do_not_see_the_environment_of_the_plane(call: str) -> None:
    with pytest.raises(ChartError, match="it reads the environment"):
        rendered({"templates/t.yaml": f"{{{{ {call} }}}}".encode()})


def test_templates_resolve_no_names_and_read_no_files_outside() -> None:
    paths = ("/etc/passwd", "../../etc/passwd", "../Chart.yaml", "templates/t.yaml", "values.yaml", "Chart.yaml")
    text = "".join(f'{{{{ .Files.Get "{path}" }}}}' for path in paths)
    made = rendered({"templates/t.yaml": f'{{{{ getHostByName "example.com" }}}}{text}'.encode()})
    assert made.manifests == ()
