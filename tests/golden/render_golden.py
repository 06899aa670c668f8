"""What transformers' own Jinja makes of conversations, and the ids of the text by the tokenizers package.

Conversations are in OpenAI's chat form. They reach a template as the gateway gives them: arguments that are a JSON object
parsed where the template reads objects, the name of the called function beside a result, reasoning under the name that the
template reads.
"""

import datetime
import hashlib
import json
import re
import struct
from pathlib import Path

from tokenizers import Tokenizer
from transformers.utils import chat_template_utils

HERE = Path(__file__).parent
NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
SPECIAL_TOKENS = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"]
REASONING_KEYS = ["reasoning_content", "reasoning", "thinking"]


def conversations():
    """Those written for this, then those of the vectors, whose text for Qwen3 stands in clear there."""
    own = json.loads((HERE / "conversations.json").read_text(encoding="utf-8"))
    vectors = json.loads((HERE / "../fixtures/vectors/templates/qwen3.json").read_text(encoding="utf-8"))
    return own, [{"name": f"vector {index}", **vector} for index, vector in enumerate(vectors)]


def template_messages(messages, source, form):
    key = next((key for key in REASONING_KEYS if re.search(rf"(?:\.|\[\s*['\"]){key}\b", source)), REASONING_KEYS[0])
    names = {}
    shaped = []
    for message in messages:
        role = message["role"]
        entry = {"role": role, "content": message["content"]}
        calls = message.get("tool_calls") or []
        if role == "assistant":
            if form["no_content"] == "none" and calls and message["content"] == "":
                entry["content"] = None
            if message.get("reasoning_content") is not None:
                entry[key] = message["reasoning_content"]
            if calls:
                entry["tool_calls"] = [template_call(call, form) for call in calls]
            for call in calls:
                names[call["id"]] = call["function"]["name"]
        elif role == "tool":
            entry["tool_call_id"] = message["tool_call_id"]
            if message["tool_call_id"] in names:
                entry["name"] = names[message["tool_call_id"]]
        shaped.append(entry)
    return shaped


def template_call(call, form):
    arguments = call["function"]["arguments"]
    if form["arguments"] == "object":
        try:
            parsed = json.loads(arguments)
            arguments = parsed if isinstance(parsed, dict) else arguments
        except ValueError:
            pass
    return {"id": call["id"], "type": "function", "function": {"name": call["function"]["name"], "arguments": arguments}}


def render(template, source, conversation, special_tokens, form):
    try:
        return {
            "text": template.render(
                messages=template_messages(conversation["messages"], source, form),
                tools=conversation["tools"] or None,
                documents=None,
                add_generation_prompt=conversation["add_generation_prompt"],
                strftime_now=NOW.strftime,
                **special_tokens,
                **conversation["settings"],
            )
        }
    except Exception as error:  # what a template can't render, it can't render here either
        return {"error": type(error).__name__}


def digest(text):
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def ids_digest(tokenizer, text):
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    return hashlib.sha256(struct.pack(f"<{len(ids)}I", *ids)).hexdigest()[:16]


def content_of(token):
    return token if isinstance(token, str) else token.get("content") if isinstance(token, dict) else None


def render_golden(entry, root: Path, folders: dict[str, Path]):
    name = entry["vocabulary"]
    config = {}
    tokenizer = None
    if name is not None:
        folder = folders[name]
        config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    special_tokens = {key: content_of(config.get(key)) for key in SPECIAL_TOKENS if content_of(config.get(key))}
    special_tokens.update(entry.get("special_tokens", {}))
    source = config["chat_template"] if entry["template"] == "packaged" else (root / entry["template"]).read_text("utf-8")
    template = chat_template_utils._compile_jinja_template(source)
    form = {"arguments": entry["arguments"], "no_content": entry["no_content"]}
    own, vectors = conversations()
    golden = {"own": {}, "vectors": []}
    for conversation in own:
        result = render(template, source, conversation, special_tokens, form)
        if tokenizer is not None and "text" in result:
            result["ids"] = ids_digest(tokenizer, result["text"])
        golden["own"][conversation["name"]] = result
    for conversation in vectors:
        result = render(template, source, conversation, special_tokens, form)
        text = result.get("text")
        ids = "" if tokenizer is None or text is None else f" {ids_digest(tokenizer, text)}"
        golden["vectors"].append(result["error"] if text is None else digest(text) + ids)
    return golden
