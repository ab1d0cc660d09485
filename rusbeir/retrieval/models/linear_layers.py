"""Linear layers on processors where the library that torch calls for them is slow."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any

PROCESSORS = Path("/proc/cpuinfo")


def fast_linear_layers(torch: Any, device: str) -> AbstractContextManager[object]:
    """While this lasts, models without gradients compute linear layers in float32 as fast as the device can.

    torch calls MKL for them, which uses half the width of AVX-512 on processors that are not Intel's; oneDNN, which
    comes with torch too, uses all of it. Numbers differ in the last digits.
    """
    return _onednn_mode(torch)() if device == "cpu" and _is_mkl_slow(torch) else contextlib.nullcontext()


def _is_mkl_slow(torch: Any) -> bool:
    backends = torch.backends
    if not (backends.mkl.is_available() and backends.mkldnn.is_available()):
        return False
    return backends.cpu.get_cpu_capability() == "AVX512" and _is_of_another_maker(PROCESSORS)


@cache
def _is_of_another_maker(processors: Path) -> bool:
    """Return whether that file, which Linux has, says that the processor is not Intel's."""
    return processors.is_file() and "GenuineIntel" not in processors.read_text(encoding="utf-8")


@cache
def _onednn_mode(torch: Any) -> Callable[[], AbstractContextManager[object]]:
    """A class of modes, made when torch is there."""
    linear = torch.nn.functional.linear

    class OneDnn(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, function: Any, types: Any, args: Sequence[Any] = (), options: Mapping[str, Any] | None = None
        ) -> Any:
            if function is linear and not options and args[0].dtype == torch.float32:
                return linear(*(part if part is None else part.to_mkldnn() for part in args)).to_dense()
            return function(*args, **(options or {}))

    return OneDnn
