"""What encoders have in common that a class of sentence-transformers loads: tokens, devices, prefixes and lengths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from rusbeir.errors import BadInput, require, require_version
from rusbeir.retrieval.models import files as model_files
from rusbeir.retrieval.models.batches import UNPADDED, Devices, Tokens, check_runnable, copy_to, find_devices, tokenize
from rusbeir.retrieval.models.settings import INT8, Kind, Model

NEEDED_BY = "The runtime sentence-transformers", "sentence-transformers"


@dataclass(frozen=True, kw_only=True)
class LibraryEncoder:
    """Shared by the encoders of sentence-transformers; a base class, as all of them tokenise and load alike."""

    model: Model
    kind: ClassVar[Kind]
    """The family of models that it runs."""
    library_class: ClassVar[str]
    """The class of sentence-transformers that loads them."""

    @property
    def signature(self) -> str:
        version = require_version("sentence-transformers", *NEEDED_BY)
        return (
            f"{model_files.sign(self.signed)}|runtime:sentence-transformers-{version}"
            f"|precision:{name_precision(self.model)}"
        )

    @property
    def signed(self) -> Model:
        """The settings that are in the signature."""
        return self.model

    def check_available(self) -> None:
        check_runnable(self.model)
        model_files.check_family(self.model, self.kind)

    @property
    def truncation(self) -> str:
        return f"cut at {self.find_length(queries=False)} tokens"

    def count_truncated(self, texts: Sequence[str]) -> int:
        """Count the documents that are longer, with their prefix, than the model reads."""
        return sum(self.find_truncated(texts, queries=False))

    def find_truncated(self, texts: Sequence[str], *, queries: bool) -> list[bool]:
        """Return for each text whether it is longer, with its prefix, than the model reads."""
        prefix, tokenizer = self.find_prefix(queries=queries), self.find_input(queries=queries).tokenizer
        prefixed = [prefix + text for text in texts]
        return model_files.are_truncated(tokenizer, self.find_length(queries=queries), prefixed)

    def tokenize(self, texts: Iterable[str], *, queries: bool) -> Tokens:
        """Return what the model reads of each text, its prefix included."""
        prefix = self.find_prefix(queries=queries)
        limits = self.find_input(queries=queries).tokenizer, self.find_length(queries=queries)
        return tokenize(
            lambda chunk: self.read(chunk, prefix, queries=queries), texts, *limits,
            batch_tokens=self.batch_tokens, queries=queries,
        )  # fmt: skip

    def read(self, chunk: list[str], prefix: str, *, queries: bool) -> Any:
        """Return lists of what the model reads of some texts, cut but not padded."""
        # As a prompt, even an empty one: it replaces the model's own, and a pooling may leave out prompts.
        return self.transformer.preprocess(chunk, prompt=prefix, task=name_task(queries), processing_kwargs=UNPADDED)

    def find_prefix(self, *, queries: bool) -> str:
        """Return the text in front of every query, or document."""
        return self.prompted.query_prefix if queries else self.prompted.document_prefix

    def find_length(self, *, queries: bool) -> int | None:
        """Return how many tokens the model reads of a query, or document."""
        length: int | None = self.find_input(queries=queries).max_seq_length
        return length

    def find_input(self, *, queries: bool) -> Any:
        """Return the module that tokenises queries, or documents; a router has one for each."""
        first, task = self.transformer[0], name_task(queries)
        router = require("sentence_transformers.base.modules", *NEEDED_BY).Router
        return first.sub_modules[task][0] if isinstance(first, router) and task in first.sub_modules else first

    @property
    def batch_tokens(self) -> int:
        """The tokens of a batch on the model's device, padding included."""
        return self.devices.batch_tokens

    @property
    def prompted(self) -> Model:
        """The settings with the prompts in the model's own files, where no other prefixes are set."""
        return model_files.add_own_prompts(self.model)

    @cached_property
    def transformer(self) -> Any:
        """The model on the first device. Raises BadInput for a model of another family."""
        model_files.check_family(self.model, self.kind)
        with model_files.explain_failure(self.model):
            transformer = self.load()
        # Only now are the files of a model from the hub here.
        model_files.check_family(self.model, self.kind)
        self.configure(transformer)
        return in_its_precision(transformer.eval(), self.model)

    def load(self) -> Any:
        """Load the model on the first device."""
        model_files.silence_transformers()
        where, revision = model_files.locate(self.model)
        load = getattr(require("sentence_transformers", *NEEDED_BY), self.library_class)
        # Without a precision transformers computes in the one that the weights are stored in.
        options = {"model_kwargs": {"dtype": self.model.loaded_precision}, "device": self.devices.names[0]}
        return load(where, revision=revision, **options)

    def configure(self, transformer: Any) -> None:
        """Make a loaded model what the settings say."""
        if self.model.max_tokens:
            transformer.max_seq_length = self.model.max_tokens

    @cached_property
    def devices(self) -> Devices:
        return Devices(names=find_devices(self.model.device, self.model.precision), model=self.model.name)

    @cached_property
    def copies(self) -> Mapping[str, Any]:
        """The model on each device."""
        return copy_to(self.transformer, self.devices.names)


def name_precision(model: Model) -> str:
    """Return the precision of a model in signatures; of integers, with what makes them.

    Raises MissingExtra where integers need packages that are not installed.
    """
    if model.precision != INT8:
        return model.precision
    from rusbeir.retrieval.models import eight_bits

    return f"{INT8}/{eight_bits.name_libraries()}"


def in_its_precision(transformer: Any, model: Model) -> Any:
    """Return a loaded model as its settings say: one in integers gets them here."""
    if model.precision == INT8:
        from rusbeir.retrieval.models import eight_bits

        eight_bits.quantise(transformer, model_files.sign(model))
    return transformer


def name_task(queries: bool) -> str:
    """Return what sentence-transformers calls the encoding of queries, or documents."""
    return "query" if queries else "document"


def refuse_remote_code(model: Model) -> None:
    """Raise BadInput for a model that needs code from its own repository."""
    if model.remote_code:
        raise BadInput(
            f"{model.name} needs code from its own repository, which rusbeir does not run. "
            "Load it in your own module: dense(python:package.module.factory)."
        )
