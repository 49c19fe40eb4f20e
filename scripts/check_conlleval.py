"""Compare our scores with the Perl program conlleval on random label sequences.

    python scripts/check_conlleval.py PATH_TO_CONLLEVAL [--sentences 1000] [--seed 42]

Gold and predicted labels are drawn in several ways, most of them ill-formed. Every sentence is
scored alone, then all together; what both print is compared character by character. Exits with
status 1 on a difference, 0 without.

Labels have the prefixes B and I only. Beyond them conlleval and seqeval, whose reading we
follow, part: conlleval begins no span at the B of "E-X B-X" and does not know S.
"""

import argparse
import logging
import random
import subprocess
import sys

from ncrf.evaluate import conlleval_lines, score_spans

TYPES = ["PER", "LOC", "GOODS-X", "per", "A_VERY_LONG_TYPE_NAME"]
LABELS = ["O", *(f"{prefix}-{kind}" for prefix in "BI" for kind in TYPES)]
DELIMITERS = {"space": " ", "tab": "\t", "bar": "|"}

Corpus = list[tuple[list[str], list[str]]]


def well_formed(rng: random.Random, length: int, scheme: str) -> list[str]:
    """Random spans, written in IOB1 or IOB2."""
    labels: list[str] = []
    before = "O"
    while len(labels) < length:
        size = rng.randint(1, 3)
        if rng.random() < 0.4:
            labels += ["O"] * size
            before = "O"
            continue
        kind = rng.choice(TYPES[:3])
        first = "B" if scheme == "IOB2" or before == kind else "I"
        labels += [f"{first}-{kind}", *[f"I-{kind}"] * (size - 1)]
        before = kind
    return labels[:length]


def noisy(rng: random.Random, labels: list[str], rate: float) -> list[str]:
    return [rng.choice(LABELS) if rng.random() < rate else label for label in labels]


def draw(rng: random.Random) -> tuple[list[str], list[str]]:
    """One sentence's gold and predicted labels, in one of four ways."""
    length = rng.choice([1, 1, 2, 3, 5, 8, 13, 30])
    way = rng.randrange(4)
    if way == 0:  # nothing but noise, in both
        return rng.choices(LABELS, k=length), rng.choices(LABELS, k=length)
    if way == 1:  # few labels, so that ill-formed neighbours are often of one type
        few = ["O", "B-PER", "I-PER", "I-LOC"]
        return rng.choices(few, k=length), rng.choices(few, k=length)
    gold = well_formed(rng, length, rng.choice(["IOB1", "IOB2"]))
    return gold, noisy(rng, gold, 0.15 if way == 2 else 0.5)


def perl(program: str, corpus: Corpus, delimiter: str) -> list[str]:
    rows = []
    for gold, predicted in corpus:
        rows += [delimiter.join(("word", *pair)) for pair in zip(gold, predicted, strict=True)]
        rows.append("")
    # conlleval takes the delimiter for a regular expression.
    options = [] if delimiter == " " else ["-d", f"[{delimiter}]"]
    command = ["perl", program, *options]
    done = subprocess.run(command, input="\n".join(rows), text=True, capture_output=True)
    if done.returncode or done.stderr:
        sys.exit(f"{' '.join(command)} failed: {done.stderr}")
    return done.stdout.splitlines()


def differences(program: str, corpus: Corpus, delimiter: str) -> list[str]:
    """The lines that differ, theirs and ours."""
    theirs = perl(program, corpus, delimiter)
    ours = conlleval_lines(score_spans(*zip(*corpus, strict=True)))
    if theirs == ours:
        return []
    return [f"conlleval: {theirs}", f"ours:      {ours}", f"labels:    {corpus[:3]}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("conlleval", help="the Perl program")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=42)
    args = parser.parse_args()
    logging.disable()  # sentences without spans would each warn
    rng = random.Random(args.seed)
    corpus = [draw(rng) for _ in range(args.sentences)]
    failed = 0
    checks = [(f"sentence {n}", [pair], " ") for n, pair in enumerate(corpus, start=1)]
    checks += [(f"all, {name}", corpus, mark) for name, mark in DELIMITERS.items()]
    for name, part, delimiter in checks:
        found = differences(args.conlleval, part, delimiter)
        failed += bool(found)
        for line in found:
            print(f"{name}: {line}")
    print("\n".join(conlleval_lines(score_spans(*zip(*corpus, strict=True)))))
    print(f"{len(checks)} comparisons over {len(corpus)} sentences, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
