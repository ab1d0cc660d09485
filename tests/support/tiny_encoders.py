"""Models of the real architectures with random weights, small enough to be made in a test."""

from __future__ import annotations

import json
from pathlib import Path

TEXT = "кошка ловит мышь собака сторожит дом рыба плавает в реке птица летит над лесом и кто живёт где"
WORDS = TEXT.split()


def uneven(n: int) -> list[str]:
    """Distinct texts of three to sixty words."""
    return [" ".join(WORDS[: 1 + number * 7 % 19] * 3) + f" {number}" for number in range(n)]


SIZES = {
    "vocab_size": 200, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "max_position_embeddings": 70, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "initializer_range": 0.5,
}  # fmt: skip


ARCTIC = {
    "auto_map": {
        "AutoConfig": "configuration_hf_alibaba_nlp_gte.GteConfig",
        "AutoModel": "modeling_hf_alibaba_nlp_gte.GteModel",
    },
    "layer_norm_type": "layer_norm",
    "logn_attention_clip1": False,
    "logn_attention_scale": False,
    "pack_qkv": True,
    "position_embedding_type": "rope",
    "rope_scaling": None,
    "rope_theta": 160000,
    "transformers_version": "4.39.3",
    "unpad_inputs": "true",
    "use_memory_efficient_attention": "true",
}
"""What snowflake-arctic-embed-m-v2.0's config.json contains and GteConfig would not write."""


def tokenizer(folder: Path) -> None:
    """A Unigram tokenizer of those words and all letters, with XLM-RoBERTa's special tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    letters = sorted(set("абвгдежзийклмнопрстуфхцчшщъыьэюяё▁abcdefghijklmnopqrstuvwxyz.,?!0123456789"))
    special = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    vocabulary = [
        *special,
        *((f"▁{word}", -2.0) for word in sorted(set(WORDS))),
        *((letter, -8.0) for letter in letters),
    ]
    made = Tokenizer(models.Unigram(vocabulary, unk_id=3, byte_fallback=False))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>",
        pad_token="<pad>", unk_token="<unk>", model_max_length=64,
    ).save_pretrained(folder)  # fmt: skip


def config(**changes):
    from transformers import XLMRobertaConfig

    return XLMRobertaConfig(**{**SIZES, "type_vocab_size": 1, **changes})


def encoder(folder: Path, *, heads: bool = False) -> Path:
    """A plain encoder; with heads, BGE-M3's sparse and multi-vector layers too."""
    import torch
    from transformers import XLMRobertaModel

    torch.manual_seed(1)
    XLMRobertaModel(config()).save_pretrained(folder)
    tokenizer(folder)
    if heads:
        torch.save(torch.nn.Linear(32, 32).state_dict(), folder / "colbert_linear.pt")
        sparse = torch.nn.Linear(32, 1)
        # Weights of terms are cut off at 0, which would hide what the model reads.
        sparse.bias.data.fill_(20.0)
        torch.save(sparse.state_dict(), folder / "sparse_linear.pt")
    return folder


def sentence_encoder(folder: Path, pooling: str, *, prompts: dict[str, str] | None = None) -> Path:
    """An encoder in the layout of sentence-transformers; prompts are its own, and left out of its pooling."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    plain = encoder(folder.with_name(f"{folder.name}-plain"))
    transformer = Transformer(str(plain))
    pool = Pooling(32, pooling_mode=pooling, include_prompt=prompts is None)
    SentenceTransformer(modules=[transformer, pool], prompts=prompts).save(str(folder))
    return folder


def static_encoder(folder: Path) -> Path:
    """A table of vectors in the layout of sentence-transformers."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
    from tokenizers import Tokenizer

    plain = folder.with_name(f"{folder.name}-plain")
    plain.mkdir(parents=True)
    tokenizer(plain)
    read = Tokenizer.from_file(str(plain / "tokenizer.json"))
    torch.manual_seed(8)
    table = StaticEmbedding(read, embedding_weights=torch.randn(read.get_vocab_size(), 16))
    SentenceTransformer(modules=[table, Normalize()]).save(str(folder))
    return folder


def term_encoder(folder: Path, *, router: bool = False) -> Path:
    """A SPLADE model; with a router, queries are weights that are looked up."""
    import torch
    from sentence_transformers import SparseEncoder
    from sentence_transformers.base.modules import Router, Transformer
    from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding, SpladePooling
    from transformers import XLMRobertaForMaskedLM

    torch.manual_seed(7)
    plain = folder.with_name(f"{folder.name}-plain")
    XLMRobertaForMaskedLM(config(initializer_range=0.1)).save_pretrained(plain)
    tokenizer(plain)
    modules = [Transformer(str(plain), transformer_task="fill-mask"), SpladePooling(pooling_strategy="max")]
    if router:
        table = SparseStaticEmbedding(modules[0].tokenizer, weight=torch.rand(len(modules[0].tokenizer)))
        modules = [Router.for_query_document(query_modules=[table], document_modules=modules)]
    SparseEncoder(modules=modules).save(str(folder))
    return folder


FIXED = {"strategy": "fixed", "attend": False, "length": 12, "token": "</s>"}
"""Queries of ColBERT: filled up with a token that the model does not attend to."""


def token_encoder(folder: Path, *, expansion: dict[str, object] | None = None, similarity: str = "maxsim") -> Path:
    """A late model of 16 dimensions, which skips a word of documents."""
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    plain = encoder(folder.with_name(f"{folder.name}-plain"))
    transformer = Transformer(str(plain), query_length=20, document_length=40, query_expansion=expansion)
    dense = Dense(32, 16, bias=False, module_input_name="token_embeddings")
    modules = [transformer, dense, MultiVectorMask(["▁и"]), Normalize(module_input_name="token_embeddings")]
    prompts = {"query": "где ", "document": "кто "}
    MultiVectorEncoder(modules=modules, prompts=prompts, similarity_fn_name=similarity).save(str(folder))
    return folder


def cross_encoder(folder: Path, labels: int = 1, dtype: str = "float32") -> Path:
    """A classifier of pairs."""
    import torch
    from transformers import XLMRobertaForSequenceClassification

    torch.manual_seed(2)
    XLMRobertaForSequenceClassification(config(num_labels=labels)).to(getattr(torch, dtype)).save_pretrained(folder)
    tokenizer(folder)
    kept = json.loads((folder / "config.json").read_text())
    assert kept["model_type"] == "xlm-roberta"
    return folder


def adapted_encoder(folder: Path) -> Path:
    """An encoder of jina-embeddings-v3's architecture and precision, with LoRA adapters for queries and documents."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import JinaEmbeddingsV3Config, JinaEmbeddingsV3Model

    torch.manual_seed(5)
    JinaEmbeddingsV3Model(JinaEmbeddingsV3Config(**SIZES)).bfloat16().save_pretrained(folder)
    tokenizer(folder)
    for name in ("retrieval_query", "retrieval_passage"):
        plain = JinaEmbeddingsV3Model.from_pretrained(folder)
        # Without its initial weights, of which half are 0, an adapter makes a difference.
        lora = LoraConfig(r=2, lora_alpha=2, target_modules="all-linear", init_lora_weights=False)
        get_peft_model(plain, lora).save_pretrained(folder / name)
    return folder


def gte_encoder(folder: Path, **original: object) -> Path:
    """An encoder of gte-multilingual-base's architecture and precision; original is more of a config.json."""
    import torch
    from transformers import GteConfig, GteModel

    torch.manual_seed(6)
    GteModel(GteConfig(**SIZES)).half().save_pretrained(folder)
    tokenizer(folder)
    if original:
        kept = json.loads((folder / "config.json").read_text())
        del kept["rope_parameters"]
        (folder / "config.json").write_text(json.dumps({**kept, **original}))
    return folder


def layerwise_model(folder: Path) -> Path:
    """A decoder of bge-reranker-v2-minicpm-layerwise's architecture, to be read at layers 2 to 4."""
    import torch
    from FlagEmbedding.inference.reranker.decoder_only.models import (
        configuration_minicpm_reranker,
        modeling_minicpm_reranker,
    )

    torch.manual_seed(4)
    config = configuration_minicpm_reranker.LayerWiseMiniCPMConfig(**{
        **SIZES, "num_hidden_layers": 4, "max_position_embeddings": 512, "start_layer": 2, "head_type": "simple",
        "scale_emb": 12, "dim_model_base": 256, "scale_depth": 1.4, "use_cache": False,
    })  # fmt: skip
    modeling_minicpm_reranker.LayerWiseMiniCPMForCausalLM(config).bfloat16().save_pretrained(folder)
    tokenizer(folder)
    return folder


def language_model(folder: Path) -> Path:
    """A decoder of bge-reranker-v2-gemma's architecture."""
    import torch
    from transformers import GemmaConfig, GemmaForCausalLM

    torch.manual_seed(3)
    GemmaForCausalLM(GemmaConfig(
        vocab_size=200, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=1, head_dim=8,
        intermediate_size=64, max_position_embeddings=512, pad_token_id=1, bos_token_id=0, eos_token_id=2,
        initializer_range=0.5,
    )).save_pretrained(folder)  # fmt: skip
    tokenizer(folder)
    return folder
