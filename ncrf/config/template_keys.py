"""The keys of the classical CRF: feature templates, and the learners that see the whole corpus."""

from __future__ import annotations

from dataclasses import dataclass

from ncrf.config.keys import ANY_VALUE, key, key_group

#: Values of ``optimizer`` that take steps by minibatches, and that look at the whole corpus.
MINIBATCH = ("SGD", "Adagrad", "AdaDelta", "RMSprop", "Adam", "AdamW")
WHOLE_CORPUS = ("LBFGS", "IIS-S", "IIS-T", "perceptron", "PA")

#: The choice of ``word_seq_feature`` that means no layer over the words.
NO_WORD_LAYER = "none"

_TEMPLATES = {"template_file": (ANY_VALUE,)}


@key_group("templates")
@dataclass(frozen=True)
class TemplateKeys:
    """Features by templates: a classical CRF with word_seq_feature=none, else beside a network."""

    template_file: str | None = key(
        None,
        "Feature templates in the form of CRF++ (docs/templates.md). With word_seq_feature=none "
        "the model is the classical CRF, without embeddings unless use_word_emb or use_char says "
        "so; with a word layer both scores are added. The model folder keeps the templates.",
        unit="path",
        shapes_model=True,
    )
    feature_cutoff: int = key(
        1,
        "Leave out attributes that the training corpus shows fewer times (crf_learn -f).",
        interval="[1, inf)",
        shapes_model=True,
        used_when=_TEMPLATES,
    )
    all_possible_states: bool = key(
        False,
        "Give a weight to every attribute with every label, not only to those seen together.",
        shapes_model=True,
        used_when=_TEMPLATES,
    )
    all_possible_transitions: bool = key(
        False,
        "Give a weight to every pair of labels, not only to those seen together.",
        shapes_model=True,
        used_when=_TEMPLATES,
    )


@key_group("whole_corpus")
@dataclass(frozen=True)
class WholeCorpus:
    """How optimizer=LBFGS, IIS-S, IIS-T, perceptron and PA learn the classical CRF.

    They take no batches: each of ``iteration`` iterations looks at the whole corpus.
    """

    c2: float = key(
        1.0,
        "L2 penalty c2 · |w|² on the log-likelihood of the whole corpus, as CRFsuite's c2 "
        "(crf_learn -c C is c2 = 1 / (2 C)). The weight decay of the other optimizers is l2.",
        interval="[0, inf)",
        used_when={"optimizer": ("LBFGS",)},
    )
    l1: float = key(
        0.0,
        "L1 penalty l1 · |w| on the same, by OWL-QN: many weights become 0 and are not stored. "
        "For L1 alone set c2=0 (crf_learn -a CRF-L1 -c C is l1 = 1 / C).",
        interval="[0, inf)",
        aliases=("c1",),
        used_when={"optimizer": ("LBFGS",)},
    )
    tolerance: float = key(
        1e-5,
        "Stop when the objective fell by less than this fraction of itself in 10 iterations, or "
        "the gradient is shorter than this fraction of the weights (crf_learn -e is of one).",
        interval="[0, inf)",
        used_when={"optimizer": WHOLE_CORPUS},
    )
    aggressiveness: float = key(
        1.0,
        "The longest step of optimizer=PA, C in the literature.",
        interval="(0, inf)",
        used_when={"optimizer": ("PA",)},
    )
