"""Scores pairs with a model of unbabel-comet (CometKiwi, XCOMET), for the Python of an environment that has it.

It imports nothing of rusbeir: unbabel-comet 2.2 needs numpy below 2 and transformers below 5. What it reads and writes
is described in programs.py. Run as `python comet_worker.py MODEL DEVICES`.
"""

import importlib
import importlib.metadata
import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Answer until the input ends."""
    # What libraries print goes to standard error.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    name, devices = sys.argv[1], int(sys.argv[2])
    comet = importlib.import_module("comet")
    path = name if Path(name).exists() else comet.download_model(name)
    model = comet.load_from_checkpoint(path)
    sys.stdin.readline()
    version = importlib.metadata.version("unbabel-comet")
    answers.write(json.dumps({"signature": f"comet-{version}|model:{name}"}) + "\n")
    answers.flush()
    for line in sys.stdin:
        samples = [{"src": source, "mt": translation} for source, translation in json.loads(line)]
        scores = model.predict(samples, batch_size=16, gpus=devices, progress_bar=False).scores
        answers.write(json.dumps([float(score) for score in scores]) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
