/** Text of any length that looks like what agents read: prose, code, logs. The same seed gives the same text. */

const WORDS =
  ("the of and to in is that for it as with was on be by this are from at or have an not which but can all " +
    "when there will if each about how up out them then many some would other into has more two time way could been " +
    "call who now find long down day did get come made may part over new sound take only little work know place year " +
    "request response buffer index cache token session thread queue worker model prompt engine gradient reward policy " +
    "parser value result error config module import return function class object string number array list table record " +
    "commit branch test build release version update remove create insert delete select file path folder line column")
    .split(" ");
const LINES: readonly ((draw: Draw) => string)[] = [
  (draw) => `${sentence(draw)} ${sentence(draw)}`,
  (draw) => `    ${draw.word()}_${draw.word()} = ${draw.word()}.${draw.word()}(${draw.word()}, ${draw.integer(1000)})`,
  (draw) => `def ${draw.word()}_${draw.word()}(self, ${draw.word()}: str) -> int:`,
  (draw) => `[${draw.integer(24)}:${draw.integer(60)}] ${draw.word().toUpperCase()} ${draw.hex()} ${sentence(draw)}`,
  (draw) => `  "${draw.word()}": {"${draw.word()}": "${draw.hex()}", "${draw.word()}": ${draw.integer(1e6)}},`,
];

interface Draw {
  integer(below: number): number;
  word(): string;
  hex(): string;
}

/** At least one line, `length` UTF-16 units (all ASCII) exactly. */
export function promptText(length: number, seed: number): string {
  const draw = drawFrom(seed);
  const lines: string[] = [];
  for (let written = 0; written < length;) {
    const line = LINES[draw.integer(LINES.length)]!(draw);
    lines.push(line);
    written += line.length + 1;
  }
  return lines.join("\n").padEnd(length).slice(0, length);
}

/** The same of sentences alone, which have fewer tokens for their length. */
export function proseText(length: number, seed: number): string {
  const draw = drawFrom(seed);
  let text = "";
  while (text.length < length) text += `${sentence(draw)} `;
  return text.slice(0, length);
}

function sentence(draw: Draw): string {
  const words = Array.from({ length: 6 + draw.integer(10) }, () => draw.word()).join(" ");
  return `${words[0]!.toUpperCase()}${words.slice(1)}.`;
}

/** A small generator of good enough randomness (mulberry32). */
function drawFrom(seed: number): Draw {
  let state = Math.imul(seed + 1, 0x9e3779b1);
  function integer(below: number): number {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor(((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32 * below);
  }
  return {
    integer,
    word: () => WORDS[integer(WORDS.length)]!,
    hex: () => integer(2 ** 32).toString(16).padStart(8, "0"),
  };
}
