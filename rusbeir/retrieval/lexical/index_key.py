"""What an index was made of, and the name that follows from it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The system's signature and the corpus that an index holds."""

    signature: str
    fingerprint: str

    def folder_name(self, slug: str) -> str:
        """A readable start and a hash of the whole recipe: `bm25-profile-raw-1f3a…`."""
        readable = re.sub(r"[^a-z0-9._]+", "-", slug.lower()).strip("-.")[:60]
        digest = hashlib.sha256(f"{self.signature}\n{self.fingerprint}".encode()).hexdigest()[:12]
        return f"{readable}-{digest}"
