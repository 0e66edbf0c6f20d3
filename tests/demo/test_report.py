"""The verdict is counted, not believed: what makes the demo fail, and how it says so."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from celegraph.cli.demo.play import Played
from celegraph.cli.demo.report import Report
from celegraph.cli.demo.story import Kill, Owned, Story, duplicates
from celegraph.dev.mailbox import Delivery
from celegraph.ledger.runs import Event, Run

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def mail(run_id: str, message_id: str | None = None) -> Delivery:
    return Delivery(message_id or f"<{run_id}>", ("a@b.example",), "", "", run_id, "")


def story(
    run_id: str, status: str = "finished", events: tuple[Event, ...] = (), asked: bool = False
) -> Story:
    run: Any = object.__new__(Run)
    for name, value in {"run_id": run_id, "status": status}.items():
        object.__setattr__(run, name, value)
    return Story(run, events, asked)


def event(seq: int, kind: str, epoch: int, after: float) -> Event:
    return Event(seq, NOON + timedelta(seconds=after), epoch, kind, {})


def test_one_mail_for_each_finished_run_is_ok() -> None:
    report = Report(Played([story("a"), story("b")], []), [mail("a"), mail("b")], 2)

    assert report.last_line().startswith("DEMO OK runs=2 kills=0 emails=2 duplicates=0 lost=0 asked=0")


def test_a_second_mail_with_the_same_message_id_is_a_duplicate() -> None:
    assert duplicates([mail("a", "<1>"), mail("b", "<1>")]) == 1


def test_a_second_mail_for_the_same_run_is_a_duplicate_even_under_another_id() -> None:
    report = Report(Played([story("a")], []), [mail("a", "<1>"), mail("a", "<2>")], 1)

    assert report.last_line().startswith(
        "DEMO FAILED (a mail was sent twice) runs=1 kills=0 emails=2 duplicates=1"
    )


def test_a_run_that_did_not_end_is_lost() -> None:
    report = Report(Played([story("a", "waiting")], []), [], 1)

    assert "DEMO FAILED (runs were lost)" in report.last_line()
    assert "lost=1" in report.last_line()


def test_a_finished_run_whose_mail_the_server_never_saw_is_lost() -> None:
    assert Report(Played([story("a")], []), [], 1).lost == 1


def test_a_ticket_that_was_never_started_is_lost() -> None:
    assert Report(Played([story("a")], []), [mail("a")], 2).lost == 1


def test_a_doubt_put_to_a_person_is_asked_and_not_lost() -> None:
    report = Report(Played([story("a", "waiting", asked=True)], []), [mail("a")], 1)

    assert (report.asked, report.lost, report.problem) == (1, 0, "")


def test_recovery_lasts_from_the_kill_to_the_next_owner() -> None:
    events = (event(1, "leased", 1, 0), event(2, "crashed", 1, 1.5), event(3, "leased", 3, 1.75))
    kill = Kill("pool child", 7, (Owned("a", 1, NOON + timedelta(seconds=1)),))

    report = Report(Played([story("a", events=events)], [kill]), [mail("a")], 1)

    assert report.recoveries == [0.75]
    assert report.last_line().endswith("recovery_p50_s=0.75 recovery_max_s=0.75")


def test_an_attempt_that_ended_before_the_kill_needed_no_recovery() -> None:
    kill = Kill("whole worker", 7, (Owned("a", 1, NOON),))
    events = (event(1, "leased", 1, 0), event(2, "waits", 1, 0.1), event(3, "leased", 3, 9))

    assert Report(Played([story("a", events=events)], [kill]), [mail("a")], 1).recoveries == []


def test_a_problem_of_the_play_itself_fails_the_demo() -> None:
    played = Played([story("a")], [], "not over after 120 s")

    assert (
        Report(replace(played), [mail("a")], 1).last_line().startswith("DEMO FAILED (not over after 120 s)")
    )
