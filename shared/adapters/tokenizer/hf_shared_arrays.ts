/** Typed arrays that a worker can share instead of copying, where the host lets memory be shared. */

export function sharedUint32(length: number): Uint32Array {
  return new Uint32Array(sharedBuffer(length * Uint32Array.BYTES_PER_ELEMENT));
}

export function sharedUint8(length: number): Uint8Array {
  return new Uint8Array(sharedBuffer(length));
}

function sharedBuffer(bytes: number): ArrayBufferLike {
  return typeof SharedArrayBuffer === "function" ? new SharedArrayBuffer(bytes) : new ArrayBuffer(bytes);
}
