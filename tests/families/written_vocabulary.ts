/**
 * Small vocabularies written for tests: the 256 bytes, no merges, and the added tokens of a family, in the files' own form.
 * For families whose tokenizer no package carries; what is tested is templates and control tokens, not merges.
 */

import { byteCharacters } from "../../shared/adapters/tokenizer/hf_byte_level.ts";
import type { HfTokenizerFiles } from "../../shared/adapters/tokenizer/hf_files.ts";

/** Added tokens by what the model's own files say of them. */
export interface AddedTokens {
  readonly special: readonly string[];
  readonly plain: readonly string[];
  readonly bos?: string;
  readonly eos: string;
}

/** The two files of such a vocabulary. */
export function writtenVocabulary({ special, plain, bos, eos }: AddedTokens): HfTokenizerFiles {
  const vocab = Object.fromEntries(byteCharacters().map((character, byte) => [character, byte]));
  const added_tokens = [...special, ...plain].map((content, index) => ({
    id: 256 + index,
    content,
    special: index < special.length,
    normalized: false,
    lstrip: false,
    rstrip: false,
    single_word: false,
  }));
  const tokenizerJson = {
    added_tokens,
    normalizer: null,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, use_regex: false },
    post_processor: null,
    decoder: { type: "ByteLevel" },
    model: { type: "BPE", vocab, merges: [] },
  };
  const tokenizerConfig = { eos_token: eos, ...(bos === undefined ? {} : { bos_token: bos }) };
  return { tokenizerJson, tokenizerConfig };
}
