"""Print pip constraints that hold every dependency at the lowest version that pyproject.toml allows.

python scripts/floors.py > floors.txt && pip install --constraint floors.txt '.[audit,report]'
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def list_floors() -> list[str]:
    """The constraints, sorted; extras of rusbeir itself have none, and tools of developers are not held."""
    optional = PROJECT["optional-dependencies"]
    texts = [*PROJECT["dependencies"], *(text for extra in optional if extra != "dev" for text in optional[extra])]
    floors = {}
    for requirement in map(Requirement, texts):
        lowest = [specifier.version for specifier in requirement.specifier if specifier.operator in (">=", "==")]
        if lowest and requirement.name != "rusbeir":
            floors[requirement.name.lower()] = f"{requirement.name}=={lowest[0]}"
    return sorted(floors.values())


if __name__ == "__main__":
    print(*list_floors(), sep="\n")
