"""FlagEmbedding's layer-wise reranker, which needs an older transformers than everything else here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rusbeir.errors import BadInput, MissingExtra
from rusbeir.retrieval import resolve

REPOSITORY = Path(__file__).parent.parent.parent
OLDER = ["transformers==4.57.6", "tokenizers==0.22.2", "huggingface_hub==0.36.2", "datasets==5.0.1"]
"""What pip takes for 'rusbeir[flagembedding]' 'transformers<5' instead of what is installed."""


@pytest.fixture(scope="module")
def older(needs, tmp_path_factory):
    """A folder of packages that take precedence over the installed ones."""
    folder = tmp_path_factory.mktemp("older")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps", "--target", str(folder)]
    done = subprocess.run([*pip, *OLDER], capture_output=True, text=True)
    needs("a package index", done.returncode == 0, f"{OLDER[0]} is installed from one")
    return folder


def test_scores_of_layers_equal_the_library(older, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.layerwise_scores", str(tmp_path / "minicpm")],
        env={**os.environ, "PYTHONPATH": str(older), "HF_HUB_OFFLINE": "1"},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    for layer in ("2", "3"):
        row = rows[layer]
        assert row["rusbeir"] == pytest.approx(row["theirs"], abs=1e-5)
        assert row["one"] == pytest.approx(row["theirs"][:1], abs=1e-5)
        assert row["signature"].endswith(f"|layer:{layer}")
        assert row["cut"] == [False, True, False, True]
    assert abs(rows["2"]["rusbeir"][0] - rows["3"]["rusbeir"][0]) > 0.1
    assert "|runtime:LayerWiseFlagLLMReranker-" in rows["default"]
    assert rows["default"].endswith("|layer:28")
    assert rows["refused"].endswith("can be read at layers 2 to 4, not 5.")


REFUSED = [
    # stage, error, message
    (
        "rerank(bge-reranker-v2-minicpm-layerwise)",
        MissingExtra,
        r"need transformers below 5, but 5\..* pip install 'rusbeir\[flagembedding\]' 'transformers<5'$",
    ),
    ("rerank(bge-reranker-v2-gemma,layer=20)", BadInput, "layer= is for the runtime flagembedding-layerwise; bge-rer"),
]


@pytest.mark.parametrize(("stage", "error", "message"), REFUSED, ids=[row[1].__name__ for row in REFUSED])
def test_refused(stage, error, message):
    with pytest.raises(error, match=message) as raised:
        resolve(f"bm25 >> {stage}", language="ru")
    assert "\n" not in str(raised.value)
