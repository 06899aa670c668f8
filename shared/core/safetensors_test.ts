import assert from "node:assert/strict";
import fc from "fast-check";
import { safetensors, type TensorData } from "./safetensors.ts";

Deno.test("safetensors() lays tensors out end to end, each aligned to its elements", () => {
  const data: fc.Arbitrary<TensorData> = fc.oneof(
    fc.float32Array(),
    fc.float64Array(),
    fc.int32Array(),
    fc.uint8Array(),
  );
  const metadata = fc.dictionary(fc.string(), fc.string());
  fc.assert(fc.property(fc.array(data), metadata, (arrays, texts) => {
    const tensors = arrays.map((array, k) => ({ name: `tensor ${k}`, shape: [array.length, 1], data: array }));
    const { parts, byteLength } = safetensors(tensors, texts);
    const bytes = new Uint8Array(parts.flatMap((part) => [...part]));
    assert.equal(bytes.length, byteLength);
    const length = Number(new DataView(bytes.buffer).getBigUint64(0, true));
    assert.equal(length % 8, 0);
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
    assert.deepEqual({ ...header.__metadata__ }, { ...texts });
    delete header.__metadata__;
    let end = 0;
    for (const entry of Object.values<{ data_offsets: [number, number] }>(header)) {
      assert.equal(entry.data_offsets[0], end);
      end = entry.data_offsets[1];
    }
    assert.equal(8 + length + end, byteLength);
    for (const { name, data } of tensors) {
      const [from, to] = header[name].data_offsets;
      assert.equal(from % data.BYTES_PER_ELEMENT, 0);
      const own = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
      assert.deepEqual(bytes.slice(8 + length + from, 8 + length + to), Uint8Array.from(own));
    }
  }));
});

Deno.test("safetensors() names types and shapes, and refuses a shape that does not fit", () => {
  const { parts } = safetensors([
    { name: "a", shape: [2, 0], data: new Int32Array(0) },
    { name: "b", shape: [1], data: Float64Array.of(1) },
    { name: "c", shape: [], data: Uint8Array.of(1) },
    { name: "d", shape: [2], data: Float32Array.of(1, 2) },
  ]);
  const header = JSON.parse(new TextDecoder().decode(parts[0]!.subarray(8)));
  const types = Object.fromEntries(
    ["a", "b", "c", "d"].map((name) => [name, [header[name].dtype, header[name].shape]]),
  );
  assert.deepEqual(types, { a: ["I32", [2, 0]], b: ["F64", [1]], c: ["U8", []], d: ["F32", [2]] });
  assert.throws(() => safetensors([{ name: "a", shape: [3], data: Uint8Array.of(1) }]), RangeError);
});
