"""Seeds, and what a fuzzer makes of them."""

import gzip
import json
import random
import struct
from pathlib import Path

from ncrf.config import all_keys
from tests.conftest import SAMPLE
from tests.fuzz.attempts import word2vec_binary

#: Pieces that are known to have broken some reader.
PIECES = [
    b"",
    b"\0",
    b"\n",
    b"\r",
    b"\r\n",
    b"\t",
    b" ",
    b"\n\n",
    b"=",
    b"#",
    b"|",
    b" ||| ",
    b"-",
    b"_",
    b":",
    b"[",
    b"]",
    b"{",
    b"}",
    b'"',
    b"\\",
    b"&a ",
    b"*a",
    b"!!python/name:os.system ",
    b"%",
    b"? ",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xe2\x80\xa8",
    b"\xe3\x80\x80",
    b"\xc2\xa0",
    b"\xc2\x85",
    b"\x0c",
    b"\x1b[31m",
    b"-DOCSTART-",
    b"# 0.5 0.25\n",
    b"-1",
    b"0",
    b"1e999999",
    b"nan",
    b"inf",
    b"99999999999",
    b"9" * 5000,
    b"1" * 19,
    b"None",
    b"true",
    b"a" * 3000,
    b"B-",
    b"S-X",
    b"[F]x",
    b"8.1",
    b"3-4",
    b"NER=B-PER",
    b"\\ud800",
    b"\xba\x16\x4f\x2f",
    b"\x80\x04\x95",
]


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Some changes, seldom many: bytes, pieces, lines repeated, moved, left out, cut."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        data = rng.choice(_WAYS)(data, rng)
    return data[:1_000_000]


def _flip(data, rng):
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _insert(data, rng):
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(PIECES) + data[at:]


def _replace(data, rng):
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(PIECES) + data[at + rng.randrange(12) :]


def _number(data, rng):
    """Replace a run of digits."""
    places = [i for i, byte in enumerate(data[:5000]) if 48 <= byte < 58]
    if not places:
        return data
    start = end = rng.choice(places)
    while end < len(data) and 48 <= data[end] < 58:
        end += 1
    value = rng.choice([b"0", b"-1", b"1e400", b"1.5", b"4294967296", b"9" * rng.randrange(1, 30)])
    return data[:start] + value + data[end:]


def _cut(data, rng):
    return data[: rng.randrange(len(data) + 1)]


def _lines(data, rng):
    lines = data.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    way = rng.randrange(4)
    if way == 0:
        lines[i] = lines[j]
    elif way == 1:
        del lines[i]
    elif way == 2:
        lines[i:i] = [lines[j]] * rng.choice((1, 3, 50))
    else:
        lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


def _words(data, rng):
    words = data.split(b" ")
    i, j = rng.randrange(len(words)), rng.randrange(len(words))
    words[i] = rng.choice((words[j], words[j] + words[i], rng.choice(PIECES)))
    return b" ".join(words)


_ODD = [None, True, 0, -1, 1.5, 1e308, 10**30, "", "x", "\ud800", "\n", [], [[]], {}, {"a": 1}]


def _json(data, rng):
    """Another value somewhere in JSON: in a whole file, a line of it, or a safetensors header."""
    size = int.from_bytes(data[:8], "little")
    if 2 <= size <= len(data) - 8:
        header = _json_of(data[8 : 8 + size], rng)
        return len(header).to_bytes(8, "little") + header + data[8 + size :]
    if data[:1] != b"{":
        return data
    first, end, rest = data.partition(b"\n")
    return _json_of(first, rng) + end + rest


def _json_of(text, rng):
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    whole = place = [value]
    key = 0
    while isinstance(place[key], (list, dict)) and place[key] and rng.random() < 0.8:
        place = place[key]
        key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
    way = rng.randrange(4)
    if way == 0 and place is not whole:
        del place[key]
    elif way == 1 and isinstance(place[key], (list, str)):
        place[key] = place[key] * rng.choice((0, 2, 3))
    else:
        place[key] = rng.choice(_ODD)
    return json.dumps(whole[0]).encode()


def _random(data, rng):
    return rng.randbytes(rng.randrange(200))


_WAYS = [
    _json,
    _json,
    _flip,
    _insert,
    _insert,
    _replace,
    _replace,
    _number,
    _cut,
    _lines,
    _lines,
    _words,
    _random,
]

CONFIG = b"""# a comment
train_dir=no/such/file
dev_dir=no/such/dev
model_dir=no/such/model
word_emb_dir=vectors
columns=word,[POS],-,label
feature=[POS] emb_size=20 emb_dir=x emb_norm=True
feature=[Cap] from=capitalization
iteration=5
seed=42
hidden_dim=200
learning_rate=0.015
word_seq_feature=LSTM
use_crf=True
optimizer=SGD
clip=
nbest=3
label_column=misc:NER
freeze=word,char
"""
YAML = b"""files:
  train_dir: no/such/file
  model_dir: "no/such"
columns: [word, [POS], "-", label]
feature:
  - {name: POS, emb_size: 20}
  - "[Cap] from=capitalization"
base: &a [1, 2]
iteration: 5
clip: ~
use_crf: on
"""
COLUMNS = b"""-DOCSTART- O

Anna [POS]N B-PER
Smith [POS]N E-PER
met [POS]V O

Oslo [POS]N S-LOC
"""
PLAIN = b"Anna N\nmet V\n\nBo N\n"
TABS = "New York\tB-LOC\nmet\tO\n\n \u3000\tO\n".encode()
CONLLU = b"""# sent_id = 1
1\tAnna\tAnna\tNOUN\tN\t_\t2\tnsubj\t_\tNER=B-PER
2-3\tdel\t_\t_\t_\t_\t_\t_\t_\t_
2\tmet\tmeet\tVERB\tV\tA=1\t0\troot\t_\tNER=O|X=1
2.1\tx\tx\tX\tX\t_\t_\t_\t_\t_

1\tBo\tBo\tNOUN\tN\t_\t0\troot\t_\t_
"""
CLASSES = b"a good film ||| [Len]short ||| pos\na bad one ||| [Len]short ||| neg\n"
NBEST = b"# 0.5 0.25\nAnna B-PER O\nmet O O\n\n# 0.5 0.25\nBo B-PER O\n\n"
VECTORS = b"3 4\nAnna 0.1 -2 3e-4 4\nNew York 1 2 3 4\nBo 1 2 3 4\n"
NO_HEADER = b"Anna 0.1 0.2\nmet\t0.3\t0.4\nBo .5 6.\n"


def combination(rng: random.Random) -> bytes:
    """A config that may train: values that are allowed, in combinations that nobody thought of."""
    lines = []
    for key in rng.sample(_COMBINED, rng.randrange(1, 12)):
        values: list[object] = list(key.choices)
        if key.type is bool:
            values = [True, False]
        elif key.type in (int, float) and not values:
            values = [0, 0.5, 1e-9, 1e6] if key.type is float else [1, 2, 3, 8]
        lines.append(f"{key.name}={rng.choice(values or ['x'])}")
    lines += rng.sample(_OTHER_LINES, rng.randrange(4))
    return "\n".join([*lines, "iteration=2", ""]).encode()


_LEFT_OUT = {"status", "gpu", "threads", "iteration", "resume", "overwrite", "plugins", "seed"}
_COMBINED = [
    key
    for key in all_keys()
    if key.name not in _LEFT_OUT and (key.type in (bool, int, float) or key.choices)
]
_OTHER_LINES = [
    "dev_dir=gold",
    "test_dir=gold",
    "word_emb_dir=vectors",
    "char_emb_dir=vectors",
    "feature=[Cap] from=capitalization",
    "freeze=word",
    "columns=word,label",
    "columns=word,-",
    "label_column=xpos",
    "patience=1",
    "clip=1",
    "init_from=with_vectors",
]


def seeds(targets) -> dict[str, list[bytes]]:
    """Inputs that are right, for each target, to begin with."""
    model: Path = targets.model
    corpora = [COLUMNS, PLAIN, TABS, (SAMPLE / "dev.bioes").read_bytes()[:2000]]
    vectors = [VECTORS, NO_HEADER, word2vec_binary(["Anna", "Bo", "met"], 5), fasttext()]
    return {
        "config": [CONFIG],
        "yaml": [YAML, CONFIG.replace(b"=", b": ")],
        "check": corpora,
        "convert": corpora,
        "evaluate": [*corpora, NBEST],
        "decode": corpora,
        "decode_lines": [b"Anna met Bo\n\nin Oslo\n"],
        "train": corpora,
        "packed": [gzip.compress(data) for data in corpora],
        "packed_well": corpora,
        "conllu": [CONLLU],
        "classification": [CLASSES],
        "nbest": [NBEST],
        "vectors": vectors,
        "packed_vectors": vectors,
        "model_config": [(model / "config.yaml").read_bytes()],
        "model_alphabets": [(model / "alphabets.json").read_bytes()],
        "model_weights": [(model / "model.safetensors").read_bytes()],
        "model_history": [(model / "history.jsonl").read_bytes()],
        "model_vectors": [(targets.with_vectors / "vectors.safetensors").read_bytes()],
        "model_templates": [(targets.with_templates / "templates.json").read_bytes()],
        "model_template_arrays": [(targets.with_templates / "templates.safetensors").read_bytes()],
        "template_file": [b"# a comment\nU00:%x[0,0]\nU01:%x[-1,0]/%x[1,0]\nU\nB\nB0:%x[-2,0]\n"],
        "model_manifest": [(model / "manifest.json").read_bytes()],
    }


def fasttext() -> bytes:
    """A fastText model of three words and two buckets of character sequences."""
    arguments = struct.pack("<12id", *(5, 5, 1, 5, 5, 1, 1, 2, 2, 3, 6, 100), 0.001)
    sizes = struct.pack("<iiiqq", 3, 3, 0, 10, -1)
    words = b"".join(word + b"\0" + struct.pack("<qb", 3, 0) for word in (b"Anna", b"Bo", b"met"))
    matrix = struct.pack("<?qq25f", False, 5, 5, *range(25))
    return b"\xba\x16\x4f\x2f" + struct.pack("<i", 12) + arguments + sizes + words + matrix


def hostile() -> list[tuple[str, str, bytes]]:
    """Inputs that were thought of: target, what is wrong, the bytes."""
    alphabet = {"special": [], "strings": ["O"], "counts": [1]}
    deep = b"[" * 20_000
    numbers = b"Anna " + b"1 " * 300 + b"\n"
    return [
        *[
            (target, f"{key}={value}", f"{key}={value}\n".encode())
            for target in ("config", "sizes")
            for key, value in _VALUES
        ],
        ("config", "empty", b""),
        ("config", "nothing but comments", b"# a\n\n # b\n"),
        ("config", "NUL", b"train_dir=a\0b\n"),
        ("config", "not UTF-8", b"seed=1\nmodel_dir=\xff\n"),
        ("config", "a key of a hundred thousand letters", b"a" * 100_000 + b"=1\n"),
        ("config", "a value of a hundred thousand", b"iteration=" + b"1" * 100_000 + b"\n"),
        (
            "config",
            "many columns",
            b"columns=word," + b",".join(b"[%d]" % i for i in range(10_000)),
        ),
        ("config", "a column very often", b"columns=word" + b",-" * 100_000),
        ("config", "a key very often", b"seed=1\n" * 2000),
        ("config", "too long", b"#" * 300_000),
        ("config", "features without end", b"feature=[a]\n" * 2000),
        ("yaml", "aliases of aliases", _laughs(9, 9)),
        ("yaml", "a list of many aliases", _wide(3000)),
        ("yaml", "sections that are one", b"a: &a {seed: 1}\n" + b"b: *a\n" * 5000),
        ("yaml", "a list within itself", b"columns: &a [*a]\n"),
        ("yaml", "a mapping within itself", b"feature: &a {name: *a}\n"),
        ("yaml", "deep", b"columns: " + deep),
        ("yaml", "deep in blocks", b"".join(b" " * i + b"a:\n" for i in range(600))),
        ("yaml", "another document", b"seed: 1\n---\nseed: 2\n"),
        ("yaml", "a tag", b"seed: !!python/object/apply:os.system ['ls']\n"),
        ("yaml", "no mapping", b"- 1\n"),
        ("yaml", "a merge", b"a: &a {seed: 1}\n<<: *a\n"),
        ("yaml", "control characters", b"seed: \x07\n"),
        ("yaml", "a key that is a list", b"? [a, b]\n: 1\n"),
        ("yaml", "an unknown alias", b"seed: *b\n"),
        ("yaml", "a long text", b"model_dir: '" + b"a" * 250_000 + b"'\n"),
        ("yaml", "many keys", b"".join(b"k%d: 1\n" % i for i in range(2000))),
        ("yaml", "many lines", b"seed: 1\n" * 2000),
        *[
            (target, what, data)
            for target in ("check", "decode", "evaluate", "train", "convert", "conllu", "nbest")
            for what, data in _CORPORA
        ],
        ("decode_lines", "a line of a million letters", b"a" * 1_000_000),
        ("decode_lines", "many blank lines", b"\n" * 10_000),
        ("check", "a line of twenty million bytes", b"a" * 20_000_000),
        ("check", "many feature columns", b"a " + _features(b" ")),
        ("check", "a row of many columns", b"a [F]x B-A\n" + b"b" + b" c" * 1_000_000),
        (
            "classification",
            "many parts",
            b"a ||| " + b" ||| ".join(b"[%d]x" % i for i in range(50_000)),
        ),
        ("classification", "bars", b" ||| ||| |||\n||| |||\n"),
        ("packed", "no gzip", b"Anna B-PER\n"),
        ("packed", "nothing", b""),
        ("packed", "cut", gzip.compress(b"Anna B-PER\n" * 100)[:-9]),
        ("packed", "a wrong sum", gzip.compress(b"Anna B-PER\n")[:-8] + bytes(8)),
        ("packed", "more at its end", gzip.compress(b"Anna B-PER\n") + b"more"),
        ("packed", "a line that unpacks to a gigabyte", _bomb(1 << 30)),
        ("vectors", "a trillion rows", b"1000000000000 300\n" + numbers),
        ("vectors", "a trillion columns", b"1 1000000000000\n" + numbers),
        ("vectors", "a header of five thousand digits", b"1 " + b"9" * 5000 + b"\n" + numbers),
        ("vectors", "a header alone", b"1000000000000 1000000000000\n"),
        ("vectors", "a header of zero", b"1 0\nAnna\n"),
        ("vectors", "empty", b""),
        ("vectors", "NUL", bytes(1000)),
        ("vectors", "no number", b"Anna\nBo\n"),
        ("vectors", "numbers alone", b"1 2 3\n4 5 6\n"),
        ("vectors", "not finite", b"Anna 1 nan\n"),
        ("vectors", "beyond 32 bits", b"Anna 1 1e39\n"),
        ("vectors", "beyond 64 bits", b"Anna 1 1e999999\n"),
        ("vectors", "a very wide row", b"Anna" + b" 1" * 500_000 + b"\n"),
        ("vectors", "a line of twenty million bytes", b"a" * 20_000_000),
        ("vectors", "a pickle", b"\x80\x04\x95 anything"),
        ("vectors", "word2vec, a trillion rows", b"1000000000000 50\nAnna " + b"\x01\xff" * 200),
        ("vectors", "word2vec, a trillion wide", b"1 1000000000000\nAnna " + b"\x01\xff" * 200),
        ("vectors", "word2vec, a billion rows", b"1000000000 300\nAnna " + b"\x01\xff" * 2000),
        ("vectors", "word2vec, negative", b"-1 -1\nAnna " + b"\x01\xff" * 200),
        ("vectors", "fastText, nothing more", b"\xba\x16\x4f\x2f"),
        ("vectors", "fastText, noise", b"\xba\x16\x4f\x2f" + bytes(range(256)) * 20),
        ("vectors", "fastText, huge sizes", b"\xba\x16\x4f\x2f\x0c\0\0\0" + b"\x7f" * 4000),
        ("packed_vectors", "a line of many bytes", b"a" * 100_000_000),
        (
            "packed_vectors",
            "word2vec, a billion rows",
            b"1000000000 300\nAnna " + b"\x01\xff" * 2000,
        ),
        ("model_alphabets", "deep", deep),
        ("model_alphabets", "deep mappings", b'{"a":' * 100_000),
        ("model_alphabets", "a number of many digits", b'{"format": ' + b"9" * 100_000 + b"}"),
        ("model_alphabets", "a list", b"[]"),
        ("model_alphabets", "nothing", b""),
        ("model_alphabets", "an infinite number", b'{"format": 1e999}'),
        *_alphabets(alphabet),
        ("model_config", "nothing", b""),
        ("model_config", "aliases of aliases", _laughs(9, 9)),
        ("model_history", "deep", deep),
        ("model_history", "an epoch without end", b'{"epoch": 1e999}\n'),
        ("model_history", "scores that are none", b'{"epoch": 1, "dev": {"f1": "x"}, "best": 1}\n'),
        ("model_history", "a list", b"[1]\n"),
        ("model_templates", "deep", deep),
        ("model_templates", "nothing", b""),
        ("model_templates", "a list", b"[]"),
        ("model_template_arrays", "nothing", b""),
        ("model_template_arrays", "a header without end", b"\xff" * 8 + b"{}"),
        ("template_file", "nothing", b""),
        ("template_file", "not UTF-8", b"U00:\xff%x[0,0]\nB\n"),
        ("template_file", "far away", b"U00:%x[-999999999,0]\n"),
        ("template_file", "a column of many digits", b"U00:%x[0," + b"9" * 10_000 + b"]\n"),
        ("template_file", "many macros", b"U00:" + b"%x[0,0]/" * 2_000 + b"\n"),
        ("template_file", "many lines", b"U:%x[1000,0]\n" * 2_000),
        ("template_file", "a mark of order", b"\xef\xbb\xbfU00:%x[0,0]\n"),
        ("template_file", "a null", b"U00:\0%x[0,0]\n"),
        ("model_weights", "a header without end", b"\xff" * 8 + b"{}"),
        ("model_weights", "nothing", b""),
        ("model_weights", "no tensors", b"\x08\0\0\0\0\0\0\0{}      "),
        *[("model_weights", what, _safetensors(header)) for what, header in _HEADERS],
        *[("model_vectors", what, _safetensors(header)) for what, header in _HEADERS],
        ("model_vectors", "no words", _safetensors({"rows": ("F16", [0, 16], 0)})),
        ("model_manifest", "deep", deep),
        ("model_manifest", "nothing", b""),
        ("model_manifest", "noise", bytes(range(256))),
        ("model_manifest", "very long", b" " * 2_000_000),
    ]


def _alphabets(alphabet):
    """Alphabets that are JSON, and of which no model can be made, or one that goes astray."""
    whole = {
        "format": 2,
        "words": alphabet | {"special": ["<pad>", "<unk>"]},
        "characters": alphabet | {"special": ["<pad>", "<unk>"]},
        "features": {},
        "labels": alphabet,
        "scheme": {"source": "IOB2", "target": "IOB2", "delimiter": "-"},
        "number_normalized": True,
        "corpus": {"sentences": 1, "tokens": 1},
    }
    plain = {"source": "plain", "target": "plain"}
    changes = {
        "no labels": {"labels": {"special": [], "strings": [], "counts": []}},
        "a label with a line end": {"labels": {**alphabet, "strings": ["a\nb"]}},
        "a label that is no text": {"labels": {**alphabet, "strings": ["\ud800"]}},
        "an empty label": {"labels": {**alphabet, "strings": [""]}},
        "words that are no text": {"words": {**whole["words"], "strings": ["\ud800"]}},
        "counts beyond 64 bits": {"words": {**whole["words"], "counts": [10**30]}},
        "a label twice": {"labels": {**alphabet, "strings": ["O", "O"], "counts": [1, 1]}},
        "labels with special ones": {"labels": whole["words"]},
        "words without": {"words": alphabet},
        "no scheme": {"scheme": {}},
        "an unknown scheme": {"scheme": {"source": "X", "target": "Y", "delimiter": "-"}},
        "a scheme of numbers": {"scheme": {"source": 1, "target": 2, "delimiter": 3}},
        "no delimiter": {"scheme": {**whole["scheme"], "delimiter": ""}},
        "an odd delimiter": {"scheme": {**plain, "delimiter": []}},
        "IOB1 in the model": {"scheme": {**whole["scheme"], "target": "IOB1"}},
        "plain in part": {"scheme": {**whole["scheme"], **plain, "source": "BIOES"}},
        "features that the config has not": {"features": {"POS": whole["words"]}},
        "features that are a list": {"features": [1]},
        "a normalization that is none": {"number_normalized": "maybe"},
        "a lower case that is none": {"lowercase": "maybe"},
        "odd counts of the corpus": {"corpus": {"sentences": "many"}},
        "a corpus that is none": {"corpus": 7},
        "a format that is none": {"format": [2]},
    }
    yield "model_alphabets", "another model's", json.dumps(whole).encode()
    for what, change in changes.items():
        yield "model_alphabets", what, json.dumps({**whole, **change}).encode()


def _safetensors(header) -> bytes:
    """A safetensors file of a header: name -> (type, shape, number of bytes)."""
    end, entries = 0, {}
    for name, (kind, shape, size) in header.items():
        entries[name] = {"dtype": kind, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text + bytes(min(end, 1000))


_HEADERS = [
    ("a giant tensor", {"x": ("F32", [1 << 40, 1 << 20], 1 << 62)}),
    ("a product beyond 64 bits", {"x": ("F32", [1 << 40, 1 << 40], 8)}),
    ("a tensor of zero rows and giant columns", {"x": ("F32", [0, 1 << 62], 0)}),
    ("an unknown type", {"x": ("F99", [2], 8)}),
    ("a type of four bits", {"x": ("F4", [2], 1)}),
    ("another model's", {"projection.weight": ("F32", [1, 1], 4)}),
    ("whole numbers", {"words": ("I64", [1], 8), "rows": ("I64", [1], 8)}),
    ("truths", {"words": ("BOOL", [1], 1), "rows": ("BOOL", [1, 16], 16)}),
    ("complex numbers", {"words": ("C64", [1], 8), "rows": ("C64", [1], 8)}),
    ("brain floats", {"words": ("BF16", [1], 2), "rows": ("BF16", [1, 2], 4)}),
]

_VALUES = [
    ("iteration", "1e999999"),
    ("iteration", "9" * 30),
    ("iteration", "-1"),
    ("hidden_dim", "99999999999"),
    ("hidden_dim", "999999999999999999"),
    ("hidden_dim", "1000000"),
    ("char_hidden_dim", "100000000000"),
    ("char_emb_dim", "10000000000"),
    ("word_emb_dim", "99999999999"),
    ("word_emb_dim", "999999999999999999"),
    ("max_batch_tokens", "999999999999999999"),
    ("batch_size", "999999999999999999"),
    ("lstm_layer", "999999999"),
    ("cnn_layer", "999999999"),
    ("threads", "999999999"),
    ("batch_size", "0"),
    ("nbest", "999999999999"),
    ("seed", "-1"),
    ("seed", "99999999999999"),
    ("learning_rate", "1e999999"),
    ("learning_rate", "nan"),
    ("dropout", "1e-999999"),
    ("feature", "[a] emb_size=99999999999999999"),
    ("feature", "[" * 1000),
    ("feature", "[a] " + "x=1 " * 10000),
    ("columns", "," * 10000),
    ("label_column", "misc:"),
    ("train_dir", "/dev/null/x"),
    ("train_dir", "x" * 5000),
    ("model_dir", "a/" * 3000),
    ("model_dir", "." + "1" * 20000 + ".model"),
    ("plugins", "no_such_module"),
    ("plugins", "..."),
    ("plugins", "a b"),
    ("plugins", "." * 1000),
    ("status", "sing"),
    ("gpu", "maybe"),
    ("no_such_key", "1"),
    ("=", "="),
]

_CORPORA = [
    ("empty", b""),
    ("blank lines", b"\n\n \n\t\n"),
    ("a mark alone", b"\xef\xbb\xbf"),
    ("NUL", bytes(1000)),
    ("returns alone", b"Anna B-PER\rmet O\r"),
    ("not UTF-8", b"Anna B-PER\n\xff O\n"),
    ("half a character", b"Anna B-PER\nmet O\xc3"),
    ("a surrogate", b"Anna B-PER\n\xed\xa0\x80 O\n"),
    ("documents alone", b"-DOCSTART- O\n\n-DOCSTART- O\n"),
    ("a document within a sentence", b"Anna O\n-DOCSTART- O\nmet O\n"),
    ("a word of many letters", b"a" * 100_000 + b" O\n"),
    ("a label of many letters", b"Anna B-" + b"a" * 100_000 + b"\n"),
    ("many labels", b"".join(b"a B-%d\n\n" % i for i in range(300))),
    ("odd spaces", "a\u00a0b O\n\u3000 O\n\u2028x O\n\x0c O\n".encode()),
    ("control characters", b"\x1b[31mred O\n\x07 O\n\x7f O\n"),
    ("rows of many widths", b"a O\nb\nc d e\n"),
    ("a tab in the second row", b"a O\nb\tO\n"),
    ("question marks", b"a ?\nb ?\n"),
    ("a set of labels", b"a B-X|O\nb O\n"),
    ("a prefix alone", b"a B-\nb -X\nc -\n"),
    ("probabilities", b"# 1\n\n# 0.5 nan\na O\n"),
    ("numbers that are none", "# \u0661\na O\n".encode()),
    ("a word number of other digits", "\u0661\ta\ta\tX\tX\t_\t_\tx\t_\tNER=O\n".encode()),
]


def _features(separator):
    return separator.join(b"[%d]" % number for number in range(10_000))


def _laughs(levels, width):
    """A few lines that are a billion, once every alias is followed."""
    lines = [b"a0: &a0 [x, x]"]
    for level in range(1, levels):
        lines.append(
            b"a%d: &a%d [%s]" % (level, level, b", ".join([b"*a%d" % (level - 1)] * width))
        )
    return b"\n".join([*lines, b"columns: *a%d\n" % (levels - 1)])


def _wide(width):
    """Three lists, each of them many times in the next: few levels, many billions."""
    lists = [b"l0: &l0 [" + b"x, " * width + b"x]"]
    for i in (1, 2):
        lists.append(b"l%d: &l%d [" % (i, i) + b"*l%d, " % (i - 1) * width + b"*l%d]" % (i - 1))
    return b"\n".join(lists) + b"\ncolumns: *l2\n"


def _bomb(size):
    """A packed file of one line that unpacks to ``size`` bytes; its parts are one and the same."""
    part = gzip.compress(b"a" * (1 << 24), 9)
    return part * (size >> 24)
