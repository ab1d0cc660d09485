"""A process that works through a journal and is killed while it does.

python -m tests.support.killed_journal JOURNAL TASKS PAUSE_SECONDS

Says each answer's number only after record has returned: what was said must be found again.
"""

from __future__ import annotations

import sys
import time

from rusbeir.jobs import Attempt, Journal, Task


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
        after = 0
        while page := journal.pending("w", 7, after):
            after = page[-1][0]
            journal.record([Attempt(task.key, "w", "done", task.payload.upper()) for _, task in page])
            time.sleep(pause_seconds)
            say(" ".join(task.payload.removeprefix("text ") for _, task in page))


if __name__ == "__main__":
    main()
