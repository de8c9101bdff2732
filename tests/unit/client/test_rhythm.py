from __future__ import annotations

import functools
import random
from collections import Counter

import pytest

from homeport.client.wire.rhythm import GROUPS, LEAST_SECONDS, Rhythm

LONGEST = 30


class Server:
    """Ends each watch after the seconds that it was asked for, and takes a moment to answer."""

    def __init__(self, began: float) -> None:
        self.now = began
        self.rhythm = Rhythm(LONGEST, lambda: self.now)
        self.turns: list[float] = []
        self.lasted: list[int] = []

    def renew(self) -> None:
        self.lasted.append(self.rhythm.seconds())
        self.now += self.lasted[-1] + random.uniform(0.001, 0.02)
        pause = self.rhythm.pause()
        assert 0 <= pause < 1
        self.now += pause
        self.turns.append(self.now)


@pytest.mark.parametrize("seed", range(20))
def test_watches_that_began_at_any_time_are_soon_renewed_together_in_a_few_groups(seed: int) -> None:
    random.seed(seed)
    servers = [Server(random.uniform(1000.0, 1100.0)) for _ in range(50)]
    for each in servers:
        while each.now < 1400:
            each.renew()
    turns = Counter(int(turn % 28) for each in servers for turn in each.turns if turn > 1200)
    together = sum(count for _, count in turns.most_common(GROUPS))
    assert together >= 0.95 * turns.total(), "a watch that is late is renewed a second later, once in many times"
    assert max(turn % 1.0 for each in servers for turn in each.turns if turn > 1200) < 0.3
    assert all(LEAST_SECONDS <= lasted <= LONGEST for each in servers for lasted in each.lasted)


@pytest.mark.parametrize("longest", [1, 2, 5, 10])
def test_a_short_time_is_never_exceeded(longest: int) -> None:
    for moment in range(100):
        assert 1 <= Rhythm(longest, functools.partial(float, moment * 0.37)).seconds() <= longest
