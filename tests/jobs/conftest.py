"""What the tests of jobs share."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from openai_server import Endpoint


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """A server that answers by endpoint.script, and well when that is used up."""
    endpoint = Endpoint()
    thread = threading.Thread(target=endpoint.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield endpoint
    endpoint.over.set()
    endpoint.server.shutdown()
    endpoint.server.server_close()
    thread.join()
