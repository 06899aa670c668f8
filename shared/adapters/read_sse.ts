/** Reads the data of server-sent events from a byte stream. */

/** Yields each event's data. Lines may be cut anywhere; a last event without its blank line is not an event. */
export async function* readSse(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  let data: string[] = [];
  const decoder = new TextDecoder();
  for await (const bytes of body) {
    const text = rest + decoder.decode(bytes, { stream: true });
    let from = 0;
    for (let end = text.indexOf("\n", from); end !== -1; end = text.indexOf("\n", from)) {
      const line = text.slice(from, text[end - 1] === "\r" && end > from ? end - 1 : end);
      from = end + 1;
      if (line === "") {
        if (data.length > 0) yield data.join("\n");
        data = [];
      } else if (line.startsWith("data:")) {
        data.push(line.slice(line[5] === " " ? 6 : 5));
      }
    }
    rest = text.slice(from);
  }
}
