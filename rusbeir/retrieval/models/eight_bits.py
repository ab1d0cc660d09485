"""Networks in integers of 8 bits on a processor, by OpenVINO.

OpenVINO converts the network in memory, and NNCF quantises its weights and activations; the ranges of activations are
those of the collection `mini`. Both come with one extra, do not depend on a version of transformers, and need no
export by the model's authors. ONNX Runtime is left out: its converter for these models, optimum-onnx, needs a
transformers older than 4.58, and this product a newer one.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import sys
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from rusbeir.datasets import load
from rusbeir.errors import BadInput, require, require_version
from rusbeir.retrieval.models.batches import load_torch
from rusbeir.storage import atomic_folder, cache_folder
from rusbeir.text import digest, shorten

logger = logging.getLogger(__name__)

NEEDED_BY = "precision=int8", "int8"
TEXTS = 30
"""The documents of each language of `mini` whose activations are measured."""
CALIBRATION = f"mini:{TEXTS}"
_NETWORK = "network.xml"


def name_libraries() -> str:
    """Name the versions and the texts that decide the integers."""
    versions = "/".join(f"{name}-{require_version(name, *NEEDED_BY)}" for name in ("openvino", "nncf"))
    return f"{versions}/{CALIBRATION}"


def quantise(transformer: Any, signature: str) -> None:
    """Replace the network of a model of sentence-transformers by one of 8 bits, which is kept in the cache.

    Args:
        transformer: The loaded model, in float32 on the processor; it is changed.
        signature: What decides the weights, such as the name, the revision and a digest of the files.

    Raises:
        MissingExtra: if OpenVINO or NNCF is not installed.
        BadInput: if OpenVINO cannot convert the network, or the model has none or several.
    """
    name = signature.partition("|")[0]
    parts = [module for module in transformer.modules() if hasattr(module, "modality_config")]
    if len(parts) != 1:
        raise BadInput(f"precision=int8 is for models with one network; {name} has {len(parts)}.")
    (part,) = parts
    network = part.model
    folder = cache_folder() / "int8" / digest(signature, name_libraries(), type(network).__name__, chars=12)
    if not (folder / _NETWORK).is_file():
        logger.info("%s is quantised to 8 bits; this is done once", name)
        with atomic_folder(folder, keyed=True) as temporary, _quiet():
            _convert(transformer, part, temporary / _NETWORK)
    part.model = _make_module(network, folder / _NETWORK, _name_inputs(network, part), _name_output(part))


def _name_output(part: Any) -> str:
    """Return the name of the network's output that the model reads."""
    name = part.modality_config["text"]["method_output_name"]
    if not isinstance(name, str):
        raise BadInput(
            f"precision=int8 cannot be used with a model that reads {'.'.join(map(str, name))} of its network."
        )
    return name


def _convert(transformer: Any, part: Any, path: Path) -> None:
    """Convert and quantise the network of a part, and write it."""
    torch, openvino, nncf = load_torch(), _load_openvino(), require("nncf", *NEEDED_BY)
    network, output = part.model, _name_output(part)
    names = _name_inputs(network, part)

    class OneOutput(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, *inputs: Any) -> Any:
            return self.network(**dict(zip(names, inputs, strict=True)), return_dict=True)[output]

    samples = [tuple(features[name] for name in names) for features in _read_samples(transformer)]
    try:
        converted = openvino.convert_model(OneOutput().eval(), example_input=samples[0])
    except Exception as error:  # Each frontend of OpenVINO raises errors of its own.
        raise BadInput(
            f"OpenVINO cannot convert {type(network).__name__} ({shorten(str(error), 160)}). Leave out precision=int8."
        ) from error
    arrays = [[tensor.numpy() for tensor in sample] for sample in samples]
    quantised = nncf.quantize(
        converted, nncf.Dataset(arrays), model_type=nncf.ModelType.TRANSFORMER, subset_size=len(arrays)
    )
    openvino.save_model(quantised, path, compress_to_fp16=False)


def _name_inputs(network: Any, part: Any) -> list[str]:
    """Return the names of the network's inputs that the tokenizer makes."""
    known = inspect.signature(network.forward).parameters
    return [name for name, value in part.preprocess(["a"]).items() if name in known and hasattr(value, "numpy")]


def _read_samples(transformer: Any) -> Iterator[Any]:
    """Yield the features of single texts of `mini`, or of its queries with a judged document for a reranker."""
    pairs = hasattr(transformer, "num_labels")
    for name in ("mini/en", "mini/ru"):
        dataset = load(name)
        for query_id, grades in islice(dataset.qrels.items(), TEXTS):
            document = dataset.corpus[next(iter(grades))].full_text
            if pairs:
                yield transformer.preprocess([(dataset.queries[query_id], document)])
            else:
                # A router has other modules for queries.
                yield transformer.preprocess([document], task="document")


def _make_module(network: Any, path: Path, names: list[str], output: str) -> Any:
    """Make a module that computes what the network does, from the written file."""
    torch, openvino = load_torch(), _load_openvino()
    # The class below must not keep the network itself, whose weights are no longer needed.
    config = network.config
    compiled = openvino.Core().compile_model(
        path, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": torch.get_num_threads()}
    )

    class EightBits(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.config = config
            # A module's device and type are those of its first parameter.
            self.anchor = torch.nn.Parameter(torch.empty(0), requires_grad=False)

        def forward(self, **inputs: Any) -> Any:
            return {output: torch.from_numpy(compiled([inputs[name].numpy() for name in names])[0])}

    return EightBits()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep progress off standard output, where results are, and warnings of a trace away."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
        warnings.simplefilter("ignore")
        yield


def _load_openvino() -> Any:
    """Import OpenVINO without its telemetry, which would tell a server of each conversion; NNCF uses the same."""
    # What is None cannot be imported, and both packages do without.
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    return require("openvino", *NEEDED_BY)
