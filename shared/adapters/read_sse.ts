/** Reads the data of server-sent events from a byte stream. */

/** Yields each event's data. Lines may be cut anywhere; a last event without its blank line is not an event. */
export async function* readSse(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let data: string[] = [];
  for await (const line of linesOf(body)) {
    if (line === "") {
      if (data.length > 0) yield data.join("\n");
      data = [];
    } else if (line.startsWith("data:")) {
      data.push(line.slice(line[5] === " " ? 6 : 5));
    }
  }
}

/** Whole lines without their ends. The pieces of a long line are joined once, so that its cost is its length. */
async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let pieces: string[] = [];
  for await (const bytes of body) {
    const text = decoder.decode(bytes, { stream: true });
    let from = 0;
    for (let end = text.indexOf("\n", from); end !== -1; end = text.indexOf("\n", from)) {
      pieces.push(text.slice(from, end));
      const line = pieces.length === 1 ? pieces[0]! : pieces.join("");
      pieces = [];
      from = end + 1;
      yield line.endsWith("\r") ? line.slice(0, -1) : line;
    }
    if (from < text.length) pieces.push(text.slice(from));
  }
}
