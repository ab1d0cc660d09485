"""A process that works through a journal and is killed while it does.

python -m tests.support.killed_journal JOURNAL TASKS PAUSE_SECONDS

Says each answer's number only after record has returned: what was said must be found again.
"""

from __future__ import annotations

import sys
import time

from rusbeir.jobs import Attempt, Journal, Task, TaskQueue
from rusbeir.text import batched


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    path, tasks, pause_seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    with Journal.open(path, {"source": "s1"}) as journal:
        if journal.get_meta("planned") is None:
            journal.add(Task.of("segment", f"text {number}") for number in range(tasks))
            journal.set_meta({"planned": "1"})
        say("planned")
        for page in batched(TaskQueue(journal, "segment", "w").unfinished(), 7):
            journal.record([Attempt(task.key, "w", "done", task.payload.upper()) for task in page])
            time.sleep(pause_seconds)
            say(" ".join(task.payload.removeprefix("text ") for task in page))


if __name__ == "__main__":
    main()
