"""NTREX-128: the inverse cloze of each language, files that are damaged, and scores that are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from rusbeir.datasets import expand_group, find_parallel, load, read_registry, validate
from rusbeir.errors import BadInput, warn_once
from rusbeir.experiment import bench
from rusbeir.types import Doc

FINGERPRINTS = """
    af 7f0eae16251db78f   am 7dcbe53eaba94d95   ar 8f2eebac52537ce7   az a3fc31663eae1acc   ba 6f12cf8d379ddc0b
    be 97c259df6cb7ef64   bem b01e510a8e97d3ed   bg 236bfac42cdff5e2   bn 6a01c9158b72b463   bo 80086b85cf0126c4
    bs bd3f3a74efeac7e7   ca bcb1dad1e690b694   ckb 3eddf7ef0d4f6919   cs 799ce13450b49cd3   cy 7e9b5fcd9220c63d
    da 4f852aff60d662a1   de 24fe6d44079a9b02   dv 863a1f3d9697f8fc   dz 2d9c38ca8efa338c   ee ff45f300aa9d414c
    el 0e69fa20ac080f74   en 0e27e51406da4545   en-GB ae4b8d406dad7fe7   en-IN a1ed70be4aa7a1c5   en-US cd6abd159c5dd2d2
    es 66dd022c9a1a3352   es-MX 1473c3c414aafe0a   et 7ff18edfae32ade3   eu 0869407779449c5e   fa fef1155e4c548171
    fi 049465e8e3107811   fil 7c1f124bc69c6c34   fj 5e15a8cf382277a3   fo c806a8f30e8a27b7   fr 242b800bddec6065
    fr-CA a2309f57b74dc982   fuc 62603f50820ab799   ga 7dec0b488f18681e   gl cb66e1dd5178bef3   gu a7b85ff3ed2962d2
    ha 0576c53298543f66   he 982c6492304b7fde   hi 01a612d1cc5f8db6   hmn 0e42f64e0d2bf096   hr a41cc646668f564f
    hu 01692e5d3c011b93   hy 7f529159808912af   id c40b2fc8c70e8746   ig 1e58c98abbb5461d   is 395b4c5590777ab1
    it 16a0c4065ce12a41   ja ea3ae5592a620713   ka 1bc928abb4238da5   kk 9387d596baec6e29   km b6709b73bd904258
    kmr 34fc2443dda4cbcd   kn e8afb20a8a1b672f   ko 5ecc33996fb4c591   ky b7832ace5de198ed   lb 6759fa9713d0bdda
    lo dbc8a3aa92df12f6   lt ddeabe3370c64cc3   lv 7c4c25a90f7d3c45   mey 0155ac1ef955e767   mg 1737256f3af37749
    mi f968d6bcb4833e27   mk 8dbf99277d0e1ff7   ml 0f3351a62e665a87   mn c191dd41c8c677ce   mr 1b7573bcea669d8f
    ms 45fddb2edc7dd866   mt 81c2cd22e7fd4073   my 355e1c9f723679e0   nb 82919beb715d7f63   nd 22a7bfb8b349d79c
    ne 4c12b7a2e155731c   nl 6d0637ccf37ba155   nn b28ca548e0a343e0   nso b3767a53f5077167   ny 225aa7e1771deaf9
    om 8496ffbd76a75ff6   pa 47772c152029552f   pl 48851abb43d60afc   prs 58be954135213291   ps 31686c88c110c3b8
    pt c0cf4672c69e86a8   pt-BR 63a44edfb4e8c4b8   ro 6f44a083ac1c3cf0   ru fa1ce8f89baf482a   rw 905d6809e0268870
    sd dea492682ffd791f   shi d84f8b19b51e4952   si 4b2e2205d92ec189   sk 3407accb98350986   sl fbf617b581eec320
    sm 8a8aceeb7627a0f5   sn 0e29f03c437c8fe5   so 77ecf5164566decd   sq 106e4597b1e36852   sr 723781d475ebf6ea
    sr-Latn c9403257c1398c02   ss 30d64d9c05b0dc9d   sv 49127affb86cfdfb   sw df9d48cba4df04b1   ta fbe5dadc2033e26f
    te dcda841e4b0057e4   tg e14dc37e98e95a7e   th 440f7825610ff129   ti 1fbc75572f25ed21   tk b602d54960426ac7
    tn bcc8823c6e2e4495   to b5d3990bf8801d94   tr 3a39c391880cb3a0   tt 375f647cba9741af   ty fdebcc615aed5ebc
    ug c52af56bdb7033e6   uk bc9bffd107e96e71   ur 31d765d17a2afba2   uz ccbdabd808582e73   ve cd9975da2e5a8179
    vi f38202f9cd69700d   wo c73c29dec1c8f960   xh e9cafc838476be2f   yo d7a863bac81a6458   yue 9e122c427211d8f5
    zh 28a1047cf32c3018   zh-TW 4a927769a2691a83   zu 1efe0cf2dc628ef7
"""
"""Language and the first digits of its fingerprint: what commit 8561f6a gives."""

N_LINES = 1997


def write(folder: Path, lines: list[str]) -> Path:
    path = folder / "newstest2019-ref.xxx.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_a_document_is_made_of_its_odd_lines(tmp_path):
    """The first document has 16 lines, the second 6; ids are those of DOCUMENT_IDS.tsv."""
    dataset = load(write(tmp_path, [f"line {n}" for n in range(1, N_LINES + 1)]), language="kk")
    first, second, *_ = dataset.corpus
    assert first == Doc("bbc.381790", "line 1 line 3 line 5 line 7 line 9 line 11 line 13 line 15")
    assert second == Doc("rt.com.91337", "line 17 line 19 line 21")
    assert [*dataset.queries.items()][7:9] == [("bbc.381790-16", "line 16"), ("rt.com.91337-2", "line 18")]
    assert dataset.qrels["rt.com.91337-2"] == {"rt.com.91337": 1}
    assert (len(dataset.corpus), len(dataset.queries)) == (123, 964)


@pytest.mark.parametrize(
    ("row", "line", "message"),
    [
        (1996, None, "has 1,996 lines, not 1,997"),  # cut off, or a line is missing somewhere: all below it would shift
        (3, "", ":3: line 3 of document 'bbc.381790' is empty"),
        (4, " \u00a0", ":4: line 4 of document 'bbc.381790' is empty"),  # what looks like a text to a program
    ],
)
def test_a_missing_or_an_empty_line_is_named(tmp_path, row, line, message):
    lines = [f"line {n}" for n in range(1, N_LINES + 1)]
    lines[row - 1 : row] = [] if line is None else [line]
    with pytest.raises(BadInput) as caught:
        load(write(tmp_path, lines), language="kk")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_line_in_another_encoding_is_named(tmp_path):
    path = write(tmp_path, ["line"] * N_LINES)
    path.write_bytes(path.read_bytes().replace(b"line", b"\xff", 1))
    with pytest.raises(BadInput, match=r":1: the line is not UTF-8 \(byte 0xff at 1\)"):
        load(path, language="kk")


def test_every_language_is_as_it_was_published(shared_data):
    expected = dict(zip(*[iter(FINGERPRINTS.split())] * 2, strict=True))
    assert expand_group("ntrex/all") == [f"ntrex/{language}" for language in expected]
    assert {language: load(f"ntrex/{language}").fingerprint[:16] for language in expected} == expected


def test_the_registry_says_what_is_in_it(shared_data):
    """One language of each kind of tag: plain, with a region, with a script, and of three letters."""
    for language in ("kk", "zh-TW", "sr-Latn", "ckb"):
        entry, dataset = read_registry()[f"ntrex/{language}"], load(f"ntrex/{language}")
        assert (dataset.card.language, dataset.card.licence) == (language, "CC-BY-SA-4.0")
        assert (entry.n_docs, entry.n_queries, entry.n_qrels) == (123, 964, 964)
        assert validate(entry.name) == []
        assert find_parallel(dataset.card, "en") == "ntrex/en"


@pytest.mark.parametrize(
    ("language", "system", "expected"),
    [
        ("kk", "bm25(profile=raw)", 62.1),
        ("kk", "bm25(profile=words)", 62.0),
        ("kk", "bm25(profile=blend)", 70.9),
        ("no", "bm25", 69.8),
    ],
)
def test_scores_that_were_measured_before_it_was_registered(tmp_path, shared_data, language, system, expected):
    """By a script of its own that read the same files; it printed one digit, and analyzers have changed since."""
    row = bench(f"ntrex/{language}", system, measures="nDCG@10", out=tmp_path)
    assert 100 * row["measures"]["nDCG@10"] == pytest.approx(expected, abs=0.1)


def test_a_language_without_a_file_is_searched_too(tmp_path, shared_data, caplog):
    """Tigrinya has no language file: words as Unicode has them and their runs of characters, said once and signed."""
    warn_once.cache_clear()
    rows = bench("ntrex/ti", ["bm25", "bm25(profile=unicode)"], measures="nDCG@10", out=tmp_path)
    assert "tok:unicode" in rows[0]["signature"]
    assert "terms:both4" in rows[0]["signature"]
    assert rows[0]["measures"]["nDCG@10"] > rows[1]["measures"]["nDCG@10"]
    assert [record.message for record in caplog.records if "No analyzer knows Tigrinya" in record.message]
