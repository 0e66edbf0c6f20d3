"""runs, trace, explain, effects: what happened, without anything of the customer's."""

from __future__ import annotations

import pytest

from celegraph.testing.driver import Driven, Driver
from tests.cli.conftest import CommandLine
from tests.cli.refund import INPUT, SECRET, asking


def test_an_empty_ledger_has_no_runs(cli: CommandLine) -> None:
    assert cli("runs").stdout == "no runs\n"
    assert cli.json("runs") == []


def test_runs_are_listed_the_newest_first(cli: CommandLine, waiting: Driven, failed: Driven) -> None:
    lines = cli("runs").stdout.splitlines()

    assert [line.split()[:3] for line in lines[1:]] == [
        ["run-2", "agent", "failed"],
        ["run-1", "agent", "waiting"],
    ]
    assert [run["run_id"] for run in cli.json("runs")] == ["run-2", "run-1"]


def test_runs_can_be_filtered_and_limited(cli: CommandLine, waiting: Driven, failed: Driven) -> None:
    assert [run["run_id"] for run in cli.json("runs", "--status", "waiting")] == ["run-1"]
    assert cli.json("runs", "--agent", "other") == []
    assert [run["run_id"] for run in cli.json("runs", "--limit", "1")] == ["run-2"]
    assert "'wating' is not one of 'ready', 'running'" in cli("runs", "--status", "wating").stderr


def test_a_trace_has_every_event_in_order(cli: CommandLine, waiting: Driven) -> None:
    waiting.resume(["approve"])

    events = cli.json("trace", "run-1")

    assert [event["kind"] for event in events] == [event.kind for event in waiting.events]
    assert [event["seq"] for event in events] == sorted(event["seq"] for event in events)
    assert len(cli("trace", "run-1").stdout.splitlines()) == len(events) + 1


def test_a_trace_names_the_keys_of_effects(cli: CommandLine, waiting: Driven) -> None:
    waiting.resume(["approve"])

    (act,) = waiting.effects

    assert f"key={act.key}" in cli("trace", "run-1").stdout
    sent = [event["data"] for event in cli.json("trace", "run-1") if event["kind"] == "effect sent"]
    assert [data["key"] for data in sent] == [act.key]


def test_a_trace_is_read_to_its_end_page_by_page(
    cli: CommandLine, waiting: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    import celegraph

    whole = celegraph.trace_run
    monkeypatch.setattr(celegraph, "trace_run", lambda run_id, after: whole(run_id, after=after)[:2])

    assert len(cli.json("trace", "run-1")) == len(waiting.events) > 2


def test_effects_tell_status_and_reference(cli: CommandLine, waiting: Driven) -> None:
    assert cli("effects", "run-1").stdout == "no effects\n"
    waiting.resume(["approve"])

    (effect,) = cli.json("effects", "run-1")

    assert (effect["tool"], effect["status"], effect["provider_ref"]) == ("refund", "sent", "ref-o-1")
    assert (effect["attempts"], effect["duplicates_prevented"]) == (1, 0)
    table = cli("effects", "run-1").stdout
    assert effect["idempotency_key"] in table
    assert "spared" in table


def test_explain_is_one_sentence(cli: CommandLine, waiting: Driven, failed: Driven) -> None:
    (line,) = cli("explain", "run-1").stdout.splitlines()

    assert line.startswith("Run 'run-1' waits for an answer: approval of 'refund' (ap-")
    assert "failed" in cli("explain", "run-2").stdout
    explained = cli.json("explain", "run-1")
    assert (explained["status"], explained["sentence"]) == ("waiting", line)
    assert explained["facts"]["last_step"]["next"] == ["last"]


@pytest.mark.parametrize("command", [["runs"], ["trace", "run-1"], ["trace", "run-2"], ["effects", "run-1"]])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_nothing_of_the_customer_is_printed(
    cli: CommandLine, waiting: Driven, failed: Driven, command: list[str], form: list[str]
) -> None:
    waiting.resume(["approve"])
    assert SECRET in str(failed.run.error)

    assert SECRET not in cli(*command, *form).output


def test_arguments_in_an_event_stay_in_the_database(cli: CommandLine, drive: Driver, waiting: Driven) -> None:
    from celegraph.ledger.pool import ledger
    from celegraph.ledger.runs import record_event

    with ledger(waiting.installation.config) as conn:
        record_event(conn, "run-1", "effect drifted", {"tool": "refund", "recorded": INPUT, "now": INPUT})

    for form in ([], ["--json"]):
        output = cli("trace", "run-1", *form).output
        assert "effect drifted" in output
        assert SECRET not in output


def test_a_trace_shows_advice_and_what_came_late(cli: CommandLine, waiting: Driven) -> None:
    from celegraph.ledger.pool import ledger
    from celegraph.ledger.runs import record_event

    with ledger(waiting.installation.config) as conn:
        record_event(conn, "run-1", "advice", {"node": "ask", "about": "several", "text": "one per node"})
        record_event(conn, "run-1", "effect sent", {"tool": "refund", "late": True})

    lines = cli("trace", "run-1").stdout.splitlines()

    assert {"node=ask", "about=several"} <= set(lines[-2].split())
    assert "text=one per node" in lines[-2]
    assert {"tool=refund", "late=true"} <= set(lines[-1].split())


def test_options_stand_before_or_after_the_command(cli: CommandLine, waiting: Driven) -> None:
    assert cli("--json", "runs").stdout == cli("runs", "--json").stdout


def test_another_schema_is_another_ledger(cli: CommandLine, waiting: Driven) -> None:
    result = cli("runs", "--schema", "other")

    assert result.exit_code == 1
    assert "run `celegraph migrate`" in result.stderr


def test_a_long_run_id_is_whole_in_a_pipe(cli: CommandLine, drive: Driver) -> None:
    run_id = "r" * 200
    drive(asking, INPUT, run_id=run_id)

    assert run_id in cli("runs").stdout
