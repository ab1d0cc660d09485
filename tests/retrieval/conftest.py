from __future__ import annotations

import warnings

import pytest

from tests.support import tiny_encoders


@pytest.fixture
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of an engine, whose server runs if it has one."""
    name: str = request.param
    if name in ("elasticsearch", "opensearch"):
        monkeypatch.setenv("RUSBEIR_ES_URL", request.getfixturevalue(name).url)
    return name


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory):
    """Folders of models with random weights, by their names."""
    folder = tmp_path_factory.mktemp("models")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "cls": tiny_encoders.sentence_encoder(folder / "cls", "cls"),
            "prompted": tiny_encoders.sentence_encoder(
                folder / "prompted", "mean", prompts={"query": "рыба в реке ", "document": "дом "}
            ),
            "m3": tiny_encoders.encoder(folder / "m3", heads=True),
            "headless": tiny_encoders.encoder(folder / "headless"),
            "cross": tiny_encoders.cross_encoder(folder / "cross"),
            "half": tiny_encoders.cross_encoder(folder / "half", dtype="bfloat16"),
            "gemma": tiny_encoders.language_model(folder / "gemma"),
            "jina": tiny_encoders.adapted_encoder(folder / "jina"),
            "gte": tiny_encoders.gte_encoder(folder / "gte"),
            "arctic": tiny_encoders.gte_encoder(folder / "arctic", **tiny_encoders.ARCTIC),
            "static": tiny_encoders.static_encoder(folder / "static"),
            "splade": tiny_encoders.term_encoder(folder / "splade"),
            "router": tiny_encoders.term_encoder(folder / "router", router=True),
            "late": tiny_encoders.token_encoder(folder / "late"),
            "fixed": tiny_encoders.token_encoder(folder / "fixed", expansion=tiny_encoders.FIXED),
            "min": tiny_encoders.token_encoder(
                folder / "min",
                expansion={**tiny_encoders.FIXED, "strategy": "min", "attend": True},
                similarity="meanmaxsim",
            ),
            "three": tiny_encoders.cross_encoder(folder / "three", labels=3),
        }


@pytest.fixture(scope="module")
def models(offline_hub, tiny_models):
    """The same, while the hub cannot be reached."""
    return tiny_models


@pytest.fixture(scope="module")
def offline_hub():
    # The variable is read when the hub's library is first imported.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        import huggingface_hub.constants

        patch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        yield
