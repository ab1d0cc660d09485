"""The store of embeddings: content-addressed, resumed after kills to the same bytes, checked on the way in."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from rusbeir.errors import BackendError, BadInput
from rusbeir.retrieval.encoding import encoded_corpus
from rusbeir.retrieval.encoding.embedding_store import BLOCK_TEXTS, EmbeddingStore
from tests.support.killing import REPOSITORY, kill_eight_times
from tests.support.toy_encoder import Toy, add, build, documents

N = 20 * BLOCK_TEXTS + 7


def test_killed_encoding_ends_with_the_same_bytes(tmp_path):
    """SIGKILL eight times, each soon after another block was written; then let it finish, and compare."""
    build(tmp_path / "whole", N, Toy())
    expected = (tmp_path / "whole" / "store" / "vectors").read_bytes()
    kill_eight_times(Toy.__module__, [tmp_path / "killed", N], tmp_path / "killed" / "store" / "vectors")
    toy = Toy()
    store = build(tmp_path / "killed", N, toy)
    assert sum(toy.calls) < N, "nothing was resumed"
    assert (tmp_path / "killed" / "store" / "vectors").read_bytes() == expected
    whole = encoded_corpus.open_folder(
        tmp_path / "whole" / "corpus", EmbeddingStore(tmp_path / "whole" / "store", "float32")
    )
    killed = encoded_corpus.open_folder(tmp_path / "killed" / "corpus", store)
    assert whole.rows.tolist() == killed.rows.tolist()


def test_every_text_is_encoded_once(tmp_path):
    toy = Toy()
    build(tmp_path, N, toy)
    distinct = {f"{doc.title} {doc.text}" for doc in documents(N)}
    assert sum(toy.calls) == len(distinct) < N
    again = Toy()
    store = EmbeddingStore(tmp_path / "store", "float32")
    rows = add(store, [f"{doc.title} {doc.text}" for doc in documents(50)], again)
    assert again.calls == []
    # Vectors by another batch differ in the last digits only.
    fresh = Toy().encode_documents([f"{doc.title} {doc.text}" for doc in documents(50)])
    assert np.abs(store.read(rows) - fresh).max() < 1e-3


def test_blocks_start_at_the_same_texts_whatever_is_in_the_store(tmp_path):
    """As vectors may depend on the texts that they are encoded with."""
    docs = [f"{doc.title} {doc.text}" for doc in documents(N)]
    blocks = [docs[start : start + BLOCK_TEXTS] for start in range(0, N, BLOCK_TEXTS)]
    store = EmbeddingStore(tmp_path / "store", "float32")
    add(store, (documents_kept := docs[70:75]), Toy())
    toy = Toy()
    build(tmp_path, N, toy)
    seen, expected = set(documents_kept), []
    for block in blocks:
        expected.append(len(set(block) - seen))
        seen |= set(block)
    assert toy.calls == expected
    assert toy.calls[1] < BLOCK_TEXTS


def test_half_precision_takes_half_the_bytes(tmp_path):
    store = build(tmp_path / "half", 100, Toy(), "float16")
    whole = build(tmp_path / "whole", 100, Toy())
    sizes = [(tmp_path / name / "store" / "vectors").stat().st_size for name in ("half", "whole")]
    assert sizes == [len(store) * 32 * 2, len(whole) * 32 * 4]
    assert store.read([0]).dtype == np.float32
    assert np.abs(store.read(range(50)) - whole.read(range(50))).max() < 1e-3


def test_two_processes_may_fill_one_store(tmp_path):
    """The second waits for the first's block instead of failing, and neither loses a vector."""
    arguments = [sys.executable, "-m", Toy.__module__]
    both = [
        subprocess.Popen([*arguments, str(tmp_path), str(N)], cwd=REPOSITORY),
        subprocess.Popen([*arguments, str(tmp_path), str(N)], cwd=REPOSITORY),
    ]
    assert [process.wait() for process in both] == [0, 0]
    distinct = {f"{doc.title} {doc.text}" for doc in documents(N)}
    assert len(EmbeddingStore(tmp_path / "store", "float32")) == len(distinct)


class Answering(Toy):
    def __init__(self, answer) -> None:
        super().__init__(4)
        self._answer = answer

    def _encode(self, texts):
        return self._answer(super()._encode(texts))


WRONG = [
    # what the encoder makes of its answer, error, parts of the message, why
    (lambda v: v[:-1], BackendError, ["2 vectors for 3 texts"], "an endpoint that returns fewer vectors"),
    (lambda v: v[0], BackendError, ["an array of shape (4,) for 3 texts"], "a single vector"),
    (lambda v: v * np.float32("nan"), BackendError, ["NaN or infinity for the text 'one'"], "NaN"),
    (lambda v: np.vstack([v[:2], v[2:] * np.inf]), BackendError, ["for the text 'three'"], "infinity in one row"),
    (lambda v: v * 3, BadInput, ["length 3", "L2-normalised"], "not normalised"),
    (
        lambda v: v[:, :3] / np.linalg.norm(v[:, :3], axis=1, keepdims=True),
        BadInput,
        ["the cached ones have 4"],
        "dim",
    ),
]


@pytest.mark.parametrize(("answer", "error", "parts", "why"), WRONG, ids=[row[3] for row in WRONG])
def test_a_wrong_answer_is_refused_and_not_kept(tmp_path, answer, error, parts, why):
    store = EmbeddingStore(tmp_path, "float32")
    add(store, ["zero"], Toy(4))
    with pytest.raises(error) as raised:
        add(store, ["one", "two", "three"], Answering(answer))
    message = str(raised.value)
    assert all(part in message for part in ["toy returned", *parts]), message
    assert "\n" not in message
    assert len(store) == 1


def test_a_cut_file_is_an_error_and_not_a_wrong_answer(tmp_path):
    store = build(tmp_path, 20, Toy())
    path = tmp_path / "store" / "vectors"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(BackendError, match="rusbeir cache clear embeddings"):
        store.read([0])
    (tmp_path / "corpus" / "rows.u32").write_bytes(b"\0" * 8)
    with pytest.raises(BackendError, match="do not fit together"):
        encoded_corpus.open_folder(tmp_path / "corpus", store)
