"""Turn texts into tokens, and compute them in batches of similar length on one device or several."""

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
from rusbeir.retrieval.models.settings import INT8, Model
from rusbeir.text import batched, shorten

logger = logging.getLogger(__name__)

Indices: TypeAlias = npt.NDArray[np.int64]
"""The indices of some texts in a pool."""
Keep: TypeAlias = Callable[[Indices, npt.NDArray[Any]], None]
"""Called with the indices of some texts and a row for each."""
Compute: TypeAlias = Callable[[str, Indices, Mapping[str, Any]], Any]
"""Called with a device, the indices of a batch and its tensors there; returns one tensor, a row for each text."""

BATCH_TOKENS = {"cpu": 2_048, "mps": 8_192, "cuda": 32_768}
"""Device -> the tokens of a batch, padding included. A processor waits for memory with more of them."""
CHUNK_TEXTS = 512
"""The texts that are tokenised at once."""
UNPADDED = {"common": {"return_tensors": None}, "text": {"padding": False}}
"""Options with which sentence-transformers returns lists, cut but not padded."""


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Texts, or pairs of texts, as a model reads them, cut at its length."""

    features: Mapping[str, Sequence[npt.NDArray[np.int32]]]
    """Name, such as input_ids -> an array for each text."""
    padding: Mapping[str, int]
    """Name -> the number that fills shorter texts."""
    left: bool
    """Whether shorter texts are filled in front."""
    over_length: Sequence[bool]
    """Whether each text was cut."""
    batch_tokens: int
    """The tokens of a batch on the model's device, padding included."""
    shared: Mapping[str, Any] = field(default_factory=dict)
    """Inputs of the model that are the same for the whole batch."""
    queries: bool = False

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        return np.fromiter(map(len, self.features["input_ids"]), np.int64)

    def batches(self) -> Iterator[Indices]:
        """Yield the indices of each batch."""
        return plan_batches(self.lengths, self.batch_tokens)

    def take(self, indices: Indices) -> Self:
        """Return those texts alone. Whole batches of texts, in their order, become the same batches again."""
        features = {name: [rows[index] for index in indices] for name, rows in self.features.items()}
        return replace(self, features=features, over_length=[self.over_length[index] for index in indices])

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Join the texts of several parts, in new memory."""
        features = {name: [row.copy() for part in parts for row in part.features[name]] for name in parts[0].features}
        shared = {name: value for part in parts for name, value in part.shared.items()}
        over_length = [cut for part in parts for cut in part.over_length]
        return replace(parts[0], features=features, shared=shared, over_length=over_length)

    def pad(self, indices: Indices) -> dict[str, npt.NDArray[np.int64]]:
        """Return those texts as arrays [n, longest], with an attention_mask."""
        arrays = {}
        lengths = [len(self.features["input_ids"][index]) for index in indices]
        longest = max(lengths)
        for name, rows in self.features.items():
            arrays[name] = np.full((len(indices), longest), self.padding.get(name, 0), np.int64)
            for line, index, length in zip(arrays[name], indices, lengths, strict=True):
                line[longest - length if self.left else 0 :][:length] = rows[index]
        columns, ends = np.arange(longest), np.array(lengths)[:, None]
        arrays["attention_mask"] = (columns >= longest - ends if self.left else columns < ends).astype(np.int64)
        return arrays


def tokenize(
    read: Callable[[list[Any]], Any],
    texts: Iterable[Any],
    tokenizer: Any,
    max_tokens: int | None,
    *,
    batch_tokens: int,
    queries: bool = False,
) -> Tokens:
    """Tokenise all texts, or pairs; read turns some of them into lists, cut but not padded."""
    features: dict[str, list[npt.NDArray[np.int32]]] = {}
    shared: dict[str, Any] = {}
    over_length: list[bool] = []
    for chunk in batched(texts, CHUNK_TEXTS):
        encoding = read(chunk)
        for name, rows in encoding.items():
            if not isinstance(rows, list):
                shared[name] = rows
            elif name != "attention_mask":
                features.setdefault(name, []).extend(np.array(row, np.int32) for row in rows)
        over_length += _find_cut(encoding, chunk, tokenizer, max_tokens)
    return Tokens(
        features=features or {"input_ids": []},
        padding={"input_ids": tokenizer.pad_token_id or 0, "token_type_ids": tokenizer.pad_token_type_id},
        left=tokenizer.padding_side == "left",
        over_length=over_length,
        batch_tokens=batch_tokens,
        shared=shared,
        queries=queries,
    )


def _find_cut(encoding: Any, chunk: Sequence[Any], tokenizer: Any, max_tokens: int | None) -> list[bool]:
    """Return for each text, or pair, whether it was cut."""
    if max_tokens is None:
        return [False] * len(chunk)
    full = [len(row) >= max_tokens for row in encoding["input_ids"]]
    # Fast tokenizers keep what they cut off; slow ones must read the full texts again.
    parts = getattr(encoding, "encodings", None)
    if parts:
        return [is_full and bool(part.overflowing) for is_full, part in zip(full, parts, strict=True)]
    return [
        is_full
        and len(tokenizer(*(text if isinstance(text, tuple) else (text,)), verbose=False)["input_ids"]) > max_tokens
        for is_full, text in zip(full, chunk, strict=True)
    ]


def plan_batches(lengths: npt.NDArray[np.int64], max_tokens: int) -> Iterator[Indices]:
    """Yield the indices of texts in batches of similar length, the longest first, of at most max_tokens or one text.

    >>> [batch.tolist() for batch in plan_batches(np.array([3, 9, 4, 2]), 10)]
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
    """Runs one model, of which each device has a copy, and remembers which batches were too large."""

    names: tuple[str, ...]
    model: str
    """The name of the model in messages."""
    max_tokens: int = 0
    """The tokens of a batch that fits; 0 while every batch has fitted."""
    lock: Any = field(default_factory=threading.Lock, repr=False)

    @property
    def batch_tokens(self) -> int:
        return BATCH_TOKENS[self.names[0].partition(":")[0]]

    def run(self, tokens: Tokens, done: Set[int], compute: Compute, keep: Keep) -> None:
        """Call keep(indices, rows) for every batch that is not done; batches depend on the tokens only."""
        batches = (batch for batch in tokens.batches() if not done >= set(batch.tolist()))
        if len(self.names) > 1:
            self._run_all(batches, tokens, compute, keep)
            return
        # The next batch has been started before the rows of the last are fetched, so a card never waits.
        behind: list[tuple[Indices, Any]] = []
        for batch in batches:
            ahead = self._compute(batch, tokens, compute, self.names[0])
            for indices, rows in behind:
                keep(indices, _fetch(rows))
            behind = ahead
        for indices, rows in behind:
            keep(indices, _fetch(rows))

    def _run_all(self, batches: Iterator[Indices], tokens: Tokens, compute: Compute, keep: Keep) -> None:
        free: queue.SimpleQueue[str] = queue.SimpleQueue()
        for name in self.names:
            free.put(name)

        def run(batch: Indices) -> list[tuple[Indices, npt.NDArray[Any]]]:
            device = free.get()
            try:
                return [(indices, _fetch(rows)) for indices, rows in self._compute(batch, tokens, compute, device)]
            finally:
                free.put(device)

        pool = ThreadPoolExecutor(len(self.names))
        try:
            for parts in pool.map(run, batches):
                for indices, rows in parts:
                    keep(indices, rows)
        finally:
            pool.shutdown(cancel_futures=True)

    def _compute(self, batch: Indices, tokens: Tokens, compute: Compute, device: str) -> list[tuple[Indices, Any]]:
        """Compute the batch, and return its parts with their rows: one part if it fits."""
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
            # This comes after the except clause, in which the error still refers to the tensors.
            self._shrink(size // 2, device)
        half = len(batch) // 2
        halves = batch[:half], batch[half:]
        return [part for smaller in halves for part in self._compute(smaller, tokens, compute, device)]

    def _shrink(self, max_tokens: int, device: str) -> None:
        with self.lock:
            if not self.max_tokens:
                logger.warning("%s ran out of memory on %s; batches of half the size follow.", self.model, device)
            self.max_tokens = min(self.max_tokens or max_tokens, max_tokens)
        if device.startswith("cuda"):
            load_torch().cuda.empty_cache()


def _fetch(rows: Any) -> npt.NDArray[Any]:
    """Copy a tensor to the processor; NumPy has no bfloat16."""
    return np.asarray((rows.float() if rows.dtype.itemsize < 4 else rows).cpu().numpy())


def load_torch() -> Any:
    """Import the module torch. Raises MissingExtra where it is not installed."""
    return require("torch", "A model's device", "sentence-transformers")


def copy_to(model: Any, devices: Sequence[str]) -> Mapping[str, Any]:
    """Copy the model, which is on the first device, to the others; return device -> the model there."""
    first, *others = devices
    copies = {first: model}
    for name in others:
        if name in copies:
            continue
        try:
            copies[name] = copy.deepcopy(model).to(name)
        except RuntimeError as error:
            raise BackendError(f"The model cannot be copied to {name} ({shorten(str(error), 160)}).") from error
    return copies


def check_runnable(model: Model) -> None:
    """Raise BackendError where a model is missing, and BadInput where no device computes as its settings say."""
    check_present(model)
    if model.adapters and model.precision == INT8:
        raise BadInput(f"{model.name} changes its network by adapters, which precision=int8 cannot: leave it out.")
    if model.device or model.precision != "float32":
        find_devices(model.device, model.precision)


def find_devices(names: str, precision: str) -> tuple[str, ...]:
    """Return the devices that device= names, or else the best device of this machine.

    Raises BadInput for a device that is not on this machine, or does not compute in that precision.
    """
    if precision == INT8:
        if names not in ("", "cpu"):
            raise BadInput(f"precision=int8 is computed on the processor: leave out device={names}.")
        return ("cpu",)
    torch = load_torch()
    here = ["cpu"]
    if torch.backends.mps.is_available():
        here.insert(0, "mps")
    here[:0] = [f"cuda:{number}" for number in range(torch.cuda.device_count() if torch.cuda.is_available() else 0)]
    devices = tuple("cuda:0" if name == "cuda" else name for name in names.split("+")) if names else (here[0],)
    for name in devices:
        if name not in here:
            raise BadInput(f"device={names}: {name} is not on this machine. Available: {', '.join(here)}.")
        # Older cards imitate bfloat16, many times slower.
        imitated = name.startswith("cuda") and precision == "bfloat16" and not torch.cuda.is_bf16_supported(False)
        if imitated or not _computes(name, precision):
            raise BadInput(f"{name} does not compute in {precision}. Set precision=float32, or another device=.")
    return devices


def _computes(device: str, precision: str) -> bool:
    """Try whether the operations of every encoder work there."""
    torch = load_torch()
    try:
        ones = torch.ones((2, 4, 8, 16), dtype=getattr(torch, precision), device=device)
        products = torch.nn.functional.scaled_dot_product_attention(ones, ones, ones) @ ones.mT
        torch.nn.functional.gelu(torch.nn.functional.layer_norm(products, (8,))).float().cpu()
    except RuntimeError:
        return False
    return True
