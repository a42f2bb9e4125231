"""Lines as Python splits them, tokens of OpenAI's and Hugging Face's byte-pair encodings, words as NLTK cuts them."""

import base64
import functools
import json
import re
import sys
import unicodedata


def category(major):
    """A regular expression's class of all characters of a general category, such as L."""
    ranges, start = [], None
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and unicodedata.category(chr(code))[0] == major
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            ranges.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = None
    return "".join(ranges)


LETTERS, NUMBERS = category("L"), category("N")
# Unicode's White_Space, which Python's \s is not: it has U+001C to U+001F too.
BLANKS = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"


def pattern(text):
    r"""A pattern with \p{L}, \p{N}, \s and \S as Rust's crates and Oniguruma read them."""
    inside = {r"\p{L}": LETTERS, r"\p{N}": NUMBERS, r"\s": BLANKS}
    out, brackets, place = "", 0, 0
    while place < len(text):
        for name, members in inside.items():
            if text.startswith(name, place):
                out += members if brackets else f"[{members}]"
                place += len(name)
                break
        else:
            if text.startswith(r"\S", place):
                out += f"[^{BLANKS}]"
                place += 2
                continue
            step = 2 if text[place] == "\\" else 1
            brackets += {"[": 1, "]": -1}.get(text[place : place + step], 0)
            out += text[place : place + step]
            place += step
    return re.compile(out)


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


class P50kBase:
    """OpenAI's p50k_base, from the ranks that tiktoken publishes."""

    def __init__(self, path):
        rows = (line.split() for line in open(path, "rb"))
        self.ranks = {base64.b64decode(token): int(rank) for token, rank in rows}
        self.texts = {rank: token for token, rank in self.ranks.items()}
        self.pieces = pattern(GPT2)
        self.of_piece = functools.lru_cache(None)(self.of_piece)

    def of_piece(self, piece):
        parts = [bytes([byte]) for byte in piece.encode()]
        while len(parts) > 1:
            ranks = [self.ranks.get(a + b, 1 << 60) for a, b in zip(parts, parts[1:])]
            best = min(range(len(ranks)), key=ranks.__getitem__)
            if ranks[best] == 1 << 60:
                break
            parts[best : best + 2] = [parts[best] + parts[best + 1]]
        return [self.ranks[part] for part in parts]

    def encode(self, text):
        return [token for piece in self.pieces.findall(text) for token in self.of_piece(piece)]

    def decode(self, ids):
        return b"".join(self.texts[token] for token in ids).decode(errors="replace")


def printable_bytes():
    """GPT-2's characters for bytes: printable ones as they are, the others from U+0100 on."""
    itself = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    table, more = {}, 256
    for byte in range(256):
        if byte in itself:
            table[byte] = chr(byte)
        else:
            table[byte], more = chr(more), more + 1
    return table


class HuggingFace:
    """A tokenizer.json with byte-pair encoding, of the three kinds among the fixtures. Text never becomes a special token."""

    def __init__(self, path):
        file = json.load(open(path))
        model = file["model"]
        self.vocabulary = model["vocab"]
        self.ranks = {tuple(pair): rank for rank, pair in enumerate(model["merges"])}
        self.specials = {token["content"]: token["id"] for token in file["added_tokens"]}
        self.size = max([*self.vocabulary.values(), *self.specials.values()]) + 1
        normalizer, splitter = file["normalizer"], file["pre_tokenizer"]
        self.fallback = model["byte_fallback"]
        self.bytes = printable_bytes()
        if splitter is None:
            steps = [step["type"] for step in normalizer["normalizers"]]
            assert steps == ["Prepend", "Replace"] and self.fallback, steps
            self.split = lambda text: ["▁" + text.replace(" ", "▁")] if text else []
        else:
            first, second = splitter["pretokenizers"]
            assert second["type"] == "ByteLevel", second
            if first["type"] == "Digits":
                digits, words = re.compile(f"[{NUMBERS}]|[^{NUMBERS}]+"), pattern(GPT2)
                parts = lambda text: [word for part in digits.findall(text) for word in words.findall(part)]
            else:
                parts = pattern(first["pattern"]["Regex"]).findall
            form = {None: lambda text: text, "NFC": lambda text: unicodedata.normalize("NFC", text)}
            normal = form[normalizer and normalizer["type"]]
            self.split = lambda text: ["".join(self.bytes[byte] for byte in part.encode()) for part in parts(normal(text))]
        self.of_piece = functools.lru_cache(None)(self.of_piece)

    def of_piece(self, piece):
        parts = list(piece)
        if self.fallback:
            parts = [
                part
                for character in piece
                for part in ([character] if character in self.vocabulary else [f"<0x{byte:02X}>" for byte in character.encode()])
            ]
        while len(parts) > 1:
            rank, best = min((self.ranks.get(pair, 1 << 60), pair) for pair in zip(parts, parts[1:]))
            if rank == 1 << 60:
                break
            merged, place = [], 0
            while place < len(parts):
                if tuple(parts[place : place + 2]) == best:
                    merged.append(parts[place] + parts[place + 1])
                    place += 2
                else:
                    merged.append(parts[place])
                    place += 1
            parts = merged
        return [self.vocabulary[part] for part in parts]

    def encode(self, text):
        return [token for piece in self.split(text) for token in self.of_piece(piece)]


def read_source(path):
    """The text of a source file as Python reads it, with `\\n` for every line break; None if it is not UTF-8."""
    try:
        return path.read_bytes().decode().replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        return None


def filled(text):
    """Lines that are not blank."""
    return [line for line in text.split("\n") if line.strip()]


CONTRACTIONS = [
    (re.compile(r"(?<=[^' ])(n't|N'T)(?= |[,;:@#$%&?!\[\](){}<>\"*]|--|\.\.|\.[\])}>\"'\s]*$|$)"), r" \1"),
    (re.compile(r"(?i)\b(can)(not)\b|\b(gim)(me)\b|\b(gon)(na)\b|\b(got)(ta)\b|\b(lem)(me)\b|\b(wan)(na)(?= |$)"), None),
    (re.compile(r"(?i)(?:(?<= )|^)('t)(is|was)\b"), r"\1 \2"),
]


@functools.lru_cache(None)
def word_list(text):
    r"""The `\w+` runs in the tokens of NLTK's word_tokenize (3.8.1). It cuts inside a run in a few English contractions."""
    for found, put in CONTRACTIONS:
        text = found.sub(put or (lambda match: " ".join(part for part in match.groups() if part)), text)
    return re.findall(r"\w+", text)


@functools.lru_cache(None)
def words(text):
    return frozenset(word_list(text))
