#!/usr/bin/env python3
"""Write tests/unit/apiserver/kinds/answers: what a real kube-apiserver answers to the stories about built-in kinds.

    record_answers.py            all stories
    record_answers.py pods ...   these

Needs the programs that tools/kube/build makes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from realkube import RealKube  # noqa: E402
from unit.apiserver.kinds.kind_stories import STORIES  # noqa: E402
from unit.apiserver.kinds.kind_story import ANSWERS, Story, settled  # noqa: E402


def record(kube: RealKube, story: Story) -> list[object]:
    answers: list[object] = []
    for step in story():
        sent = {"Content-Type": step.content_type} if step.body is not None else {}
        code, raw = kube.request(step.path, step.method, step.body, **sent)
        answers.append(settled(code, json.loads(raw) if raw else {}))
    return answers


def main() -> int:
    wanted = sys.argv[1:] or list(STORIES)
    ANSWERS.mkdir(exist_ok=True)
    for name in wanted:
        # A server for each: a story must not find what another one left.
        with RealKube() as kube:
            answers = record(kube, STORIES[name])
        lines = ",\n".join(json.dumps(answer, sort_keys=True, ensure_ascii=False) for answer in answers)
        (ANSWERS / f"{name}.json").write_text(f"[\n{lines}\n]\n")
        print(f"{name}: {len(answers)} answers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
