/** JSON text without what is lost when it is sent as a value: white space and string escapes. */

/** A string, a stretch of white space, or anything else. Only for text that is known to be JSON. */
const TOKENS = /"(?:[^"\\]+|\\.)*"|\s+/g;

/**
 * The text of a call's arguments with its white space gone and its strings in one spelling; key order, duplicate keys
 * and number literals stay as written. `""` is `{}`; text that is no JSON stays as it is, marked.
 */
export function spelledArguments(text: string): string {
  if (text === "") return "{}";
  try {
    JSON.parse(text);
  } catch {
    return `!${text}`;
  }
  return text.replace(TOKENS, (token) => token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : "");
}
