/** How long a pause of engines may last whose end is not told. It does not know who pauses. */

/** Then calls go on, and are failures where the engines do not: whoever made the pause may be gone. */
export const LONGEST_PAUSE_MS = 3_600_000;
