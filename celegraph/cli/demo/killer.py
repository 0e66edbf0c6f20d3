"""The killer: three SIGKILLs, each at a moment that the ledger or the SMTP server has named.

A process that drives a run is stopped first and looked at again, so that a kill hits it in the middle
of a run and not in the pause between two.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from celegraph.cli.demo.story import Kill, Ledger, Owned
from celegraph.cli.stage import WORKERS, Stage
from celegraph.dev.kept import KeptProcess, is_child
from celegraph.ledger.runs import Run

# Seconds.  A hunt looks often, because an attempt of this agent takes only a few dozen milliseconds.
_LOOK_EVERY = 0.002


class Called(Exception):
    """The demo is over; whatever the killer was waiting for does not matter any more."""


class Killer(threading.Thread):
    """Strikes three times.  `hunting`: it needs a run in motion; `left`: strikes that have not hit yet."""

    def __init__(self, stage: Stage, ledger: Ledger, held: str, say: Callable[[str], None]):
        super().__init__(name="killer", daemon=True)
        self._stage = stage
        self._ledger = ledger
        self._say = say
        self._over = threading.Event()
        self._held = held
        self.kills: list[Kill] = []
        self.left = 3
        self.hunting = False
        # Set when the mail of the run `held` will be held back: only then may it be approved.
        self.holding = threading.Event()
        self.error: Exception | None = None

    def run(self) -> None:
        """The three strikes, each after the runs of the last one are in good hands."""
        try:
            for strike in (self._pool_child, self._whole_worker, self._after_acceptance):
                self._await_recovery(strike())
                self.left -= 1
        except Called:
            pass
        except Exception as error:
            self.error = error  # told by the director, who asks for it

    def call_off(self) -> None:
        """Return when it will strike no more."""
        self._over.set()
        self.join()

    def _pool_child(self) -> Kill:
        with self._hunt() as (_, run):
            kill = Kill("pool child", _pid_of(run), (_owned(run),))
            os.kill(kill.pid, signal.SIGKILL)
        return self._struck(kill)

    def _whole_worker(self) -> Kill:
        with self._hunt() as (worker, _):
            kill = self._kill_worker("whole worker", worker)
        worker.start_again()
        return self._struck(kill)

    def _after_acceptance(self) -> Kill:
        self._stage.smtp.hold(self._held)
        self.holding.set()
        while not self._stage.smtp.held():
            self._pause()
        run = self._ledger.tell(self._held).run
        worker = self._worker_of(run)
        if worker is None:
            raise RuntimeError(f"{run.run_id}: its mail is accepted, and no worker of ours drives it")
        kill = self._kill_worker("worker after the SMTP server's 250", worker)
        self._stage.smtp.let_go()
        worker.start_again()
        return self._struck(kill)

    @contextmanager
    def _hunt(self) -> Iterator[tuple[KeptProcess, Run]]:
        """A pool child that drives a run, stopped in the middle of it."""
        self.hunting = True
        while True:
            for run in self._ledger.running():
                worker = self._worker_of(run)
                if worker is None or not self._freeze(run):
                    continue
                self.hunting = False
                yield worker, run
                return
            self._pause()

    def _freeze(self, run: Run) -> bool:
        """SIGSTOP its owner; False, and everything as before, if it had just settled."""
        try:
            os.kill(_pid_of(run), signal.SIGSTOP)
        except ProcessLookupError:
            return False
        now = self._ledger.tell(run.run_id).run
        if (now.status, now.epoch) == (run.status, run.epoch):
            return True
        os.kill(_pid_of(run), signal.SIGCONT)
        return False

    def _kill_worker(self, what: str, worker: KeptProcess) -> Kill:
        main = worker.pid
        assert main is not None
        owned = [run for run in self._ledger.running() if is_child(_pid_of(run), main)]
        kill = Kill(what, main, tuple(_owned(run) for run in owned))
        worker.kill()
        for run in owned:
            # On Linux the kernel has done it already, elsewhere they would finish their step.
            with contextlib.suppress(ProcessLookupError):
                os.kill(_pid_of(run), signal.SIGKILL)
        return kill

    def _struck(self, kill: Kill) -> Kill:
        self.kills.append(kill)
        hit = ", ".join(owned.run_id for owned in kill.runs)
        self._say(f"SIGKILL {kill.what} (process {kill.pid}) while it drives {hit}")
        return kill

    def _await_recovery(self, kill: Kill) -> None:
        for owned in kill.runs:
            # Run and events are of one look: events are read after the run, so they are no older.
            while (seconds := (story := self._ledger.tell(owned.run_id)).recovery(owned)) is None:
                if story.run.epoch > owned.epoch and story.run.status != "ready":
                    break  # it had settled before the kill
                self._pause(0.02)
            if seconds is not None:
                self._say(f"{owned.run_id} has a new owner after {seconds:.2f} s")

    def _worker_of(self, run: Run) -> KeptProcess | None:
        pid = _pid_of(run)
        workers = [self._stage.processes[name] for name in WORKERS]
        return next((worker for worker in workers if is_child(pid, worker.pid)), None)

    def _pause(self, seconds: float = _LOOK_EVERY) -> None:
        if self._over.wait(seconds):
            raise Called


def _owned(run: Run) -> Owned:
    assert run.now is not None
    return Owned(run.run_id, run.epoch, run.now)


def _pid_of(run: Run) -> int:
    # host:pid:thread, see Installation.worker_id; the host's name may be anything.
    return int((run.worker_id or "::").rsplit(":", 2)[1] or 0)
