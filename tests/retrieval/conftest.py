from __future__ import annotations

import pytest


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    """The name of an engine, whose server runs if it has one."""
    name: str = request.param
    if name == "elasticsearch":
        request.getfixturevalue("elasticsearch")
    return name
