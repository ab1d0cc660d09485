"""How every failure on the command line must look."""

from __future__ import annotations


def one_line(err: str, parts: list[str]) -> bool:
    """The last line is rusbeir's, the only one about the failure, and contains the parts."""
    lines = err.strip().splitlines()
    assert "Traceback" not in err
    assert len([line for line in lines if line.startswith("rusbeir: ") and "warning" not in line]) == 1, err
    missing = [part for part in parts if part not in lines[-1]]
    assert not missing, f"{missing} not in {lines[-1]!r}"
    return True
