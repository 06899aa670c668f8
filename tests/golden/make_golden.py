"""Writes the golden files from Python's own libraries, and says what changed.

python make_golden.py FOLDERS [--full DIR] [--only encode|conversations]

FOLDERS is a JSON file: the folder of each package's tokenizer.json by the package's name. regenerate.ts writes it.
--full writes every case with its ids too, to look into a digest that differs. The versions that were used are in
requirements.txt.
"""

import argparse
import json
import sys
from pathlib import Path

from encode_golden import encode_golden
from render_golden import render_golden

HERE = Path(__file__).parent


def write(path: Path, data, changes: list[str]):
    """Writes JSON where it says something new; how it is laid out is deno fmt's affair."""
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    if before == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    name = path.relative_to(HERE)
    if before is None:
        changes.append(f"new      {name}")
        return
    found = list(differences(before, data, ""))
    changes.append(f"changed  {name}: {len(found)} values")
    for place, old, new in found[:5]:
        changes.append(f"  {place}\n    was {json.dumps(old, ensure_ascii=False)[:300]}")
        changes.append(f"    is  {json.dumps(new, ensure_ascii=False)[:300]}")


def differences(old, new, place):
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            yield from differences(old.get(key), new.get(key), f"{place}.{key}")
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            before = old[index] if index < len(old) else None
            after = new[index] if index < len(new) else None
            yield from differences(before, after, f"{place}[{index}]")
    elif old != new:
        yield place, old, new


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folders", type=Path)
    arguments.add_argument("--full", type=Path)
    arguments.add_argument("--only", choices=["encode", "conversations"])
    options = arguments.parse_args()
    folders = {name: Path(path) for name, path in json.loads(options.folders.read_text(encoding="utf-8")).items()}
    changes: list[str] = []
    if options.only != "conversations":
        for name in json.loads((HERE / "vocabularies.json").read_text()):
            golden = encode_golden(name, folders[name], options.full)
            write(HERE / "encode" / f"{name.rsplit('/', 1)[-1]}.json", golden, changes)
    if options.only != "encode":
        for entry in json.loads((HERE / "templates.json").read_text(encoding="utf-8")):
            golden = render_golden(entry, HERE.parent.parent, folders)
            write(HERE / "rendered" / f"{entry['name']}.json", golden, changes)
    print("\n".join(changes) if changes else "nothing changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
