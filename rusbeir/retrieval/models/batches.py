"""Texts as tokens, in batches of similar length, on one device or several: what runs models shares this."""

from __future__ import annotations

import copy
import logging
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from rusbeir.errors import BackendError, BadInput, require
from rusbeir.retrieval.models.files import check_present, is_out_of_memory
from rusbeir.retrieval.models.linear_layers import fast_linear_layers
from rusbeir.retrieval.models.settings import Model
from rusbeir.text import batched, shorten

logger = logging.getLogger(__name__)

Places: TypeAlias = npt.NDArray[np.int64]
"""The places of texts in a pool."""
Keep: TypeAlias = Callable[[Places, npt.NDArray[Any]], None]
"""Takes the places of some texts and a row for each."""
Compute: TypeAlias = Callable[[str, Places, Mapping[str, Any]], Any]
"""From a device, the places of a batch and its tensors there to one tensor, a row for each text."""

BATCH_TOKENS = {"cpu": 2_048, "mps": 8_192, "cuda": 32_768}
"""Tokens of a batch, padding included. With more a processor waits for memory; a kill loses no more than a batch."""
CHUNK_TEXTS = 512
"""Texts tokenised at once."""
UNPADDED = {"common": {"return_tensors": None}, "text": {"padding": False}}
"""What sentence-transformers is told to return lists, cut but not padded."""


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Texts (or pairs) as a model reads them, cut at its length."""

    features: Mapping[str, Sequence[npt.NDArray[np.int32]]]
    """Name, such as input_ids -> an array for each text."""
    padding: Mapping[str, int]
    """Name -> what fills shorter texts."""
    left: bool
    """Whether they are filled in front."""
    over_length: Sequence[bool]
    """Which texts were cut."""
    batch_tokens: int
    """The tokens of a batch on the model's device, padding included."""
    shared: Mapping[str, Any] = field(default_factory=dict)
    """What the model is told once for the whole batch."""
    queries: bool = False

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        return np.fromiter(map(len, self.features["input_ids"]), np.int64)

    def batches(self) -> Iterator[Places]:
        """The places of each batch."""
        return plan(self.lengths, self.batch_tokens)

    def take(self, places: Places) -> Self:
        """Those texts alone. Whole batches of them, in their order, are the same batches again."""
        features = {name: [rows[place] for place in places] for name, rows in self.features.items()}
        return replace(self, features=features, over_length=[self.over_length[place] for place in places])

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """The texts of several parts as one, in memory of their own."""
        features = {name: [row.copy() for part in parts for row in part.features[name]] for name in parts[0].features}
        shared = {name: value for part in parts for name, value in part.shared.items()}
        over_length = [cut for part in parts for cut in part.over_length]
        return replace(parts[0], features=features, shared=shared, over_length=over_length)

    def pad(self, places: Places) -> dict[str, npt.NDArray[np.int64]]:
        """Those texts as arrays [n, longest], with an attention_mask."""
        found = {}
        lengths = [len(self.features["input_ids"][place]) for place in places]
        longest = max(lengths)
        for name, rows in self.features.items():
            found[name] = np.full((len(places), longest), self.padding.get(name, 0), np.int64)
            for line, place, length in zip(found[name], places, lengths, strict=True):
                line[longest - length if self.left else 0 :][:length] = rows[place]
        at, ends = np.arange(longest), np.array(lengths)[:, None]
        found["attention_mask"] = (at >= longest - ends if self.left else at < ends).astype(np.int64)
        return found


def tokenize(
    read: Callable[[list[Any]], Any],
    texts: Iterable[Any],
    tokenizer: Any,
    max_tokens: int | None,
    *,
    batch_tokens: int,
    queries: bool = False,
) -> Tokens:
    """The tokens of all texts, or pairs; read turns some of them into lists, cut but not padded."""
    features: dict[str, list[npt.NDArray[np.int32]]] = {}
    shared: dict[str, Any] = {}
    over_length: list[bool] = []
    for chunk in batched(texts, CHUNK_TEXTS):
        found = read(chunk)
        for name, rows in found.items():
            if not isinstance(rows, list):
                shared[name] = rows
            elif name != "attention_mask":
                features.setdefault(name, []).extend(np.array(row, np.int32) for row in rows)
        over_length += _find_cut(found, chunk, tokenizer, max_tokens)
    return Tokens(
        features=features or {"input_ids": []},
        padding={"input_ids": tokenizer.pad_token_id or 0, "token_type_ids": tokenizer.pad_token_type_id},
        left=tokenizer.padding_side == "left",
        over_length=over_length,
        batch_tokens=batch_tokens,
        shared=shared,
        queries=queries,
    )


def _find_cut(found: Any, chunk: Sequence[Any], tokenizer: Any, max_tokens: int | None) -> list[bool]:
    if max_tokens is None:
        return [False] * len(chunk)
    full = [len(row) >= max_tokens for row in found["input_ids"]]
    # Fast tokenizers keep what they cut off; slow ones must read the full texts again.
    encodings = getattr(found, "encodings", None)
    if encodings:
        return [whole and bool(one.overflowing) for whole, one in zip(full, encodings, strict=True)]
    return [
        whole and len(tokenizer(*(one if isinstance(one, tuple) else (one,)), verbose=False)["input_ids"]) > max_tokens
        for whole, one in zip(full, chunk, strict=True)
    ]


def plan(lengths: npt.NDArray[np.int64], max_tokens: int) -> Iterator[Places]:
    """The places of texts in batches of similar length, the longest first, each of at most max_tokens or one text.

    >>> [batch.tolist() for batch in plan(np.array([3, 9, 4, 2]), 10)]
    [[1], [2, 0], [3]]
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        end = start + max(1, max_tokens // max(1, int(lengths[order[start]])))
        yield order[start:end]
        start = end


@dataclass(kw_only=True)
class Devices:
    """Where one model runs: a copy of it on each device. Remembers which batches were too large."""

    names: tuple[str, ...]
    model: str
    """Its name in messages."""
    max_tokens: int = 0
    """The tokens of a batch that fits; 0 while all did."""
    lock: Any = field(default_factory=threading.Lock, repr=False)

    @property
    def batch_tokens(self) -> int:
        return BATCH_TOKENS[self.names[0].partition(":")[0]]

    def run(self, tokens: Tokens, done: Set[int], compute: Compute, keep: Keep) -> None:
        """Call keep(places, rows) for every batch that is not done; batches depend on the tokens only."""
        batches = (batch for batch in tokens.batches() if not done >= set(batch.tolist()))
        if len(self.names) > 1:
            self._run_all(batches, tokens, compute, keep)
            return
        # The next batch is on its way before the rows of the last are fetched, so a card never waits.
        behind: list[tuple[Places, Any]] = []
        for batch in batches:
            ahead = self._compute(batch, tokens, compute, self.names[0])
            for places, rows in behind:
                keep(places, _fetch(rows))
            behind = ahead
        for places, rows in behind:
            keep(places, _fetch(rows))

    def _run_all(self, batches: Iterator[Places], tokens: Tokens, compute: Compute, keep: Keep) -> None:
        free: queue.SimpleQueue[str] = queue.SimpleQueue()
        for name in self.names:
            free.put(name)

        def run(batch: Places) -> list[tuple[Places, npt.NDArray[Any]]]:
            device = free.get()
            try:
                return [(places, _fetch(rows)) for places, rows in self._compute(batch, tokens, compute, device)]
            finally:
                free.put(device)

        pool = ThreadPoolExecutor(len(self.names))
        try:
            for found in pool.map(run, batches):
                for places, rows in found:
                    keep(places, rows)
        finally:
            pool.shutdown(cancel_futures=True)

    def _compute(self, batch: Places, tokens: Tokens, compute: Compute, device: str) -> list[tuple[Places, Any]]:
        """Parts of the batch with their rows: one part if it fits."""
        torch = load_torch()
        padded = tokens.pad(batch)
        size = padded["input_ids"].size
        if not self.max_tokens or size <= self.max_tokens or len(batch) == 1:
            try:
                with torch.inference_mode(), fast_linear_layers(torch, device):
                    tensors = {name: torch.from_numpy(array).to(device) for name, array in padded.items()}
                    return [(batch, compute(device, batch, {**tensors, **tokens.shared}))]
            except (RuntimeError, IndexError) as error:
                if not is_out_of_memory(error):
                    raise BackendError(
                        f"{self.model} failed on {device} with texts of {padded['input_ids'].shape[1]:,} tokens "
                        f"({type(error).__name__}: {shorten(str(error), 160)}). If it reads fewer, set max_tokens=."
                    ) from error
                if len(batch) == 1:
                    raise BackendError(
                        f"{device} has too little memory for {self.model} and one text of {size:,} tokens "
                        f"({shorten(str(error), 80)}). Set a smaller max_tokens=, precision=bfloat16 or device=cpu."
                    ) from error
            # Not within the except clause, where the error still holds on to the tensors.
            self._shrink(size // 2, device)
        half = len(batch) // 2
        return [part for some in (batch[:half], batch[half:]) for part in self._compute(some, tokens, compute, device)]

    def _shrink(self, max_tokens: int, device: str) -> None:
        with self.lock:
            if not self.max_tokens:
                logger.warning("%s ran out of memory on %s; batches of half the size follow.", self.model, device)
            self.max_tokens = min(self.max_tokens or max_tokens, max_tokens)
        if device.startswith("cuda"):
            load_torch().cuda.empty_cache()


def _fetch(rows: Any) -> npt.NDArray[Any]:
    """A tensor on the processor; NumPy has no bfloat16."""
    return np.asarray((rows.float() if rows.dtype.itemsize < 4 else rows).cpu().numpy())


def load_torch() -> Any:
    """The module torch. Raises MissingExtra."""
    return require("torch", "A model's device", "sentence-transformers")


def copy_to(model: Any, devices: Sequence[str]) -> Mapping[str, Any]:
    """Device -> the model there; it is on the first already."""
    first, *others = devices
    found = {first: model}
    for name in others:
        if name in found:
            continue
        try:
            found[name] = copy.deepcopy(model).to(name)
        except RuntimeError as error:
            raise BackendError(f"The model cannot be copied to {name} ({shorten(str(error), 160)}).") from error
    return found


def check_runnable(model: Model) -> None:
    """Raise BackendError where a model is not there, BadInput where no device computes as it asks."""
    check_present(model)
    if model.device or model.precision != "float32":
        find_devices(model.device, model.precision)


def find_devices(names: str, precision: str) -> tuple[str, ...]:
    """The devices of device=, or else the best of this machine.

    Raises BadInput for one that is not there, or that does not compute in that precision.
    """
    torch = load_torch()
    here = ["cpu"]
    if torch.backends.mps.is_available():
        here.insert(0, "mps")
    here[:0] = [f"cuda:{number}" for number in range(torch.cuda.device_count() if torch.cuda.is_available() else 0)]
    found = tuple("cuda:0" if name == "cuda" else name for name in names.split("+")) if names else (here[0],)
    for name in found:
        if name not in here:
            raise BadInput(f"device={names}: {name} is not on this machine. Available: {', '.join(here)}.")
        # Older cards imitate bfloat16, many times slower.
        imitated = name.startswith("cuda") and precision == "bfloat16" and not torch.cuda.is_bf16_supported(False)
        if imitated or not _computes(name, precision):
            raise BadInput(f"{name} does not compute in {precision}. Set precision=float32, or another device=.")
    return found


def _computes(device: str, precision: str) -> bool:
    """Whether the operations of every encoder work there."""
    torch = load_torch()
    try:
        ones = torch.ones((2, 4, 8, 16), dtype=getattr(torch, precision), device=device)
        found = torch.nn.functional.scaled_dot_product_attention(ones, ones, ones) @ ones.mT
        torch.nn.functional.gelu(torch.nn.functional.layer_norm(found, (8,))).float().cpu()
    except RuntimeError:
        return False
    return True
