"""Deploy objects on Ray's workers: each worker makes the object once, and computes batches by its methods.

Journals and stores stay with this process. A worker keeps nothing but the object that was deployed last, so it may die
at any moment: Ray starts it again, elsewhere if need be, and the others compute its batches meanwhile.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

from rusbeir import __version__
from rusbeir.cluster.address import Address
from rusbeir.cluster.worker import NEEDED_BY, Worker
from rusbeir.errors import BackendError, BadInput, RusbeirError, option, require
from rusbeir.text import digest, shorten

logger = logging.getLogger(__name__)

MODEL_CPUS = 4
"""The processors of one worker with a model, on nodes that have so many and no cards."""
START_SECONDS = 90
"""The longest wait for the first worker."""
JOIN_SECONDS = 20
"""The longest wait for the other workers then. Those that start later join the work."""
SILENCE_SECONDS = 600
"""How long there may be no worker at all before the work stops."""
LOOK_SECONDS = 0.5
"""How often a thread that waits for a worker checks whether the work has ended."""
MAX_DEATHS = 4
"""How many workers may die with the same batch before the batch is taken for the cause."""
AT_ONCE = 1000
"""More calls than a worker ever has: this process decides how many it gets."""
STORE_BYTES = 128 << 20
"""The object store of a Ray that this process starts; batches are small."""


class Workers:
    """Runs one object after the other on the workers of a cluster. Made by open_workers."""

    def __init__(self, ray: Any, actors: list[Any]) -> None:
        self._ray = ray
        self._actors = actors
        self._busy = [0] * len(actors)
        self._up: set[int] = set()
        self._changed = threading.Condition()
        self._stopped: Exception | None = None
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="cluster")
        self.used = False
        """Whether anything was deployed on the workers."""
        for worker in range(len(actors)):
            self._threads.submit(self._join, worker)

    def __len__(self) -> int:
        return len(self._actors)

    def start(self) -> None:
        """Wait for the workers. Raises BackendError where none starts, or one has another version of rusbeir."""
        began = time.monotonic()
        with self._changed:
            self._changed.wait_for(lambda: self._up or self._stopped, START_SECONDS)
            self._changed.wait_for(lambda: len(self._up) == len(self) or self._stopped, JOIN_SECONDS)
            started = len(self._up)
        if self._stopped:
            raise self._stopped
        if not started:
            free = {name: count for name, count in self._ray.available_resources().items() if name in ("CPU", "GPU")}
            raise BackendError(
                f"None of {len(self)} workers started within {time.monotonic() - began:.0f} seconds. Ray has free: "
                f"{', '.join(f'{name} {count:g}' for name, count in sorted(free.items())) or 'nothing'}. Ask for less, "
                f"such as {option('on', 'ray?workers=1&cpus=1')}."
            )
        if started < len(self):
            logger.warning("%d of %d workers have started; the others join the work later.", started, len(self))

    def deploy(self, make: Callable[[], Any], *, signature: str = "", at_once: int = 1) -> Deployed:
        """Let every worker make an object by make(), and compare its signature with this one, if there is one.

        A worker has at_once calls at a time, and one more that waits there. Raises the error of a worker that cannot
        make the object, and BadInput for a worker whose signature differs.
        """
        try:
            pickled = self._ray.cloudpickle.dumps(make)
        except Exception as error:
            raise BadInput(f"This cannot be sent to a worker: {shorten(str(error), 200)}.") from error
        self.used = True
        deployed = Deployed(self, digest(pickled.hex(), signature), self._ray.put(pickled), signature, at_once)
        with self._changed:
            workers = sorted(self._up)
        for future in [self._threads.submit(self._ask, worker, deployed, "", ()) for worker in workers]:
            # A worker that dies meanwhile makes the object when it is back.
            with contextlib.suppress(self._ray.exceptions.RayActorError):
                future.result()
        return deployed

    def submit(self, deployed: Deployed, method: str, args: tuple[Any, ...]) -> Future[Any]:
        """Call a method of the object on the worker with the fewest calls."""
        return self._threads.submit(self._call, deployed, method, args)

    def close(self) -> None:
        """End the workers."""
        self._stop(BackendError("The workers of the cluster were closed."))
        for actor in self._actors:
            with contextlib.suppress(Exception):
                self._ray.kill(actor)
        # Ray must not end while a thread waits for it.
        self._threads.shutdown(cancel_futures=True)

    def _call(self, deployed: Deployed, method: str, args: tuple[Any, ...]) -> Any:
        for _ in range(MAX_DEATHS):
            worker = self._reserve(deployed.at_once + 1)
            try:
                return self._ask(worker, deployed, method, args)
            except self._ray.exceptions.RayActorError as error:
                self._lose(worker, error)
            finally:
                self._release(worker)
        raise BackendError(
            f"{MAX_DEATHS} workers died with the same batch: memory may be short. Ray's logs say more (ray logs); "
            f"{option('on')} with ?cpus= or ?gpus= gives a worker more of a node."
        )

    def _ask(self, worker: int, deployed: Deployed, method: str, args: tuple[Any, ...]) -> Any:
        # In a list, Ray hands over the reference: only a worker that has not made the object yet fetches it.
        try:
            call = self._actors[worker].ask.remote(deployed.key, [deployed.made_by], deployed.signature, method, args)
            good, answer = self._wait(call)
        except self._ray.exceptions.RayActorError:
            raise
        except RusbeirError:
            raise
        except Exception as error:
            # Ray has many kinds of errors for a lost connection.
            raise BackendError(
                f"Ray failed ({shorten(f'{type(error).__name__}: {error}', 200)}). Answers so far are kept: run the "
                "same command when Ray is back."
            ) from error
        if not good:
            raise answer
        return answer

    def _wait(self, call: Any) -> Any:
        """Return what a call returns. No thread may wait for ever, as this process could not end then."""
        while not self._ray.wait([call], timeout=LOOK_SECONDS)[0]:
            if self._stopped:
                raise self._stopped
        return self._ray.get(call)

    def _reserve(self, limit: int) -> int:
        """Give a call to the worker with the fewest calls, once it has fewer than the limit, and return the worker."""
        with self._changed:
            while True:
                if not self._changed.wait_for(lambda: self._up or self._stopped, SILENCE_SECONDS):
                    raise BackendError(
                        f"No worker of the cluster has answered for {SILENCE_SECONDS // 60} minutes. Answers so far "
                        "are kept: run the same command when Ray has nodes again."
                    )
                if self._stopped:
                    raise self._stopped
                worker = min(self._up, key=lambda worker: self._busy[worker])
                if self._busy[worker] < limit:
                    self._busy[worker] += 1
                    return worker
                self._changed.wait()

    def _release(self, worker: int) -> None:
        with self._changed:
            self._busy[worker] -= 1
            self._changed.notify_all()

    def _lose(self, worker: int, error: Exception) -> None:
        """Wait until a worker that has died is started again."""
        with self._changed:
            if self._stopped:
                raise self._stopped
            if worker not in self._up:
                return
            self._up.discard(worker)
        logger.warning("A worker of the cluster died; others do its work until Ray has started it again.")
        logger.debug("%s", error)
        self._threads.submit(self._join, worker)

    def _join(self, worker: int) -> None:
        """Give a worker work once it has started."""
        try:
            # Ray repeats this call until the worker has started.
            met = self._wait(self._actors[worker].meet.options(max_task_retries=-1).remote())
        except Exception as error:
            lines = str(error).strip().splitlines() or [repr(error)]
            self._stop(
                BackendError(
                    f"A worker could not start ({shorten(lines[-1], 200)}). Install rusbeir {__version__} with the "
                    "extra ray on every node, for the same Python."
                )
            )
            return
        if met.version != __version__:
            self._stop(
                BadInput(
                    f"The worker on {met.node} has rusbeir {met.version}, and this process {__version__}. Install the "
                    "same version on both."
                )
            )
        with self._changed:
            self._up.add(worker)
            self._changed.notify_all()

    def _stop(self, why: Exception) -> None:
        with self._changed:
            self._stopped = self._stopped or why
            self._changed.notify_all()


@dataclass(frozen=True)
class Deployed:
    """An object that the workers of a cluster have."""

    workers: Workers
    key: str
    made_by: Any
    """Ray's reference to the pickled function that makes it."""
    signature: str
    at_once: int

    def submit(self, method: str, *args: Any) -> Future[Any]:
        """Return, as a future, what the method returns for these arguments, or the attribute of that name."""
        return self.workers.submit(self, method, args)

    def in_order(self, method: str, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield what the method returns for each batch, in their order; few batches are in memory."""
        futures: deque[Future[Any]] = deque()
        try:
            for batch in batches:
                futures.append(self.submit(method, batch))
                if len(futures) > (self.at_once + 2) * len(self.workers):
                    yield futures.popleft().result()
            while futures:
                yield futures.popleft().result()
        finally:
            for future in futures:
                future.cancel()


On: TypeAlias = str | Workers | None
"""The place of work: "ray" or "ray://HOST:PORT", workers that are open already, or None for this process."""


@contextlib.contextmanager
def open_workers(on: On, *, cpus: int = 1) -> Iterator[Workers | None]:
    """Open workers that end with the block; None stays None, and workers that are open already are returned.

    There is one worker for each card of the cluster, or for each `cpus` processors where it has no cards, unless the
    address says otherwise. Raises BadInput for an impossible address, MissingExtra without Ray, and BackendError where
    nothing answers or no worker starts.
    """
    if not isinstance(on, str):
        yield on
        return
    address = Address.parse(on)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray reads this at import. Each call after a lost connection would look for a cluster again, for a minute.
    os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"
    # Without this a program that is ended by SIGTERM prints the native stacks of its threads.
    os.environ.setdefault("RAY_DISABLE_FAILURE_SIGNAL_HANDLER", "1")
    ray = require("ray", *NEEDED_BY)
    address.check()
    connects = not ray.is_initialized()
    if connects:
        _connect(ray, address)
    try:
        workers = Workers(ray, _make_actors(ray, address, cpus))
        try:
            workers.start()
            yield workers
        finally:
            workers.close()
    finally:
        if connects:
            ray.shutdown()


def _connect(ray: Any, address: Address) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address.host:
            name = f"ray://{address.host}:{address.port}"
            with warnings.catch_warnings():
                # The error below says what is wrong.
                warnings.simplefilter("ignore")
                try:
                    ray.init(name, **quiet)
                except ConnectionError:
                    # Now and then the server that Ray forks for each program dies at its start.
                    ray.init(name, **quiet)
            return
        try:
            ray.init("auto", **quiet)
        except ConnectionError:
            with _on_loopback(ray):
                ray.init("local", include_dashboard=False, object_store_memory=STORE_BYTES, **quiet)
    except Exception as error:
        where = f" at {address.host}:{address.port}, whose port for ray:// is 10001 by default" if address.host else ""
        raise BackendError(f"Ray cannot be used{where}: {shorten(str(error), 300)}") from error


@contextlib.contextmanager
def _on_loopback(ray: Any) -> Iterator[None]:
    """Let a Ray that is started within the block be reached from this machine only, with Ray's default tokens."""
    # Ray replaces an address on the loopback interface, but not this setting, which macOS and Windows have by default.
    constants = ray._private.ray_constants
    before = constants.ENABLE_RAY_CLUSTER
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


def _make_actors(ray: Any, address: Address, cpus: int) -> list[Any]:
    """Start the workers for which the cluster has room."""
    nodes = [Counter(node["Resources"]) for node in ray.nodes() if node["Alive"]]
    gpus = float(any(node["GPU"] for node in nodes)) if address.gpus is None else address.gpus
    nodes = [node for node in nodes if node["GPU" if gpus else "CPU"]]
    capacities = [node["GPU"] / gpus if gpus else max(1, node["CPU"] // cpus) for node in nodes]
    count = address.workers or max(1, int(sum(capacities)))
    # Where a node has fewer processors than a worker should have, the worker has fewer.
    shares = [node["CPU"] / capacity for node, capacity in zip(nodes, capacities, strict=True)]
    shares.append(sum(node["CPU"] for node in nodes) / count)
    worker_cpus = min(cpus, max(1, int(min(shares)))) if address.cpus is None else address.cpus
    options = {"num_cpus": worker_cpus, "num_gpus": gpus, "max_restarts": -1, "max_concurrency": AT_ONCE}
    worker = ray.remote(Worker).options(**options, scheduling_strategy="SPREAD")
    return [worker.remote() for _ in range(count)]
