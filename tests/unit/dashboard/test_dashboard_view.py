"""What pages get: rows of columns, lines of logs, and the files of the page itself."""

from __future__ import annotations

import pytest

from homeport.api.meta import Unstructured
from homeport.dashboard.column import MOST_TEXT, ColumnError, readers, row
from homeport.dashboard.page import HEADERS, load
from homeport.dashboard.topic.log import readable


def machine(name: str = "a", **status: object) -> Unstructured:
    return Unstructured(
        {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Machine",
            "metadata": {"name": name, "namespace": "default", "uid": f"u-{name}"},
            "spec": {"clusterName": "harbour", "version": "v1.30.0"},
            "status": status,
        }
    )


def test_a_row_has_identity_and_the_columns_that_were_asked_for() -> None:
    ready = {"type": "Ready", "status": "False", "reason": "NoImage", "message": "image x is missing"}
    found = row(
        machine(conditions=[ready]),
        readers([["spec", "clusterName"], ["status", "no", "such"], "@condition/Ready", "@version"]),
    )
    assert found == [
        "u-a",
        "default",
        "a",
        None,
        False,
        "harbour",
        None,
        ["False", "NoImage", "image x is missing"],
        "v1.30.0",
    ]


def test_long_texts_are_cut() -> None:
    found = row(machine(phase="x" * 10_000), readers([["status", "phase"]]))
    assert len(found[-1]) == MOST_TEXT


@pytest.mark.parametrize("columns", ["x", [1], [[]], [["a"] * 20], ["@nonsense"], [["a"]] * 100])
def test_columns_that_make_no_sense_are_refused(columns: object) -> None:
    with pytest.raises(ColumnError):
        readers(columns)


def test_the_page_is_packed_with_the_program() -> None:
    files = load()
    assert {"", "app.js", "app.css", "worker.js", "icon.svg"} <= set(files)
    assert len(files["app.js"].packed) <= 60 * 1024
    assert b"<script>" not in files[""].plain  # the policy allows none
    assert "'unsafe" not in HEADERS["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b]0;a new title\x07text", "text"),
        (b"\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\", "click"),
        (b"over\rwritten\x08\x00", "overwritten"),
        (b"<script>alert(1)</script>", "<script>alert(1)</script>"),
        (b"tab\tstays", "tab\tstays"),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_a_line_of_a_log_is_text_without_orders_to_a_terminal(line: bytes, shown: str) -> None:
    assert readable(line) == shown


def test_a_line_of_a_log_has_an_end() -> None:
    assert len(readable(b"x" * 10_000_000)) < 5_000


def test_the_style_sheet_is_whole() -> None:
    """A browser passes over what it can't read, without a word."""
    style = load()["app.css"].plain.decode()
    assert style.count("{") == style.count("}")
    assert not any(mark in style for mark in ("<<<<<<<", "=======", ">>>>>>>"))
