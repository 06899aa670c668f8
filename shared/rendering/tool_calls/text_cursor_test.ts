import assert from "node:assert/strict";
import fc from "fast-check";
import { TextCursor } from "./text_cursor.ts";

Deno.test("TextCursor gives back any kept stretch, whatever pieces it came in", () => {
  const pieces = fc.array(fc.string({ maxLength: 5 }), { minLength: 1, maxLength: 20 });
  fc.assert(fc.property(pieces, fc.nat(), fc.nat(), fc.nat(), (parts, keepAt, fromAt, toAt) => {
    const text = parts.join("");
    const keep = keepAt % (text.length + 1);
    const cursor = new TextCursor();
    cursor.keep(0);
    for (const part of parts) {
      cursor.feed(part);
      // Some of it stays unread.
      cursor.position = Math.max(0, cursor.window.length - 2);
    }
    if (keep <= cursor.offset) cursor.keep(keep);
    const from = Math.min(text.length, keep + fromAt % (text.length - keep + 1));
    const to = from + toAt % (text.length - from + 1);
    assert.equal(cursor.slice(from, to), text.slice(from, to));
    cursor.rewind(Math.min(from, cursor.offset));
    const offset = cursor.offset;
    assert.equal(cursor.window.slice(cursor.position), text.slice(offset));
    assert.equal(cursor.slice(keep, text.length), text.slice(keep));
  }));
});

Deno.test("TextCursor lets go of what is read and not kept", () => {
  const cursor = new TextCursor();
  cursor.feed("abc");
  cursor.position = 3;
  cursor.feed("de");
  assert.deepEqual([cursor.window, cursor.offset, cursor.endOffset], ["de", 3, 5]);
  cursor.position = 2;
  assert.ok(!cursor.atEnd);
  cursor.ended = true;
  assert.ok(cursor.atEnd);
});

Deno.test("TextCursor counts what is read again as work", () => {
  const cursor = new TextCursor();
  cursor.keep(0);
  cursor.feed("abcd");
  cursor.position = 4;
  assert.equal(cursor.work, 4);
  cursor.rewind(1);
  assert.equal(cursor.work, 7);
});
