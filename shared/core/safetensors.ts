/** Arrays in the safetensors format: a header that says where each tensor lies, then their bytes. It only writes. */

/** The bytes of a tensor; little-endian as on every machine that Deno runs on. */
export type TensorData = Float32Array | Float64Array | Int32Array | Uint8Array;

/** One named array. */
export interface Tensor {
  /** Its name in the file. */
  readonly name: string;
  /** Its dimensions; their product is the number of elements. */
  readonly shape: readonly number[];
  /** Its elements, row by row. */
  readonly data: TensorData;
}

/** A file in parts, to be written one after the other. */
export interface SafetensorsFile {
  /** Header, then the tensors' own bytes, not copied. */
  readonly parts: readonly Uint8Array[];
  /** All parts together. */
  readonly byteLength: number;
}

/** The format's headers end at a multiple of this, and so does every tensor of wide elements. */
const ALIGNMENT = 8;

/**
 * A file of these tensors, those of the widest elements first, so that each is aligned. `metadata` are texts beside
 * them. A shape that does not fit its data is a RangeError.
 */
export function safetensors(
  tensors: readonly Tensor[],
  metadata: Readonly<Record<string, string>> = {},
): SafetensorsFile {
  const sorted = tensors.toSorted((left, right) => right.data.BYTES_PER_ELEMENT - left.data.BYTES_PER_ELEMENT);
  const entries: [string, unknown][] = [];
  let offset = 0;
  for (const { name, shape, data } of sorted) {
    if (shape.reduce((product, side) => product * side, 1) !== data.length) {
      throw new RangeError(`Tensor ${name} has ${data.length} elements and the shape [${shape.join(", ")}]`);
    }
    const end = offset + data.byteLength;
    entries.push([name, { dtype: typeName(data), shape, data_offsets: [offset, end] }]);
    offset = end;
  }
  const header = JSON.stringify(Object.fromEntries([["__metadata__", metadata], ...entries]));
  const text = new TextEncoder().encode(header);
  const padded = Math.ceil(text.length / ALIGNMENT) * ALIGNMENT;
  const head = new Uint8Array(8 + padded).fill(0x20);
  new DataView(head.buffer).setBigUint64(0, BigInt(padded), true);
  head.set(text, 8);
  return {
    parts: [head, ...sorted.map(({ data }) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength))],
    byteLength: head.byteLength + offset,
  };
}

function typeName(data: TensorData): string {
  if (data instanceof Float32Array) return "F32";
  if (data instanceof Float64Array) return "F64";
  return data instanceof Int32Array ? "I32" : "U8";
}
