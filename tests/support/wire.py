"""HTTP/1.1 by hand: requests read, responses written."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit


class Request(NamedTuple):
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


JSON = {"Content-Type": "application/json; charset=UTF-8"}
HTML = {"Content-Type": "text/html; charset=UTF-8"}


class Response(NamedTuple):
    status: int
    body: str
    headers: dict[str, str] = JSON


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    target = urlsplit(first.split(" ")[1])
    return Request(target.path, parse_qs(target.query, keep_blank_values=True), headers, body)


def written(response: Response) -> bytes:
    body = response.body.encode()
    headers = {**response.headers, "Content-Length": str(len(body))}
    phrase = HTTPStatus(response.status).phrase if response.status in list(HTTPStatus) else "Own"
    lines = [f"HTTP/1.1 {response.status} {phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body
