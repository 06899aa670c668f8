"""Times Hugging Face's own tokenizers in processor time: reads {vocabularies, corpora} from a file, prints seconds as JSON."""

import json
import os
import sys
import time
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tokenizers import Tokenizer  # noqa: E402

ROUNDS = 3


def main():
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    seconds = {}
    for name, folder in request["folders"].items():
        seconds[name] = {}
        for corpus, pieces in request["corpora"].items():
            best = float("inf")
            for _ in range(ROUNDS):
                tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
                tokenizer.encode("warm", add_special_tokens=False)
                start = time.process_time()
                for piece in pieces:
                    tokenizer.encode(piece, add_special_tokens=False)
                best = min(best, time.process_time() - start)
            seconds[name][corpus] = best
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
