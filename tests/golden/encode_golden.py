"""What Hugging Face's own tokenizers make of random and nasty texts, as digests by chunk."""

import hashlib
import json
import struct
from pathlib import Path

from tokenizers import Tokenizer

from random_texts import NASTY_A_CHUNK, Random, load, nasty_text, random_chunk

RANDOM_CHUNKS = 50
DECODE_CHUNKS = 5
DECODED_A_CHUNK = 100


def digest(cases):
    """SHA-256 over pairs of text and ids, each with its length before it; the first 16 hex digits."""
    hash_ = hashlib.sha256()
    for text, ids in cases:
        raw = text.encode("utf-8")
        hash_.update(struct.pack("<I", len(raw)) + raw)
        hash_.update(struct.pack(f"<I{len(ids)}I", len(ids), *ids))
    return hash_.hexdigest()[:16]


def encode_golden(name, folder: Path, full: Path | None):
    tokenizer_json = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    added = [token["content"] for token in sorted(tokenizer_json["added_tokens"], key=lambda token: token["id"])]
    pieces = load("text_pieces.json")
    nasty = [nasty_text(recipe, added) for recipe in load("nasty_texts.json")]
    chunks = {"random": [random_chunk(chunk, added, pieces) for chunk in range(RANDOM_CHUNKS)]}
    chunks["nasty"] = [nasty[start : start + NASTY_A_CHUNK] for start in range(0, len(nasty), NASTY_A_CHUNK)]
    golden = {"vocabulary": name, "tokens": tokenizer.get_vocab_size(), "added_tokens": len(added)}
    cases = {}
    for kind, texts in chunks.items():
        encoded = [
            [(text, tokenizer.encode(text, add_special_tokens=False).ids) for text in chunk] for chunk in texts
        ]
        golden[kind] = [digest(chunk) for chunk in encoded]
        cases[kind] = encoded
    decoded = []
    for chunk in range(DECODE_CHUNKS):
        random = Random(0xDEC0DE + chunk)
        lists = [
            [random.integer(tokenizer.get_vocab_size()) for _ in range(1 + random.integer(24))]
            for _ in range(DECODED_A_CHUNK)
        ]
        decoded.append([(tokenizer.decode(ids, skip_special_tokens=False), ids) for ids in lists])
    golden["decode"] = [digest(chunk) for chunk in decoded]
    cases["decode"] = decoded
    if full is not None:
        full.mkdir(parents=True, exist_ok=True)
        (full / f"{name.rsplit('/', 1)[-1]}.json").write_text(json.dumps(cases), encoding="utf-8")
    return golden
