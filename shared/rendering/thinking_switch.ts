/** Which setting of a chat template turns reasoning on and off, read from the template's text. It renders nothing. */

/** The setting and what holds without it; null where the template has none. */
export type ThinkingSwitch =
  | { readonly setting: "enable_thinking" | "thinking"; readonly byDefault: boolean }
  | null;

/** The ways templates write a default. Whatever says "unless told otherwise" is on, an assigned false is off. */
export function detectThinkingSwitch(template: string): ThinkingSwitch {
  for (const setting of ["enable_thinking", "thinking"] as const) {
    const name = `(?<![\\w.])${setting}`;
    const assigned = (value: string) =>
      new RegExp(
        `if\\s+(?:not\\s+${name}\\s+is\\s+defined|${name}\\s+is\\s+not\\s+defined)\\s*-?%}.{0,80}?` +
          `set\\s+${setting}\\s*=\\s*${value}\\s*-?%}`,
        "is",
      );
    if (assigned("false").test(template)) return { setting, byDefault: false };
    const isOn = [
      assigned("true"),
      new RegExp(`set\\s+${setting}\\s*=\\s*${setting}\\s+if\\s+${setting}\\s+is\\s+defined\\s+else\\s+true`, "i"),
      new RegExp(`${name}\\s+is\\s+defined\\s+and\\s+(?:${setting}\\s+is\\s+false|not\\s+${setting})`, "i"),
      new RegExp(`${name}\\s+is\\s+not\\s+defined\\s+or\\s+${setting}`),
      new RegExp(`namespace\\([^)]*(?<!\\w)${setting}\\s*=\\s*true`, "i"),
    ];
    if (isOn.some((pattern) => pattern.test(template))) return { setting, byDefault: true };
  }
  return null;
}
