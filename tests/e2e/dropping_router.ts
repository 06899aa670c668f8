/** What a router does to requests that it parses and writes anew: fields that it does not know are gone. */

/** Fields of a body that are dropped, and of its sampling parameters. */
const DROPPED = ["return_routed_experts", "routed_experts_start_len"];
const DROPPED_SAMPLING = ["custom_params"];

/** A `fetch` with such a router on the way. */
export function fetchThroughRouter(input: URL | Request | string, init?: RequestInit): Promise<Response> {
  if (init?.method !== "POST" || !String(input).endsWith("/generate") || !(init.body instanceof Uint8Array)) {
    return fetch(input, init);
  }
  const body: Record<string, unknown> = JSON.parse(new TextDecoder().decode(init.body));
  const sampling = Object.entries(Object(body.sampling_params)).filter(([name]) => !DROPPED_SAMPLING.includes(name));
  const kept = Object.entries(body).filter(([name]) => !DROPPED.includes(name));
  const written = { ...Object.fromEntries(kept), sampling_params: Object.fromEntries(sampling) };
  return fetch(input, { ...init, body: JSON.stringify(written) });
}
