"""`rusbeir languages`: which languages have an analyzer, and which profiles."""

from __future__ import annotations

from rusbeir.cli import options, output


def languages(as_json: options.Json = False) -> None:
    """List the languages with their profiles.

    Example: rusbeir languages
    """
    from rusbeir.analysis import Analyzer
    from rusbeir.analysis import languages as registered

    rows = [
        {
            "language": language.code,
            "name": language.name,
            "profiles": {name: Analyzer(language.code, name).signature for name in language.profiles},
        }
        for language in registered().values()
    ]
    if as_json:
        output.print_json(rows)
        return
    output.print_table(
        ["language", "name", "profiles"],
        [[str(row["language"]), str(row["name"]), ", ".join(row["profiles"])] for row in rows],
    )
