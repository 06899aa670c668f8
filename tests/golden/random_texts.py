"""Texts that a seed repeats, made exactly as random_texts.ts makes them.

Pieces and recipes stand in text_pieces.json and nasty_texts.json. A text is a list of UTF-16 units, as in
JavaScript; a lone surrogate becomes U+FFFD, which is what UTF-8 can say of it.
"""

import json
import re
from pathlib import Path

HERE = Path(__file__).parent
CASES_A_CHUNK = 100
NASTY_A_CHUNK = 10


class Random:
    """mulberry32, as in tests/fixtures/seeded_random.ts."""

    def __init__(self, seed):
        self.state = seed & 0xFFFFFFFF

    def integer(self, below):
        self.state = (self.state + 0x6D2B79F5) & 0xFFFFFFFF
        mixed = ((self.state ^ (self.state >> 15)) * (self.state | 1)) & 0xFFFFFFFF
        mixed ^= (mixed + (((mixed ^ (mixed >> 7)) * (mixed | 61)) & 0xFFFFFFFF)) & 0xFFFFFFFF
        unit = ((mixed ^ (mixed >> 14)) & 0xFFFFFFFF) / 4294967296
        return int(unit * below)


def well_formed(units):
    """Text of UTF-16 units; lone surrogates become U+FFFD."""
    text = []
    index = 0
    while index < len(units):
        unit = units[index]
        if 0xD800 <= unit < 0xDC00 and index + 1 < len(units) and 0xDC00 <= units[index + 1] < 0xE000:
            text.append(chr(0x10000 + ((unit - 0xD800) << 10) + (units[index + 1] - 0xDC00)))
            index += 2
            continue
        text.append("\ufffd" if 0xD800 <= unit < 0xE000 else chr(unit))
        index += 1
    return "".join(text)


def units_of(text):
    """The units; @d800 and the like is the unit of that number, since JSON files here hold no lone surrogates."""
    pieces = re.split(r"@(d[89a-f][0-9a-f]{2})", text)
    units = []
    for index, piece in enumerate(pieces):
        units += [int(piece, 16)] if index % 2 else plain_units(piece)
    return units


def plain_units(text):
    raw = text.encode("utf-16-le", "surrogatepass")
    return [raw[index] | raw[index + 1] << 8 for index in range(0, len(raw), 2)]


def load(name):
    return json.loads((HERE / name).read_text(encoding="utf-8"))


def random_text(random, added, pieces):
    units = []
    for _ in range(1 + random.integer(10)):
        kind = random.integer(10)
        if kind < 4:
            alphabet = pieces["alphabets"][random.integer(len(pieces["alphabets"]))]
            for _ in range(1 + random.integer(16)):
                units += units_of(alphabet[random.integer(len(alphabet))])
        elif kind < 6:
            words = pieces["words"]
            units += units_of(words[random.integer(len(words))])
        elif kind == 6:
            low, high = pieces["ranges"][random.integer(len(pieces["ranges"]))]
            for _ in range(1 + random.integer(6)):
                point = low + random.integer(high - low)
                units += units_of(chr(point))
        elif kind == 7:
            token = units_of(added[random.integer(len(added))])
            units += token if random.integer(3) > 0 else token[: random.integer(len(token))]
        elif kind == 8:
            words = pieces["repeated"]
            units += units_of(words[random.integer(len(words))]) * (1 + random.integer(60))
        else:
            units.append(random.integer(0x10000))
    return well_formed(units)


def random_chunk(chunk, added, pieces):
    random = Random(0x5EED + chunk)
    return [random_text(random, added, pieces) for _ in range(CASES_A_CHUNK)]


def nasty_text(recipe, added):
    units = []
    for item in recipe:
        if isinstance(item, str):
            units += units_of(item)
        elif isinstance(item, int):
            units += units_of(added[item % len(added)])
        else:
            units += units_of(item[0]) * item[1]
    return well_formed(units)
