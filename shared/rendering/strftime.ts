/** Python's `strftime` for the formats that chat templates use, in UTC and English. It does not know what time it is. */

import { VerbatimError } from "../core/errors.ts";

const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/** The date `epochMs` in a format. A directive that no template is known to use is refused, not left in the text. */
export function strftime(epochMs: number, format: string): string {
  const date = new Date(epochMs);
  return format.replace(/%(-?)(.?)/gs, (directive, minus: string, letter: string) => {
    const width = minus === "-" ? 1 : 2;
    switch (letter) {
      case "Y":
        return String(date.getUTCFullYear()).padStart(4, "0");
      case "y":
        return padded(date.getUTCFullYear() % 100, width);
      case "m":
        return padded(date.getUTCMonth() + 1, width);
      case "d":
        return padded(date.getUTCDate(), width);
      case "H":
        return padded(date.getUTCHours(), width);
      case "I":
        return padded(date.getUTCHours() % 12 === 0 ? 12 : date.getUTCHours() % 12, width);
      case "M":
        return padded(date.getUTCMinutes(), width);
      case "S":
        return padded(date.getUTCSeconds(), width);
      case "p":
        return date.getUTCHours() < 12 ? "AM" : "PM";
      case "B":
        return MONTHS[date.getUTCMonth()] ?? "";
      case "b":
        return (MONTHS[date.getUTCMonth()] ?? "").slice(0, 3);
      case "A":
        return DAYS[date.getUTCDay()] ?? "";
      case "a":
        return (DAYS[date.getUTCDay()] ?? "").slice(0, 3);
      case "Z":
        return "UTC";
      case "%":
        return "%";
      default:
        throw new VerbatimError(
          "unsupported",
          `The chat template asks for a date in the format ${JSON.stringify(format)}; ${directive} is not supported.`,
        );
    }
  });
}

function padded(value: number, width: number): string {
  return String(value).padStart(width, "0");
}
