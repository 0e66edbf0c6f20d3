"""A run is heard while it works, by whoever listens, from wherever they left off."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from celegraph import StreamItem, astream_run, decide, stream_run
from celegraph.dev.home import Home
from celegraph.dev.valkey import Valkey
from celegraph.errors import CursorInvalid, RunNotFound
from celegraph.ledger.connect import connect
from celegraph.tasks.stream.server import is_closed
from tests.support.app import make_app
from tests.support.listening import Listener, events, kept_tokens, kinds, tokens
from tests.support.scene import Scene
from tests.support.telling import WORDS
from tests.support.waiting import eventually


def stream_keys(scene: Scene) -> list[bytes]:
    with redis.Redis.from_url(scene.broker_url) as client:
        return list(client.scan_iter("celegraph:stream:*"))


def told_to_the_end(scene: Scene) -> bool:
    """The publisher of the only run is done; the run itself does not wait for it."""
    (key,) = stream_keys(scene)
    with redis.Redis.from_url(scene.broker_url, decode_responses=True) as client:
        [(_, newest)] = client.xrevrange(key, count=1)
    return is_closed(newest["c"])


def test_a_listener_hears_events_tokens_custom_chunks_and_progress_while_the_run_works(scene: Scene) -> None:
    scene.worker("w")
    scene.gates.close("word 2")
    run_id = scene.begin("telling")

    with Listener(run_id) as listener:
        eventually(lambda: tokens(listener.items) == ["one ", "two "])
        assert scene.run(run_id).status == "running"
        scene.gates.open("word 2")
        items = listener.until_end()

    assert tuple(tokens(items)) == WORDS
    assert events(items) == scene.kinds(run_id)
    (custom,) = [i for i in items if i.kind == "custom"]
    assert (custom.data, custom.node) == ({"found": "order 7"}, "one")
    spoken = [i for i in items if i.kind == "token"]
    assert {(i.node, i.step, i.epoch) for i in spoken} == {("speak", 2, 1)}
    told = [(i.node, i.data["state"]) for i in items if i.kind == "progress"]
    assert told == [(n, s) for n in ("one", "speak", "last") for s in ("started", "done")]
    assert items[-1].data == {"status": "finished"}


def test_chunks_stand_between_the_events_that_caused_them_and_followed_from_them(scene: Scene) -> None:
    scene.worker("w")
    run_id = scene.begin("telling")
    scene.await_status(run_id, "finished")

    heard = kinds(list(stream_run(run_id)))

    assert heard.index("leased") < heard.index("custom") < heard.index("token")
    steps = [
        (i.kind, i.step) for i in stream_run(run_id) if i.kind == "token" or events([i]) == ["checkpoint"]
    ]
    assert steps == sorted(steps, key=lambda pair: (pair[1], pair[0] == "event"))
    assert heard[-2:] == ["finished", "end"]


def test_an_agent_that_was_not_asked_to_tell_leaves_nothing_in_redis(scene: Scene) -> None:
    scene.worker("w")
    run_id = scene.begin("reticent")

    with Listener(run_id) as listener:
        items = listener.until_end()

    assert kinds(items) == [*scene.kinds(run_id), "end"]
    assert stream_keys(scene) == []


def test_tokens_never_come_into_postgresql(scene: Scene) -> None:
    scene.worker("w")
    run_id = scene.begin("telling")
    scene.await_status(run_id, "finished")

    rows = scene.conn.execute("SELECT data::text FROM run_events WHERE run_id = %s", (run_id,)).fetchall()

    assert rows
    assert not any("two " in row["data"] or "order 7" in row["data"] for row in rows)


def test_a_listener_may_come_before_the_run_begins_after_it_has_ended_and_again(scene: Scene) -> None:
    run_id = scene.begin("telling")
    with Listener(run_id) as early:
        eventually(lambda: events(early.items) == ["admitted"])
        scene.worker("w")
        first = early.until_end()

    late = list(stream_run(run_id))

    # While a run works, a chunk may come a moment after the event that followed from it.
    for kind in ("event", "token", "custom", "progress", "end"):
        assert [i.data for i in late if i.kind == kind] == [i.data for i in first if i.kind == kind]
    assert len(late) == len(first)
    assert [i.kind for i in stream_run(run_id, late[-1].cursor)] == ["end"]


def test_every_cursor_goes_on_exactly_behind_its_item(scene: Scene) -> None:
    scene.worker("w")
    run_id = scene.begin("telling")
    scene.await_status(run_id, "finished")
    whole = list(stream_run(run_id))

    for number, item in enumerate(whole):
        rest = list(stream_run(run_id, item.cursor))
        expected = whole[number + 1 :] or whole[-1:]
        assert [(i.kind, i.data) for i in rest] == [(i.kind, i.data) for i in expected]


def test_a_worker_killed_in_the_middle_of_a_sentence_is_followed_by_cursor(scene: Scene) -> None:
    worker = scene.worker("first")
    scene.gates.close("word 3")
    run_id = scene.begin("telling")
    with Listener(run_id) as listener:
        eventually(lambda: tokens(listener.items) == ["one ", "two ", "three "])
        cursor = listener.hang_up()
        heard = listener.items

    worker.kill()
    scene.gates.open("word 3")
    scene.worker("second", beat=True)
    with Listener(run_id, cursor) as again:
        rest = again.until_end()

    assert tuple(tokens(rest)) == WORDS
    assert "crashed" in events(rest)
    assert tuple(kept_tokens(heard + rest)) == WORDS
    assert {i.epoch for i in heard if i.kind == "token"} == {1}
    assert {i.epoch for i in rest if i.kind == "token"} == {scene.events(run_id)[-1].epoch}
    assert events(heard + rest) == scene.kinds(run_id)


def test_what_a_finished_sibling_said_is_not_retracted_when_the_other_one_is_run_again(scene: Scene) -> None:
    worker = scene.worker("first")
    scene.gates.close("part b said")
    run_id = scene.begin("told_by_many")
    scene.gates.await_arrival("part b said", run_id)
    # The first sibling's writes are durable; without them it would be run again, too.
    eventually(
        lambda: (
            scene.conn.execute(
                "SELECT FROM checkpoint_writes WHERE thread_id = %s AND channel = 'parts'", (run_id,)
            ).fetchone()
            is not None
        )
    )

    worker.kill()
    scene.gates.open("part b said")
    scene.worker("second", beat=True)
    with Listener(run_id) as listener:
        items = listener.until_end()

    assert scene.trail.steps(run_id).count("part a") == 1
    assert sorted(kept_tokens(items)) == ["part a ", "part b ", "said ", "said "]
    assert len([i for i in items if i.kind == "retracted"]) == 1


def test_a_node_tried_again_in_place_retracts_what_it_has_said(scene: Scene) -> None:
    scene.worker("w")
    run_id = scene.begin("told_again")

    with Listener(run_id) as listener:
        items = listener.until_end()

    assert tokens(items) == ["once ", "more ", "once ", "more "]
    assert kept_tokens(items) == ["once ", "more "]
    assert [i.attempt for i in items if i.kind == "token"] == [1, 1, 2, 2]
    states = [i.data["state"] for i in items if i.kind == "progress"]
    assert states == ["started", "failed", "started", "done"]


def test_a_subgraph_is_heard_with_its_path(scene: Scene) -> None:
    scene.worker("w")
    run_id = scene.begin("told_within")

    with Listener(run_id) as listener:
        items = listener.until_end()

    assert tuple(tokens(items)) == WORDS
    assert {i.node for i in items if i.kind == "token"} == {"outer|inner_speak"}
    assert {i.node for i in items if i.kind == "custom"} == {"outer|inner_one"}
    assert {i.step for i in items if i.kind in ("token", "custom")} == {1}


def test_a_recorded_answer_is_heard_once_in_words_and_once_more_whole_when_it_is_given_back(
    scene: Scene,
) -> None:
    worker = scene.worker("first")
    scene.gates.close("spoken")
    run_id = scene.begin("told_on_record")
    with Listener(run_id) as listener:
        scene.gates.await_arrival("spoken", run_id)
        eventually(lambda: tuple(tokens(listener.items)) == WORDS)
        cursor = listener.hang_up()
        heard = listener.items

    worker.kill()
    scene.gates.open("spoken")
    scene.worker("second", beat=True)
    with Listener(run_id, cursor) as again:
        rest = again.until_end()

    assert kept_tokens(heard + rest) == ["".join(WORDS)]


def test_a_redis_emptied_in_between_costs_chunks_and_says_so(scene: Scene) -> None:
    scene.worker("w")
    scene.gates.close("word 3")
    run_id = scene.begin("telling")
    eventually(lambda: len(tokens(list_now(run_id))) == 3)

    with redis.Redis.from_url(scene.broker_url) as client:
        client.flushall()
    scene.gates.open("word 3")
    scene.await_status(run_id, "finished")
    items = list(stream_run(run_id))

    assert tokens(items) == ["four ", "five "]
    # started, custom and done of the first node, started of the second, three words
    assert [i.data["chunks"] for i in items if i.kind == "lost"] == [7]
    assert events(items) == scene.kinds(run_id)


def list_now(run_id: str) -> list[StreamItem]:
    """What a listener that comes now hears at once."""
    found = []
    for item in stream_run(run_id, idle=0.01):
        if item.kind in ("idle", "end"):
            break
        found.append(item)
    return found


def test_old_chunks_of_a_long_talk_are_let_go_and_counted(scene: Scene) -> None:
    scene.configure(stream_max_chunks="100")
    scene.worker("w")
    run_id = scene.begin("told_at_length", cents=1000)

    scene.await_status(run_id, "finished")
    # A listener whom the trimming overtakes would be told of every loss, not of one.
    eventually(lambda: told_to_the_end(scene))
    items = list(stream_run(run_id))

    numbers = [i.data["number"] for i in items if i.kind == "custom"]
    (lost,) = [i.data["chunks"] for i in items if i.kind == "lost"]
    assert numbers == list(range(numbers[0], 1000))
    assert lost == numbers[0] + 1  # and the first "started"
    assert len(numbers) < 400  # XADD MAXLEN ~ keeps whole nodes of a hundred


def test_the_stream_is_gone_some_time_after_its_last_chunk(scene: Scene) -> None:
    scene.configure(stream_keep="1500ms")
    scene.worker("w")
    run_id = scene.begin("telling")
    with Listener(run_id) as listener:
        listener.until_end()

    eventually(lambda: stream_keys(scene) == [])
    assert kinds(list(stream_run(run_id))) == [*scene.kinds(run_id), "end"]


def test_the_last_words_of_a_process_that_ends_with_its_task_are_sent(scene: Scene) -> None:
    scene.worker("w", concurrency=1, options=["--max-tasks-per-child", "1"])
    for _ in range(3):
        run_id = scene.begin("telling")
        scene.await_status(run_id, "finished")

        heard = list(stream_run(run_id))

        assert tuple(tokens(heard)) == WORDS
        assert [i.data["state"] for i in heard if i.kind == "progress"][-1] == "done"


def test_a_waiting_run_keeps_its_listener_and_the_answer_is_heard(scene: Scene) -> None:
    scene.worker("w", beat=True)
    run_id = scene.begin("approved")
    question = scene.question(run_id)
    with Listener(run_id) as listener:
        eventually(lambda: "asked" in events(listener.items))

        decide(question.approval_id, "approve", by="ana")

        items = listener.until_end()
    assert events(items) == scene.kinds(run_id)


def test_an_event_committed_late_behind_newer_ones_is_not_missed(scene: Scene) -> None:
    """A host's transaction holds a decision open while its run goes on."""
    run_id = scene.begin("steps")
    scene.gates.close("last")
    with connect(scene.config) as host, Listener(run_id) as listener:
        host.execute("BEGIN")
        host.execute("INSERT INTO run_events (run_id, kind) VALUES (%s, 'decided')", (run_id,))
        scene.worker("w")
        scene.gates.await_arrival("last", run_id)
        eventually(lambda: events(listener.items).count("checkpoint") >= 5)
        cursor = listener.hang_up()
        assert "decided" not in events(listener.items)
        host.execute("COMMIT")
        heard = listener.items

    scene.gates.open("last")
    with Listener(run_id, cursor) as again:
        rest = again.until_end()

    assert sorted(events(heard + rest)) == sorted(scene.kinds(run_id))


def test_a_history_of_many_pages_is_heard_whole_and_in_order(scene: Scene) -> None:
    run_id = scene.begin("steps")
    scene.conn.execute(
        "INSERT INTO run_events (run_id, kind, data) SELECT %s, 'noted', jsonb_build_object('n', n)"
        " FROM generate_series(1, 1700) n",
        (run_id,),
    )

    heard = list_now(run_id)

    assert [i.data["n"] for i in heard[1:]] == list(range(1, 1701))
    rest = stream_run(run_id, heard[899].cursor, idle=0.01)
    assert next(rest).data["n"] == 900


def test_the_async_listener_hears_the_same(scene: Scene) -> None:
    scene.worker("w")
    run_id = scene.begin("telling")
    # Only of a run at rest is the place of chunks between events the same for everybody.
    scene.await_status(run_id, "finished")

    async def listen() -> list[StreamItem]:
        return [item async for item in astream_run(run_id)]

    heard = asyncio.run(asyncio.wait_for(listen(), 60))

    assert [(i.kind, i.data) for i in heard] == [(i.kind, i.data) for i in stream_run(run_id)]


def test_a_listener_without_news_is_told_so_when_it_asks(scene: Scene) -> None:
    run_id = scene.begin("telling")

    items = [item for item, _ in zip(stream_run(run_id, idle=0.05), range(3), strict=False)]

    assert [i.kind for i in items] == ["event", "idle", "idle"]


def test_an_unknown_run_and_a_wrong_cursor_are_refused_at_once(scene: Scene) -> None:
    mine, other = scene.begin("steps"), scene.begin("steps")
    cursor = list_now(other)[-1].cursor

    with pytest.raises(RunNotFound):
        stream_run("nobody")
    with pytest.raises(CursorInvalid, match="of another run"):
        stream_run(mine, cursor)
    for wrong in ("x", "1-0", "é", "AAAA", "A" * 5000, cursor[:-3]):
        with pytest.raises(CursorInvalid, match="not a cursor"):
            stream_run(mine, wrong)


@pytest.fixture
def carrier() -> Iterator[Valkey]:
    """A server for chunks that a test may freeze and kill."""
    with Valkey(Home.passing(in_memory=True), fsync=False) as server:
        yield server
        if server.running:
            os.kill(server.pid, signal.SIGCONT)


@pytest.fixture
def apart(scene: Scene, carrier: Valkey) -> Scene:
    """A scene whose chunks do not travel through the broker."""
    scene.configure(stream_url=carrier.url)
    return scene


def test_a_frozen_redis_neither_slows_nor_fails_a_run(apart: Scene, carrier: Valkey) -> None:
    apart.worker("w")
    apart.gates.close("word 1")
    run_id = apart.begin("telling")
    apart.gates.await_arrival("word 1", run_id)
    eventually(lambda: tokens(list_now(run_id)) == ["one "])
    with Listener(run_id) as listener:
        os.kill(carrier.pid, signal.SIGSTOP)
        began = time.monotonic()
        apart.gates.open("word 1")
        apart.await_status(run_id, "finished")
        took = time.monotonic() - began
        items = listener.until_end()

    assert took < 3.0
    assert events(items) == apart.kinds(run_id)
    assert [i.data["chunks"] for i in items if i.kind == "lost"][:1] == [None]

    # Back again, it gets what it has missed: nothing is said twice, nothing is lost.
    os.kill(carrier.pid, signal.SIGCONT)
    eventually(lambda: tuple(tokens(list(stream_run(run_id)))) == WORDS)


def test_a_broker_that_freezes_while_a_run_goes_on_costs_it_nothing(
    database_url: str, carrier: Valkey, tmp_path: Path
) -> None:
    with Scene(database_url, carrier.url, tmp_path) as scene:
        scene.worker("w")
        scene.gates.close("word 1")
        run_id = scene.begin("telling")
        scene.gates.await_arrival("word 1", run_id)
        os.kill(carrier.pid, signal.SIGSTOP)

        scene.gates.open("word 1")

        scene.await_status(run_id, "finished", within=5.0)
        os.kill(carrier.pid, signal.SIGCONT)
        eventually(lambda: tuple(tokens(list(stream_run(run_id)))) == WORDS)


def test_a_dead_redis_costs_chunks_and_no_run(apart: Scene, carrier: Valkey) -> None:
    worker = apart.worker("w")
    carrier.kill()

    run_id = apart.begin("told_at_length", cents=6000)
    apart.await_status(run_id, "finished")
    items = list(stream_run(run_id))

    assert events(items) == apart.kinds(run_id)
    assert [i.data["why"] for i in items if i.kind == "lost"] == ["the chunks' server does not answer"]
    eventually(lambda: worker.log.count("chunks are not sent, runs go on") == 1)

    # Once it is back the newest come, and the older ones are counted.
    carrier.start()
    numbers = eventually(lambda: whole_end(run_id), within=30)
    (lost,) = [i.data["chunks"] for i in stream_run(run_id) if i.kind == "lost"]
    assert numbers == list(range(numbers[0], 6000))
    assert lost == numbers[0] + 1  # and the first "started"


def whole_end(run_id: str) -> list[int]:
    """The numbers that were kept, once the last one is there."""
    numbers = [i.data["number"] for i in stream_run(run_id) if i.kind == "custom"]
    return numbers if numbers[-1:] == [5999] else []


def test_without_a_redis_there_are_events_and_no_chunks(scene: Scene) -> None:
    """As with RabbitMQ and no stream_url."""
    run_id = scene.begin("telling")
    scene.worker("w")
    scene.await_status(run_id, "finished")

    amqp = make_app("amqp://nobody@127.0.0.1:1//", settings={"database_url": scene.database_url})
    amqp.set_current()
    try:
        assert kinds(list(stream_run(run_id))) == [*scene.kinds(run_id), "end"]
    finally:
        scene.app.set_current()
        amqp.close()
