"""Draw docs/analysis.svg, the README's picture, from rows measured on the spot: `make picture`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rusbeir.experiment import bench

TARGET = Path(__file__).parent.parent / "docs" / "analysis.svg"
DATASETS = ["xquad/ru", "xquad/ru/sentences", "mini/ru"]
SYSTEMS = {
    "bm25(profile=raw)": ("words unchanged", "#b9c4cc"),
    "bm25(profile=snowball)": ("Snowball stems", "#6f9bb8"),
    "bm25": ("lemmas, then stems (the default)", "#1f5f8b"),
}
LEFT, SCALE, BAR, GAP = 170, 4.6, 20, 18


def draw(scores: dict[str, list[float]]) -> str:
    """The picture: a group of bars a dataset, nDCG@10 ×100."""
    parts, y = [], 46
    for row, (label, colour) in enumerate(SYSTEMS.values()):
        x = LEFT + row * 165
        parts.append(f'<rect x="{x}" y="14" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 18}" y="24">{label}</text>')
    for dataset, values in scores.items():
        parts.append(f'<text x="{LEFT - 12}" y="{y + 1.5 * BAR + 4:.0f}" text-anchor="end">{dataset}</text>')
        for (_, colour), value in zip(SYSTEMS.values(), values, strict=True):
            parts.append(
                f'<rect x="{LEFT}" y="{y}" width="{SCALE * value:.1f}" height="{BAR - 3}" fill="{colour}"/>'
                f'<text x="{LEFT + SCALE * value + 6:.1f}" y="{y + 13}">{value:.1f}</text>'
            )
            y += BAR
        y += GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 {y}" font-family="sans-serif" font-size="12">'
    title = "<title>BM25 on Russian, nDCG@10: words unchanged, stems, lemmas</title>"
    return "\n".join([head, title, f'<rect width="700" height="{y}" fill="#fff"/>', *parts, "</svg>\n"])


def main() -> None:
    with tempfile.TemporaryDirectory() as out:
        scores = {
            dataset: [100 * bench(dataset, system, out=Path(out))["measures"]["nDCG@10"] for system in SYSTEMS]
            for dataset in DATASETS
        }
    TARGET.write_text(draw(scores), encoding="utf-8")


if __name__ == "__main__":
    main()
