"""Who is logged in: codes work once and not for long, and a session needs both halves of its key."""

from __future__ import annotations

import pytest

from homeport.client.config import Config
from homeport.dashboard.session import (
    CODE_SECONDS,
    IDLE_SECONDS,
    LONGEST_SECONDS,
    MOST_CODES,
    MOST_SESSIONS,
    Login,
    Session,
    Sessions,
)

LOGIN = Login("jane", Config("https://127.0.0.1:6443"))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> Sessions:
    return Sessions(clock)


def begin(sessions: Sessions, login: Login = LOGIN) -> Session:
    made = sessions.redeem(sessions.offer(login))
    assert made is not None
    return made


def test_a_code_opens_one_session(sessions: Sessions) -> None:
    code = sessions.offer(LOGIN)
    assert sessions.redeem(code) is not None
    assert sessions.redeem(code) is None


def test_a_code_is_valid_for_a_minute(sessions: Sessions, clock: Clock) -> None:
    code = sessions.offer(LOGIN)
    clock.now += CODE_SECONDS + 1
    assert sessions.redeem(code) is None


def test_an_invented_code_opens_nothing(sessions: Sessions) -> None:
    sessions.offer(LOGIN)
    assert sessions.redeem("") is None
    assert sessions.redeem("x" * 22) is None


def test_both_halves_are_needed(sessions: Sessions) -> None:
    session, other = begin(sessions), begin(sessions)
    assert sessions.find(session.cookie, session.key) is session
    assert sessions.find(session.cookie, "") is None
    assert sessions.find("", session.key) is None
    assert sessions.find(session.cookie, other.key) is None


def test_a_session_ends_when_it_is_not_used(sessions: Sessions, clock: Clock) -> None:
    session = begin(sessions)
    clock.now += IDLE_SECONDS - 1
    assert sessions.find(session.cookie, session.key) is session
    clock.now += IDLE_SECONDS + 1
    assert sessions.find(session.cookie, session.key) is None


def test_a_page_that_comes_into_view_after_the_end_does_not_revive_the_session(
    sessions: Sessions, clock: Clock
) -> None:
    """Sessions that are over are ended once a minute."""
    session = begin(sessions)
    clock.now += IDLE_SECONDS + 1
    session.touch()
    sessions.sweep()
    assert session.why == "an hour passed without use"


def test_a_session_ends_after_half_a_day_of_use(sessions: Sessions, clock: Clock) -> None:
    session = begin(sessions)
    while clock.now < LONGEST_SECONDS:
        assert sessions.find(session.cookie, session.key) is session
        clock.now += IDLE_SECONDS / 2
    clock.now += 1
    assert sessions.find(session.cookie, session.key) is None


def test_what_belongs_to_a_session_ends_with_it(sessions: Sessions, clock: Clock) -> None:
    session, ended = begin(sessions), []
    session.ending.append(lambda: ended.append(True))
    clock.now += IDLE_SECONDS + 1
    sessions.sweep()
    assert ended == [True]
    assert len(sessions) == 0


def test_the_number_of_sessions_is_bounded(sessions: Sessions, clock: Clock) -> None:
    first = begin(sessions)
    for _ in range(MOST_SESSIONS):
        clock.now += 1
        begin(sessions)
    assert len(sessions) == MOST_SESSIONS
    assert sessions.find(first.cookie, first.key) is None


def test_a_user_who_logs_in_all_the_time_pushes_out_nobody_else(sessions: Sessions, clock: Clock) -> None:
    jane, other = begin(sessions), Login("mallory", LOGIN.config)
    code = sessions.offer(LOGIN)
    last = begin(sessions, other)
    for _ in range(3 * MOST_SESSIONS):
        clock.now += 0.1
        last = begin(sessions, other)
    for _ in range(3 * MOST_CODES):
        sessions.offer(other)
    assert len(sessions) == MOST_SESSIONS
    assert sessions.find(jane.cookie, jane.key) is jane
    assert sessions.find(last.cookie, last.key) is last
    assert sessions.redeem(code) is not None


def test_secrets_are_in_no_repr(sessions: Sessions) -> None:
    session = begin(sessions)
    assert session.cookie not in repr(session)
    assert session.key not in repr(session)
