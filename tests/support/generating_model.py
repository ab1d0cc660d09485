"""A model at an endpoint that writes queries about the documents it gets, with flaws and faults that it records.

Its queries are words of a document, in another order: a document answers a query if it has nearly all of its words.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from tests.support.openai_server import Endpoint, Reply, completion, refusal

FAULTS = ("broken", "prose", "refusal", "cut", "form", "server", "rate-limited", "empty")
"""What becomes of a request; of the last three, its repetition is answered."""
ANSWERING_SHARE = 0.8
_WORD = re.compile(r"\w+")
_PAIR = re.compile(r"(?:Query|Запрос):\n(.*?)\n\n(?:Document|Документ):\n(.*)", re.DOTALL)
_LENGTHS = re.compile(r"(\d+) (?:to|до) (\d+)|(?:at least|не меньше) (\d+)")


def words_of(text: str) -> list[str]:
    """The words of a text, lower-cased, each once."""
    return list(dict.fromkeys(_WORD.findall(text.lower())))


def share_of(*parts: object) -> float:
    """A number from 0 to 1 that looks random, the same for the same parts."""
    digest = hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def take(tag: str, prompt: str) -> str:
    """What stands in a prompt between <tag> and </tag>."""
    return prompt.rpartition(f"<{tag}>")[2].partition(f"</{tag}>")[0].strip()


def answers(document: str, query: str) -> bool:
    """Whether a document answers a query: whether it has nearly all of its words."""
    words = words_of(query)
    return len(set(words) & set(words_of(document))) >= ANSWERING_SHARE * len(words)


class GeneratingModel(Endpoint):
    """Answers by the schema that it is given.

    faults is the share of requests that fail in one of the ways of FAULTS, each question twice at most. flaws are the
    shares of answers that are valid but bad, by name:
    "unanswerable": the query asks for what the document does not have; "answering": a hard negative answers the query;
    "insufficient": the document is said not to suffice; "absent": the reference is not verbatim; "copy": the query is
    copied; "wrong-label": the label of a pair is the opposite of the true one.
    planted records them: flaw -> queries, negatives, prompts or (query, document) pairs.
    """

    def __init__(self, *, faults: float = 0.0, flaws: Mapping[str, float] | None = None) -> None:
        super().__init__()
        self.faults = faults
        self.flaws = flaws or {}
        self.planted: dict[str, set[Any]] = defaultdict(set)
        self.failed: Counter[str] = Counter()
        self.questions: Counter[str] = Counter()
        """What was asked, by the property of the answer that tells it."""
        self.tokens = (0, 0)
        """Sent and answered, of all answers that say how many."""
        self._repeated: Counter[str] = Counter()
        self._lock = threading.Lock()

    def reply(self, asked: dict[str, Any]) -> Reply:
        prompt = "\n".join(message["content"] for message in asked["messages"])
        properties = asked["response_format"]["json_schema"]["schema"]["properties"]
        kind = next(name for name in properties if hasattr(self, f"write_{name}"))
        key = f"{asked.get('seed')}\0{prompt}"
        with self._lock:
            self.questions[kind] += 1
            self._repeated[key] += 1
            tokens = len(prompt.encode()) // 4, 40
            fault = self._find_fault(key, asked.get("seed") or 0)
            if fault not in FAULTS[-3:]:
                self.tokens = self.tokens[0] + tokens[0], self.tokens[1] + tokens[1]
            if fault:
                self.failed[fault] += 1
            else:
                text = json.dumps(getattr(self, f"write_{kind}")(prompt), ensure_ascii=False)
        match fault:
            case None:
                return completion(text, tokens=tokens)
            case "broken":
                return completion('{"' + kind + '": ["', tokens=tokens)
            case "prose":
                return completion("Here is what you asked for.", tokens=tokens)
            case "refusal":
                return completion(None, refusal="I cannot help with that.", tokens=tokens)
            case "cut":
                return completion('{"' + kind + '": "', finish="length", tokens=tokens)
            case "form":
                return completion('{"else": 1}', tokens=tokens)
            case "server":
                return refusal(503, "overloaded")
            case "rate-limited":
                return refusal(429, "slow down", retry_after="0")
            case _:
                return Reply(body='{"choices": []}')

    def billed(self, *, input_price: float, output_price: float) -> float:
        """The cost of all answers, at prices per million tokens."""
        return (self.tokens[0] * input_price + self.tokens[1] * output_price) / 1e6

    def flawed(self, flaw: str, key: str) -> bool:
        """Whether an answer about key has the flaw."""
        return share_of(flaw, key) < self.flaws.get(flaw, 0.0)

    def _find_fault(self, key: str, seed: int) -> str | None:
        if share_of("fault", key) >= self.faults:
            return None
        fault = FAULTS[int(len(FAULTS) * share_of("which", key))]
        again = self._repeated[key] > 1 if fault in FAULTS[-3:] else seed > 1
        return None if again else fault

    def write_characters(self, prompt: str) -> dict[str, Any]:
        return {"characters": [f"{word} ({n})" for n, word in enumerate(words_of(take("document", prompt))[:3])]}

    def write_scenarios(self, prompt: str) -> dict[str, Any]:
        return {"scenarios": [f"{take('person', prompt)}, {n}" for n in range(3)]}

    def write_query(self, prompt: str) -> dict[str, Any]:
        document = take("document", prompt)
        query = self._ask_about(document, prompt, prompt.partition("</situation>")[2])
        if self.flawed("copy", query):
            query = " ".join(document.split()[:8])
            self.planted["copy"].add(query)
        return {"query": query}

    def write_rewrites(self, prompt: str) -> dict[str, Any]:
        query = take("query", prompt).split()
        rewrites = [" ".join(query[n:] + query[:n]) for n in range(1, 4)]
        if " ".join(query) in self.planted["unanswerable"]:
            self.planted["unanswerable"].update(rewrites)
        return {"rewrites": rewrites}

    def write_negatives(self, prompt: str) -> dict[str, Any]:
        document, query = take("document", prompt), take("query", prompt)
        (count,) = re.findall(r"Write (\d+) other|числом (\d+),", prompt)
        asked = set(words_of(query))
        others = [word for word in document.split() if not asked & set(words_of(word))]
        negatives = []
        for n in range(int("".join(count))):
            place = n % max(len(others), 1)
            negatives.append(" ".join([*others[place:], *others[:place], query.split()[0], str(n)]))
            if self.flawed("answering", f"{query}\0{n}"):
                negatives[n] = f"{document} {n}"
                self.planted["answering"].add(negatives[n])
        return {"negatives": negatives}

    def write_sufficient(self, prompt: str) -> dict[str, Any]:
        part = take("part", prompt)
        if self.flawed("insufficient", prompt):
            self.planted["insufficient"].add(prompt)
            return {"sufficient": False, "question": "", "answer": ""}
        words = part.split()
        middle = len(words) // 2
        answer = " ".join(words[max(middle - 3, 0) : middle + 3])
        return {"sufficient": True, "question": self._ask_about(part, prompt, prompt), "answer": answer}

    def write_spans(self, prompt: str) -> dict[str, Any]:
        answer = take("answer", prompt)
        if self.flawed("absent", prompt):
            self.planted["absent"].add(take("query", prompt))
            return {"spans": [f"{answer} …"]}
        return {"spans": [answer]}

    def write_label(self, prompt: str) -> dict[str, Any]:
        ((query, document),) = _PAIR.findall(prompt)
        label = 3 if answers(document, query) else 0
        if self.flawed("wrong-label", f"{query}\0{document}"):
            self.planted["wrong-label"].add((query, document))
            label = 3 - label
        return {"label": label, "reason": "It has the words." if label else "It lacks the words."}

    def _ask_about(self, text: str, prompt: str, order: str) -> str:
        """A query about a text, of the length that the order names, of 6 words without one; it differs by prompt."""
        found = _LENGTHS.search(order)
        low, high = (int(found[1] or found[3]), int(found[2] or 25)) if found else (6, 6)
        words = words_of(text)
        n = min((low + high + 1) // 2, len(words))
        chosen = sorted(words, key=lambda word: share_of(prompt, word))[:n]
        if self.flawed("unanswerable", prompt):
            # In the same script, and too short for its language to be told.
            half = max(n // 2, 1)
            chosen = [word[::-1] + word[:2] for word in chosen[:half]] + chosen[half:]
            self.planted["unanswerable"].add(" ".join(chosen))
        return " ".join(chosen)
