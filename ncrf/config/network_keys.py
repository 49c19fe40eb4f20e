"""The keys of a network: embeddings, layers, inference, and how the weights are learned."""

from __future__ import annotations

from dataclasses import dataclass

from ncrf.config.keys import ANY_VALUE, key, key_group
from ncrf.config.template_keys import MINIBATCH, NO_WORD_LAYER, WHOLE_CORPUS
from ncrf.config.values import parse_freeze

_TAGGING = {"sentence_classification": (False,)}
_WORDS = {"use_word_emb": (True,)}
_CHARS = {"use_char": (True,)}
_WORD_LAYER = {"use_word_seq": (True,)}
_STEPS = {"optimizer": MINIBATCH}


@key_group("words")
@dataclass(frozen=True)
class Words:
    """Word embeddings."""

    use_word_emb: bool = key(True, "Whether words have an embedding.", shapes_model=True)
    word_emb_dim: int = key(
        50,
        "Width of a word embedding. With word_emb_dir the width of its vectors is taken instead.",
        interval="[1, inf)",
        shapes_model=True,
        used_when=_WORDS,
    )
    word_emb_dir: str | None = key(
        None,
        "A file of pretrained word vectors: text (.gz too), word2vec binary or fastText .bin.",
        unit="path",
        aliases=("wordemb",),
        used_when=_WORDS,
    )
    norm_word_emb: bool = key(
        False,
        "Scale each pretrained word vector to length 1.",
        shapes_model=True,
        used_when={**_WORDS, "word_emb_dir": (ANY_VALUE,)},
    )
    vectors_in_model: bool = key(
        False,
        "Store the whole vector file in the model folder (in float16), so that words first met "
        "in decoding have their vectors without it.",
        used_when={**_WORDS, "word_emb_dir": (ANY_VALUE,)},
    )


@key_group("chars")
@dataclass(frozen=True)
class Chars:
    """Character embeddings and the layer that turns a word's characters into a vector."""

    use_char: bool = key(True, "Whether words have a vector from characters.", shapes_model=True)
    char_seq_feature: str = key(
        "CNN",
        "The layer over a word's characters; ALL is CNN and LSTM side by side.",
        choices=("CNN", "LSTM", "GRU", "ALL"),
        shapes_model=True,
        used_when=_CHARS,
    )
    char_emb_dim: int = key(
        30,
        "Width of a character embedding. With char_emb_dir that of its vectors is taken instead.",
        interval="[1, inf)",
        shapes_model=True,
        used_when=_CHARS,
    )
    char_hidden_dim: int = key(
        50,
        "Width of a word's vector from characters. LSTM, GRU and ALL need an even number: each "
        "direction has half.",
        interval="[1, inf)",
        shapes_model=True,
        used_when=_CHARS,
    )
    char_emb_dir: str | None = key(
        None,
        "A file of pretrained character vectors.",
        unit="path",
        aliases=("charemb",),
        used_when=_CHARS,
    )
    norm_char_emb: bool = key(
        False,
        "Scale each pretrained character vector to length 1.",
        used_when={**_CHARS, "char_emb_dir": (ANY_VALUE,)},
    )


@key_group("word_layer")
@dataclass(frozen=True)
class WordLayer:
    """The layer over the words of a sentence."""

    use_word_seq: bool = key(
        True,
        "Whether there is a layer over the words; without it labels see single words.",
        shapes_model=True,
    )
    word_seq_feature: str = key(
        "LSTM",
        "The layer over the words of a sentence; none is use_word_seq=False, and the classical CRF "
        "where there is a template_file.",
        choices=("LSTM", "GRU", "CNN", NO_WORD_LAYER),
        shapes_model=True,
        used_when=_WORD_LAYER,
    )
    hidden_dim: int = key(
        200,
        "Width of the layer's output. With bilstm it must be even: each direction has half.",
        interval="[1, inf)",
        shapes_model=True,
        used_when=_WORD_LAYER,
    )
    lstm_layer: int = key(
        1,
        "How many LSTM or GRU layers are stacked.",
        interval="[1, 100]",
        shapes_model=True,
        used_when={**_WORD_LAYER, "word_seq_feature": ("LSTM", "GRU")},
    )
    cnn_layer: int = key(
        4,
        "How many convolutions are stacked.",
        interval="[1, 100]",
        shapes_model=True,
        used_when={**_WORD_LAYER, "word_seq_feature": ("CNN",)},
    )
    cnn_padding: int = key(
        0,
        "How many padding words stand behind every sentence in the word CNN and take part in its "
        "batch normalization: as many for each, so that no score depends on the others of a batch, "
        "as it does on NCRF++'s padding. cnn_layer of them act on words as endless padding does.",
        interval="[0, 100]",
        shapes_model=True,
        used_when={**_WORD_LAYER, "word_seq_feature": ("CNN",)},
    )
    bilstm: bool = key(
        True,
        "Whether the LSTM or GRU reads the sentence in both directions.",
        shapes_model=True,
        used_when={**_WORD_LAYER, "word_seq_feature": ("LSTM", "GRU")},
    )
    locked_dropout: bool = key(
        False,
        "Whether dropout before and after the layer drops the same numbers at every word of a "
        "sentence (variational dropout), not others at each.",
    )


@key_group("network")
@dataclass(frozen=True)
class Network:
    """What all layers share."""

    dropout: float = key(
        0.5,
        "Probability with which training drops a number at each dropout.",
        interval="[0, 1)",
    )
    dropout_char: float | None = key(
        None,
        "The same for embedded characters alone. Unset: dropout.",
        interval="[0, 1)",
        used_when=_CHARS,
    )
    dropout_input: float | None = key(
        None,
        "The same for word vectors before the word layer alone. Unset: dropout.",
        interval="[0, 1)",
    )
    dropout_output: float | None = key(
        None,
        "The same for what the word layer gives (a CNN: each of its convolutions) alone. Unset: "
        "dropout.",
        interval="[0, 1)",
        used_when=_WORD_LAYER,
    )
    word_dropout: float = key(
        0.0,
        "Probability with which training drops a whole word: its vector, with those of characters "
        "and features, becomes 0 for the word layer. The other words are not scaled up.",
        interval="[0, 1)",
    )
    dropout_memory: float = key(
        0.1,
        "Probability with which training hides from a word what the same word is elsewhere in its "
        "document, so that the model does well on sentences without a document too.",
        interval="[0, 1)",
        used_when={**_TAGGING, "document_memory": (True,)},
    )


@key_group("inference")
@dataclass(frozen=True)
class Inference:
    """How labels are chosen from the network's scores, and how they are judged."""

    use_crf: bool = key(
        True,
        "A CRF scores the whole labeling; without it every label is chosen alone.",
        shapes_model=True,
        used_when=_TAGGING,
    )
    constraints: str = key(
        "decode",
        "Where labelings that the tag scheme forbids are ruled out: none, nowhere; decode, in "
        "decoding; all, in the training loss too.",
        choices=("none", "decode", "all"),
        used_when=_TAGGING,
    )
    decoder: str = key(
        "viterbi",
        "Which labeling is chosen, unless nbest asks for the most probable ones: viterbi, the most "
        "probable; mbr (minimum Bayes risk), that of all entities with a probability above "
        "mbr_threshold or, where labels mark no spans, of the most probable label of each word.",
        choices=("viterbi", "mbr"),
        used_when=_TAGGING,
    )
    mbr_threshold: float = key(
        0.5,
        "Entities with a probability above this are written: a lower one finds more of them, a "
        "higher one is right more often. Of entities that overlap those are written whose "
        "probabilities are most above it in sum. Where every word is in an entity, the words that "
        "are left are labelled as well as can be.",
        interval="(0, 1)",
        used_when={**_TAGGING, "decoder": ("mbr",)},
    )
    document_memory: bool = key(
        False,
        "Let the scores of a word depend on what the same word is elsewhere in its document, if it "
        "begins with a letter that is not in lower case. Documents begin with a -DOCSTART- line, "
        "which training needs; without one a sentence stands for itself.",
        shapes_model=True,
        used_when=_TAGGING,
    )
    score_policy: str = key(
        "conlleval",
        "How ill-formed label sequences are scored: conlleval reads them as that script does, "
        "strict counts well-formed entities only.",
        choices=("conlleval", "strict"),
        used_when=_TAGGING,
    )


@key_group("training")
@dataclass(frozen=True)
class Training:
    """How the weights are learned."""

    optimizer: str = key(
        "SGD",
        "The rule by which weights follow the gradient. LBFGS, IIS-S, IIS-T (improved iterative "
        "scaling), perceptron (averaged) and PA (passive-aggressive) look at the whole corpus at "
        "once and learn the classical CRF alone; to them the keys of steps and batches are idle.",
        choices=(*MINIBATCH, *WHOLE_CORPUS),
    )
    iteration: int = key(
        100,
        "How often training goes through the corpus; under LBFGS and the other learners of the "
        "whole corpus their iterations, at most.",
        unit="epochs",
        interval="[1, inf)",
    )
    batch_size: int = key(
        10,
        "How many sentences make one step of training. In a decode config: how many are decoded "
        "at once, in place of decode_batch_tokens.",
        unit="sentences",
        interval="[1, inf)",
    )
    ave_batch_loss: bool = key(
        False,
        "Divide a batch's loss by its number of sentences; otherwise it is their sum.",
        aliases=("avg_batch_loss",),
        used_when=_STEPS,
    )
    learning_rate: float = key(
        0.015,
        "The learning rate at the beginning; LSTM word layers like about 0.015, CNN about 0.005.",
        interval="(0, inf)",
        used_when=_STEPS,
    )
    lr_schedule: str = key(
        "auto",
        "How the rate goes on: decay is NCRF++'s learning_rate / (1 + lr_decay · epoch), cosine "
        "falls to 0 at the last epoch, plateau halves when the dev score has not risen for more "
        "than two epochs; auto is decay for SGD and constant for the others.",
        choices=("auto", "decay", "cosine", "plateau", "constant"),
        used_when=_STEPS,
    )
    lr_decay: float = key(
        0.05,
        "How fast the rate falls under lr_schedule=decay.",
        interval="[0, inf)",
        used_when={**_STEPS, "lr_schedule": ("auto", "decay")},
    )
    warmup: float = key(
        0.0,
        "For how long the rate rises from 0 to learning_rate at the beginning, as in 0.5.",
        unit="epochs",
        interval="[0, inf)",
        used_when=_STEPS,
    )
    momentum: float = key(
        0.0,
        "Momentum of SGD and RMSprop.",
        interval="[0, 1)",
        used_when={"optimizer": ("SGD", "RMSprop")},
    )
    l2: float = key(
        1e-8,
        "Weight decay: how strongly every step pulls the weights towards 0. Adagrad decays, of a "
        "large embedding table, only the rows that a batch uses.",
        interval="[0, inf)",
        used_when=_STEPS,
    )
    clip: float | None = key(
        None,
        "Largest norm of the gradient; a longer one is scaled down to it. Unset: no bound.",
        interval="(0, inf)",
        used_when=_STEPS,
    )
    ema: float | None = key(
        None,
        "Average the weights over the steps of training, each step with this weight for what was "
        "before, as in 0.999; the averages are what the dev score is of and what is saved. Unset: "
        "the weights themselves.",
        interval="(0, 1)",
    )
    patience: int | None = key(
        None,
        "Stop after this many epochs without a better dev score. Unset: never.",
        unit="epochs",
        interval="[1, inf)",
        used_when={**_STEPS, "dev_dir": (ANY_VALUE,)},
    )
    checkpoint_every: float | None = key(
        None,
        "Write what resume needs within an epoch too, after so many minutes. Unset: at the end of "
        "each epoch, and when training is interrupted.",
        unit="minutes",
        interval="(0, inf)",
    )
    freeze: tuple[str, ...] = key(
        (),
        "Embeddings that training leaves as they are.",
        parse=parse_freeze,
        allowed="word, char and names of features, with commas between them",
    )
    amp: str = key(
        "none",
        "Mixed precision in training: bf16 lets a GPU multiply in bfloat16; the CRF stays exact.",
        choices=("none", "bf16"),
        used_when=_STEPS,
    )
    bucket: bool = key(
        True,
        "Make batches of sentences of like length and shuffle the batches every epoch; False "
        "shuffles single sentences, as NCRF++ does.",
        used_when=_STEPS,
    )
    max_batch_tokens: int = key(
        16384,
        "A batch with more tokens, padding included, is computed in pieces; it stays one step.",
        unit="tokens",
        interval="[1, inf)",
        used_when=_STEPS,
    )
