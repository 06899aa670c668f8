/** Why a request is refused, in the terms of SGLang's server: what Python would have raised. It knows no HTTP. */

/**
 * - `value`: a ValueError; 400 `{"error": {"message"}}`, or an error frame where the answer streams.
 * - `type`: any other exception; a plain 500.
 * - `body`: the body does not fit the request's fields; 400 in the flat form.
 */
export type RefusalKind = "value" | "type" | "body";

/** A refusal before a request reaches the scheduler. */
export class EngineRefusal extends Error {
  readonly kind: RefusalKind;

  /** The message goes to the client, except for `type`. */
  constructor(kind: RefusalKind, message: string) {
    super(message);
    this.name = "EngineRefusal";
    this.kind = kind;
  }
}
