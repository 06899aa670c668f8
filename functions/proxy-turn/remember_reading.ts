/** Reads each parsed item of a list once, however many requests hold the very same object. It knows no dialect. */

/** What `read` gives, and the same object again for the same object in the same place. `read` looks at nothing else. */
export function rememberReading<Read>(
  read: (item: unknown, source: number) => Read,
): (item: unknown, source: number) => Read {
  const known = new WeakMap<object, { readonly source: number; readonly read: Read }>();
  return (item, source) => {
    if (typeof item !== "object" || item === null) return read(item, source);
    const earlier = known.get(item);
    if (earlier?.source === source) return earlier.read;
    const made = read(item, source);
    known.set(item, { source, read: made });
    return made;
  };
}
