"""People: sheets for them to score, a judge of the same texts, and how far they agree."""
