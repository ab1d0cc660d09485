"""Functions such as a user might write."""

from __future__ import annotations

import asyncio

from rusbeir.jobs import Transient
from rusbeir.translation.translator import Failure
from tests.support.checkable import LETTERS


def plain(texts, source, target):
    return [text.translate(LETTERS) if text.translate(LETTERS) != text else f"{text}*" for text in texts]


async def asynchronous(texts, source, target):
    await asyncio.sleep(0)
    return plain(texts, source, target)


def versioned(texts, source, target):
    return plain(texts, source, target)


versioned.signature = "own model 2\nkey"


def breaks_on_b(texts, source, target):
    if any("b" in text for text in texts):
        raise KeyError("b")
    return plain(texts, source, target)


def too_few(texts, source, target):
    return ["x"]


def one_string(texts, source, target):
    return "x" * len(texts)


def mixed(texts, source, target):
    return [Failure("refused", "no", False), None, "", "ответ"]


def overloaded(texts, source, target):
    raise Transient("rate-limited", detail="come back later")
