"""Time to render charts: in this process, and with `helm template`, side by side in one run.

    python bench/chart.py [FOLDER]

Without a folder, charts are written for the purpose, with 10, 100 and 1000 objects; otherwise those of the folder are
rendered. helm is started for each rendering, as its users do. Build it with tools/helm/build.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests")]

from conformance.chart import judge  # noqa: E402
from conformance.chart.judge import Case  # noqa: E402

ROUNDS = 5
OBJECT = """{{- range $i := until (int .Values.count) }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "name" $ }}-{{ $i }}
  labels: {{- include "labels" $ | nindent 4 }}
spec:
  replicas: {{ $.Values.replicas }}
  selector: {matchLabels: {app: {{ include "name" $ | quote }}}}
  template:
    metadata:
      labels: {{- include "labels" $ | nindent 8 }}
    spec:
      {{- with $.Values.affinity }}
      affinity: {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: main
          image: "{{ $.Values.image.name }}:{{ $.Values.image.tag | default $.Chart.AppVersion }}"
          resources: {{- toYaml $.Values.resources | nindent 12 }}
          env: {{- tpl (toYaml $.Values.env) $ | nindent 12 }}
{{- end }}
"""
HELPERS = """{{- define "name" }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- define "labels" }}
app: {{ include "name" . }}
chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}
"""
VALUES = """count: COUNT
replicas: 2
image: {name: registry.example/app, tag: ""}
resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone}}]
env: [{name: RELEASE, value: "{{ .Release.Name }}"}, {name: SPACE, value: "{{ .Release.Namespace }}"}]
"""


def write_chart(folder: Path, count: int) -> Path:
    chart = folder / f"objects-{count}"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text(f"apiVersion: v2\nname: {chart.name}\nversion: 1.0.0\nappVersion: '1'\n")
    (chart / "values.yaml").write_text(VALUES.replace("COUNT", str(count)))
    (chart / "templates" / "_helpers.tpl").write_text(HELPERS)
    (chart / "templates" / "objects.yaml").write_text(OBJECT)
    return chart


def milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def measure(chart: Path, programs: dict[int, Path]) -> None:
    case = Case(chart.name, folder=chart.parent)
    found = judge.ours(case, 4)
    if isinstance(found, str):
        print(f"| {chart.name} | refused: {found.splitlines()[0][:80]} |")
        return
    cells = [f"{min(milliseconds(lambda: judge.ours(case, 4)) for _ in range(ROUNDS)):.0f}"]
    for major, program in programs.items():
        times = [_helm(case, major, program) for _ in range(ROUNDS)]
        cells.append(f"{min(times):.0f}")
    print(f"| {chart.name} | {len(found)} | {' | '.join(cells)} |")


def _helm(case: Case, major: int, program: Path) -> float:
    return milliseconds(lambda: judge.theirs(case, major, program))


def main(folder: str | None) -> None:
    programs = {major: found for major in (3, 4) if isinstance(found := judge.helm(major), Path)}
    for major in (3, 4):
        if major not in programs:
            print(judge.helm(major))
    print(f"best of {ROUNDS}, in ms\n")
    print("| chart | objects | Homeport |", " | ".join(f"helm {judge.VERSIONS[major]}" for major in programs), "|")
    print("|---|---:|---:|" + "---:|" * len(programs))
    with tempfile.TemporaryDirectory() as made:
        if folder:
            charts = sorted(path.parent for path in Path(folder).resolve().glob("*/Chart.yaml"))
        else:
            charts = [write_chart(Path(made), count) for count in (10, 100, 1000)]
        for chart in charts:
            measure(chart, programs)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
