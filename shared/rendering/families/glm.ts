/** GLM-4.5 and later: roles are tokens, and a reply ends in the token of the role that the model expects next. */

import { type Family, PLAIN_FAMILY } from "./family.ts";

export const GLM: Family = {
  ...PLAIN_FAMILY,
  name: "glm",
  stopTokens: ["<|user|>", "<|observation|>"],
};
