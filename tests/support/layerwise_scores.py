"""A small layer-wise reranker's scores, rusbeir's and the package's own, as JSON: run where transformers is below 5."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from FlagEmbedding import LayerWiseFlagLLMReranker

from rusbeir.errors import BadInput
from rusbeir.retrieval import resolve
from tests.support import tiny_encoders

QUERY = "кто рыба"
DOCUMENTS = [" ".join(["дом"] * length + ["рыба"]) for length in (3, 90, 9, 60)]


def reranker(options: str):
    return resolve(f"bm25 >> rerank({options})", language="ru").reranker


def main(folder: Path) -> None:
    plain = LayerWiseFlagLLMReranker(str(tiny_encoders.layerwise_model(folder)), use_fp16=False)
    pairs = [(QUERY, document) for document in DOCUMENTS]
    found = {"default": reranker("bge-reranker-v2-minicpm-layerwise").signature}
    at_layer = f"{folder},runtime=flagembedding-layerwise,max_tokens=40,layer="
    for layer in (2, 3):
        own = reranker(f"{at_layer}{layer}")
        found[str(layer)] = {
            "signature": own.signature,
            "rusbeir": own.score(QUERY, DOCUMENTS),
            "one": own.score(QUERY, DOCUMENTS[:1]),
            "theirs": plain.compute_score(pairs, cutoff_layers=[layer], max_length=40),
            "cut": own.are_truncated(QUERY, DOCUMENTS),
        }
    try:
        reranker(f"{at_layer}5").score(QUERY, DOCUMENTS)
    except BadInput as error:
        found["refused"] = str(error)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
