"""Record what real helm gives for the charts of tests/conformance/chart/corpus.

    tools/helm/build && .venv/bin/python tools/record_charts.py [CHART...]

`merges` as an argument records values merged at random (merges.json). The quick tests compare with these answers, so
that they need no helm. Without arguments, everything is recorded.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from conformance.chart import judge, mergecase


def record_merges() -> None:
    answers: dict[str, Any] = {}
    for number in range(mergecase.COUNT):
        with tempfile.TemporaryDirectory() as folder:
            for path, content in mergecase.chart_files(number).items():
                file = Path(folder) / "parent" / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            given = (json.dumps(mergecase.case(number)["user"]),)
            case = judge.Case("parent", values=given, folder=Path(folder))
            for major in (3, 4):
                program = judge.helm(major)
                if isinstance(program, str):
                    raise SystemExit(program)
                found = judge.theirs(case, major, program)
                made = "refused" if isinstance(found, str) else {path: obj["data"]["v"] for path, _, obj in found}
                answers[f"{number}/helm{major}"] = made
    mergecase.RECORDED.write_text(json.dumps(answers, indent=1) + "\n")


def main(names: list[str]) -> None:
    if names in ([], ["merges"]):
        record_merges()
    if names == ["merges"]:
        return
    answers: dict[str, dict[str, Any]] = {}
    for case in judge.cases():
        if names and case.chart not in names:
            continue
        for major in case.majors:
            program = judge.helm(major)
            if isinstance(program, str):
                raise SystemExit(program)
            found = judge.theirs(case, major, program)
            made = "refused" if isinstance(found, str) else [[path, text] for path, text, _ in found]
            answers.setdefault(case.chart, {})[f"{case.name}/helm{major}"] = made
            sys.stderr.write(f"{case.chart}/{case.name}/helm{major}\n")
    judge.GOLDEN.mkdir(exist_ok=True)
    for chart, answer in answers.items():
        judge.golden_path(chart).write_text(json.dumps(answer, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
