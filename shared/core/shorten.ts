/** Text cut down to what fits in a record. */

/** A text of at most about 200 characters: longer ones keep their start, their end and their length. */
export function shorten(text: string): string {
  if (text.length <= 200) return text;
  return `${text.slice(0, 120)} [${text.length - 170} characters] ${text.slice(-50)}`.toWellFormed();
}
