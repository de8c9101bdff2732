from __future__ import annotations

import random

import pytest

from homeport.sim.engine.progress import AT_ONCE, NEVER, Progress, parse_progress
from homeport.sim.prism.pace import REAL, parse_speed


def test_progress_is_at_once_after_reads_after_time_or_never() -> None:
    rng = random.Random(1)
    assert AT_ONCE.start(5, rng).done(5)
    reads = Progress(reads=2).start(0, rng)
    assert not reads.read().done(99)
    assert reads.read().read().done(0)
    timed = Progress(seconds=10, jitter=0.5).start(0, rng)
    assert not timed.done(4.9)
    assert timed.done(15)
    assert not NEVER.start(0, rng).done(1e12)


def test_jitter_stays_within_its_share_and_follows_the_seed() -> None:
    dues = [Progress(seconds=10, jitter=0.3).start(0, random.Random(seed)).due or 0 for seed in range(100)]
    assert all(7 <= due <= 13 for due in dues)
    assert len(set(dues)) > 90
    assert dues == [Progress(seconds=10, jitter=0.3).start(0, random.Random(seed)).due for seed in range(100)]


@pytest.mark.parametrize(
    ("text", "progress"),
    [
        ("instant", AT_ONCE),
        ("never", NEVER),
        ("reads:3", Progress(reads=3)),
        ("2s", Progress(seconds=2)),
        ("1.5s~30%", Progress(seconds=1.5, jitter=0.3)),
    ],
)
def test_progress_is_written_as_text(text: str, progress: Progress) -> None:
    assert parse_progress(text) == progress


@pytest.mark.parametrize("text", ["", "soon", "reads:x", "x0", "-1s", "2s~300%"])
def test_an_invalid_speed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a valid speed|jitter"):
        parse_speed(text)


def test_a_speed_may_be_a_multiple_of_the_real_one() -> None:
    assert parse_speed("x10").of("kVmCreate").seconds == (REAL.of("kVmCreate").seconds or 0) / 10
