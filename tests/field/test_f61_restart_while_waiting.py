"""F61: everything is stopped while a person thinks, and the broker is emptied; the old link still works."""

from __future__ import annotations

import redis

from celegraph import decide
from celegraph.tasks.links import read_link, sign_link
from tests.support.scene import Scene


def test_f61_the_old_link_decides_after_everything_was_down(scene: Scene) -> None:
    scene.configure(link_secret="a-secret-of-more-than-16-characters")
    control = scene.control()
    worker = scene.worker("w", queues=["celegraph"], concurrency=1)
    run_id = scene.begin("approved")
    token = sign_link(scene.config, scene.question(run_id).approval_id, "duty-manager")
    worker.kill()
    control.kill()
    with redis.Redis.from_url(scene.broker_url) as client:
        client.flushall()
    worker.start()
    control.start()

    link = read_link(scene.config, token)
    decided = decide(link.approval_id, "approve", by=link.person)

    assert (decided.won, decided.approval.decided_by) == (True, "duty-manager")
    scene.await_status(run_id, "finished")
    assert len(scene.provider.acts_of(run_id)) == 1
