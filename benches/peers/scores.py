"""Scores a file of pairs as the reference programs' published formulas do, with the libraries that they use, one pair after the
other, and prints the CPU seconds of each. See benches/scores.sh.

    scores.py PAIRS [COUNT]

The formulas are in our words: RepoCoder's and Repoformer's edit similarity by `editdistance`, `fuzz.ratio` by fuzzywuzzy over
python-Levenshtein, code tokens by `re`, identifiers by NLTK's RegexpTokenizer.
"""

import json
import keyword
import re
import sys
import time

import editdistance
from fuzzywuzzy import fuzz
from nltk.tokenize import RegexpTokenizer

KEYWORDS = set(keyword.kwlist) - {"True", "False"}
STRING = re.compile(r"\"([^\"\\]*(\\.[^\"\\]*)*)\"|\'([^\'\\]*(\\.[^\'\\]*)*)\'")
WORDS = RegexpTokenizer(r"\w+")
NAME = re.compile("[_a-zA-Z][_a-zA-Z0-9]*")


def repocoder(target, pred):
    lines = [line.strip() for line in target.splitlines() if line.strip()]
    found = [line.strip() for line in pred.splitlines() if line.strip()][: len(lines)]
    a, b = "\n".join(lines), "\n".join(found)
    return lines == found, 1 - editdistance.eval(a, b) / max(len(a), len(b), 1)


def tokens(code):
    code = re.sub(r"([^A-Za-z0-9_])", r" \1 ", code)
    code = re.sub(r"([a-z])([A-Z])", r"\1 \2", code)
    code = re.sub(r"\s+", " ", code).replace('"', "`").replace("'", "`")
    return [token for token in code.split(" ") if token]


def repoformer(target, pred):
    a, b = target.strip(), pred.strip()
    es = 1 - editdistance.eval(b, a) / max(len(a), len(b), 1)
    return tokens(pred) == tokens(target), es, fuzz.ratio(b, a)


def uncommented(code):
    return re.sub(r"//.*", "", re.sub(r"#.*", "", code))


def identifiers(code):
    found = WORDS.tokenize(STRING.sub("", code))
    return [word for word in found if NAME.match(word) and word not in KEYWORDS]


def crosscodeeval(target, pred):
    target, pred = uncommented(target), uncommented(pred)
    lines = [[line.strip() for line in text.split("\n") if line.strip()] for text in (pred, target)]
    a, b = identifiers(pred), identifiers(target)
    common = len(set(a) & set(b))
    shares = common / max(len(set(a)), 1), common / max(len(set(b)), 1)
    return lines[0] == lines[1], fuzz.ratio(pred.strip(), target.strip()), a == b, shares


def repobench(target, pred):
    return pred.split() == target.split(), fuzz.ratio(pred, target)


def chars(target, pred):
    return target == pred, 1 - editdistance.eval(target, pred) / max(len(target), len(pred), 1)


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else None
    with open(sys.argv[1]) as file:
        pairs = [json.loads(line) for line in file][:count]
    total = 0.0
    for metric in (repocoder, repoformer, crosscodeeval, repobench, chars):
        begin = time.process_time()
        for pair in pairs:
            metric(pair["target"], pair["pred"])
        seconds = time.process_time() - begin
        total += seconds
        print(f"{metric.__name__}\t{len(pairs)}\t{seconds:.3f}")
    print(f"all\t{len(pairs)}\t{total:.3f}")
    print(f"the whole process\t{len(pairs)}\t{time.process_time():.3f}")


if __name__ == "__main__":
    main()
