/** What a turn's place in the history is made of. */

/** What the history needs to know of one committed turn. */
export interface TurnHistory {
  /** Digest of the tool list. */
  readonly toolsDigest: string;
  /** Digest of the template settings. */
  readonly settingsDigest: string;
}
