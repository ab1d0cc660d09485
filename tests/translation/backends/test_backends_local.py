"""What runs on this machine: apertium's real programs, and neural models of some kilobytes."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rusbeir.errors import BadInput
from rusbeir.translation.translator import Failure
from tests import support
from tests.support.asking import ask, close, make_one
from tests.support.translation_servers import LETTERS, known_pairs


@pytest.fixture
def apertium(needs):
    needs("apertium", shutil.which("apertium") is not None, "apt-get install apertium-eng-spa")
    return make_one("apertium", source="en", target="es")


def test_apertium_translates_as_its_own_command_does(apertium):
    apertium.check("en", "es")
    texts = ["The cat sleeps in the house.", "The dogs drink Qwertz.", *list(known_pairs())[1:8]]
    command = [
        subprocess.run(["apertium", "-u", "eng-spa"], input=text, capture_output=True, text=True, check=True).stdout
        for text in texts
    ]
    assert ask(apertium, *texts, target="es") == command
    assert "Qwertz" in command[1]


@pytest.mark.parametrize(
    "text",
    [
        # what means something in apertium's stream
        "A [superblank] and [[word blank]] here.",
        "The ^lemma<n><sg>$ unit.",
        "{chunk} 50$ /slash\\ @at <tag/> *star #hash +plus~tilde",
        "\\[escaped\\]",
        "a\0b",
        "[1] The cats [2] sleep [3].",
        "[][\n]",
        "word " * 20_000,
    ],
)
def test_apertium_takes_any_text(apertium, text):
    first, odd, last = ask(apertium, "The dogs are big.", text, "The dogs are big.", target="es")
    assert first == last == "Los perros son grandes."
    assert isinstance(odd, str) or odd.reason == "untranslated"


def test_apertium_keeps_bracket_masks(apertium):
    texts = [
        f"{' '.join(words[:3])} [{i % 7}] {' '.join(words[3:])}"
        for i, words in enumerate(map(str.split, [*known_pairs()][:300]))
    ]
    outcomes = ask(apertium, *texts, target="es")
    assert [i for i, outcome in enumerate(outcomes) if f"[{i % 7}]" not in outcome] == []


def test_an_unknown_pair_lists_those_there_are(apertium):
    with pytest.raises(BadInput) as raised:
        apertium.check("en", "kk")
    message = str(raised.value)
    assert message.startswith("apertium has no pair eng-kaz in /usr/share/apertium/modes. There are: ")
    assert "eng-spa, " in message
    assert "apt-get install apertium-eng-kaz" in message


def test_apertium_variants_of_languages(apertium):
    make_one("apertium", source="es", target="en-US").check("es", "en-US")
    assert "mode:spa-eng_US@" in make_one("apertium", source="es", target="en-US").signature
    assert "mode:spa-eng@" in make_one("apertium", source="es", target="en-GB").signature


def test_without_apertium(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadInput, match="needs the program apertium: apt-get install"):
        make_one("apertium", source="en", target="es").check("en", "es")


@pytest.fixture
def fragile(apertium, tmp_path):
    """A mode with a program that dies, hangs or answers twice when it is told to."""
    program = tmp_path / "program"
    source = (Path(support.__file__).parent / "fake_program.py").read_text(encoding="utf-8")
    program.write_text(f"#!{sys.executable}\n{source}", encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "eng-spa.mode").write_text(f"'{program}' $1 | '{program}' $2", encoding="utf-8")
    return lambda seconds: make_one("apertium", source="en", target="es", modes=str(tmp_path), timeout_seconds=seconds)


def test_a_text_that_ends_apertium_fails_alone(fragile):
    outcomes = ask(fragile(20), "one", "DIE now", "two", "three", "DIE", "four", target="es")
    assert [outcome if isinstance(outcome, str) else outcome.reason for outcome in outcomes] == [
        "ONE", "server", "TWO", "THREE", "server", "FOUR",
    ]  # fmt: skip
    assert outcomes[1] == Failure("server", "this text ends apertium: a program of the pipeline ended", False)


def test_a_text_that_apertium_has_no_answer_to_fails_alone(fragile):
    outcomes = ask(fragile(1.5), "one", "HANG", "two", target="es")
    assert outcomes[::2] == ["ONE", "TWO"]
    assert outcomes[1].detail == "this text ends apertium: no answer within 1.5 seconds"


def test_an_answer_too_many_is_noticed(fragile):
    outcomes = ask(fragile(20), "one", "TWICE", "two", "three", target="es")
    assert [outcome if isinstance(outcome, str) else outcome.reason for outcome in outcomes] == [
        "ONE", "server", "TWO", "THREE",
    ]  # fmt: skip


def test_closing_leaves_no_process(apertium):
    async def run():
        await apertium.translate(["The cat sleeps."], "en", "es")
        groups = [group for stream in apertium._pools[0]._all for group in stream.groups]
        await close(apertium)
        return groups

    groups = asyncio.run(run())
    assert len(groups) == 2, "what runs before the tagger, and what behind it"
    for group in groups:
        assert ends(group), "programs of apertium are still running"


def ends(group: int) -> bool:
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_an_answer_depends_on_its_text_alone(apertium):
    """A tagger that has read "included" as it stands here tags "associated" otherwise from then on."""
    texts = [
        "Organic foods, shared and included as others were, grow.",
        "This study aims to assess the role in North Indian population and to correlate these with known factors.",
        "It is critical in the ability of animals to refrain from responding to cues associated with food.",
        "They carry the shared epitope, and the food was organically raised before that.",
    ]

    async def run(*batches):
        answers = [answer for batch in batches for answer in await apertium.translate(batch, "en", "es")]
        await close(apertium)
        return answers

    alone = [asyncio.run(run([text]))[0] for text in texts]
    assert asyncio.run(run(texts)) == alone
    assert asyncio.run(run(texts[::-1])) == alone[::-1]
    assert asyncio.run(run(*([text] for text in texts))) == alone


def neural(name, folder, **options):
    return make_one(name, model=str(folder), **{"source": "en", "target": "ru"} | options)


SENTENCE = "Hares dig no burrows [1], they rest."


@pytest.mark.parametrize(
    ("name", "languages", "target"),
    [
        ("opus-mt", (), "ru"),
        ("opus-mt", (">>rus<<",), "ru"),
        ("opus-mt", (">>rus<<",), "ru-RU"),
        ("nllb", ("eng_Latn", "rus_Cyrl"), "ru"),
        ("nllb", ("eng_Latn", "zho_Hans", "zho_Hant"), "zh-Hant"),
        ("nllb", ("eng_Latn", "zho_Hans", "zho_Hant"), "zh"),
        ("nllb", ("eng_Latn", "nob_Latn"), "no"),
        ("madlad", ("<2ru>",), "ru"),
        ("madlad", ("<2pt>",), "pt-BR"),
    ],
)
def test_neural_models_translate(name, languages, target, tiny):
    translator = neural(name, tiny(name, languages[:1] if name == "madlad" else languages), target=target)
    translator.check("en", target)
    assert ask(translator, SENTENCE, "A cat.", target=target) == [SENTENCE.translate(LETTERS), "А цат."]


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"batch_tokens": 1}, {"threads": 1, "compute_type": "int8"}])
def test_settings_of_neural_models(options, tiny):
    texts = [f"{SENTENCE} a{'x' * n}" for n in range(20)]
    translator = neural("opus-mt", tiny("opus-mt"), **options)
    assert ask(translator, *texts) == [text.translate(LETTERS) for text in texts]
    changes_text = "batch_tokens" not in options
    assert (translator.signature != neural("opus-mt", tiny("opus-mt")).signature) == changes_text


def test_no_neural_answer_is_cut_in_silence(tiny):
    outcomes = ask(neural("opus-mt", tiny("opus-mt")), "A cat.", "x" * 600)
    assert outcomes == ["А цат.", Failure("too-long", "602 tokens, more than the model's 512", False)]
    (endless,) = ask(neural("opus-mt", tiny("opus-mt", never_ends=True), beam_size=1), "A cat.")
    assert endless == Failure("malformed", "the model did not come to an end within 512 tokens", False)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("opus-mt", {}, "The translator opus-mt found no model at {cache}/models/opus-mt-en-ru. Make it once"),
        ("opus-mt", {}, "ct2-transformers-converter --model Helsinki-NLP/opus-mt-en-ru --quantization int8 "
         "--copy_files source.spm target.spm --output_dir {cache}/models/opus-mt-en-ru"),
        ("nllb", {}, "found no model at {cache}/models/nllb-200-distilled-600M."),
        ("madlad", {"model": "./no/such/folder"}, "found no model at no/such/folder."),
        ("opus-mt", {"model": "{empty}"}, "{empty} contains no model.bin, so it is not a CTranslate2 model."),
        ("nllb", {"model": "{opus}"}, "{opus} has no tokenizer: copy sentencepiece.bpe.model from facebook/nllb-200"),
        ("nllb", {"model": "{nllb}", "target": "kk"}, "nllb does not translate into 'kk'. It has: eng_Latn, rus"),
        ("madlad", {"model": "{madlad}", "target": "kk"}, "madlad does not translate into 'kk'. It has: ru."),
        ("opus-mt", {"model": "{several}", "target": "kk"}, "opus-mt does not translate into 'kaz'. It has: rus."),
        ("opus-mt", {"model": "{opus}", "beam_size": 0}, "beam_size is 0"),
        ("opus-mt", {"model": "{opus}", "device": "gpu"}, "device is 'gpu': it must be one of auto, cpu, cuda."),
    ],
)  # fmt: skip
def test_what_a_neural_translator_lacks(name, options, message, tiny, tmp_path, fresh_cache):
    (tmp_path / "empty").mkdir()
    places = {
        "cache": fresh_cache,
        "empty": tmp_path / "empty",
        "opus": tiny("opus-mt"),
        "several": tiny("opus-mt", (">>rus<<",)),
        "nllb": tiny("nllb", ("eng_Latn", "rus_Cyrl")),
        "madlad": tiny("madlad", ("<2ru>",)),
    }
    filled = {key: value.format(**places) if isinstance(value, str) else value for key, value in options.items()}
    target = options.get("target", "ru")
    with pytest.raises(BadInput) as raised:
        make_one(name, **{"source": "en", "target": "ru"} | filled).check("en", target)
    assert message.format(**places) in str(raised.value)


def test_an_opus_model_is_of_one_pair(tiny):
    with pytest.raises(BadInput, match="This opus-mt translates en into ru, not en into de"):
        neural("opus-mt", tiny("opus-mt")).check("en", "de")


HUB = """
import asyncio, sys
from rusbeir.translation.backends import make
(translator,) = make("opus-mt", model=sys.argv[1], source="en", target="ru")
translator.check("en", "ru")
print(translator.signature)
print(asyncio.run(translator.translate(["A cat."], "en", "ru"))[0])
"""


def hub(tmp_path, model):
    """A process of its own, as the hub's package reads its variables at import."""
    environment = {**os.environ, "HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, "-c", HUB, model], capture_output=True, text=True, env=environment, check=False
    )


def test_a_model_of_the_hub_is_found_in_its_cache(tiny, tmp_path):
    commit = "0123456789abcdef0123456789abcdef01234567"
    folder = tmp_path / "models--someone--opus-mt-en-ru"
    shutil.copytree(tiny("opus-mt"), folder / "snapshots" / commit)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(commit)
    done = hub(tmp_path, "someone/opus-mt-en-ru")
    assert done.returncode == 0, done.stderr
    signature, answer = done.stdout.splitlines()
    assert signature.startswith("opus-mt|model:opus-mt-en-ru@0123456789ab|beam:4|")
    assert answer == "А цат."


def test_a_model_that_is_nowhere(tmp_path):
    last = hub(tmp_path, "someone/nothing").stderr.splitlines()[-1]
    assert (
        "BadInput: The model someone/nothing is neither a local folder nor available from the Hugging Face hub" in last
    )
    assert "ct2-transformers-converter" in last
