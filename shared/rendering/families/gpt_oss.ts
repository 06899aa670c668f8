/** gpt-oss: its channels end in `<|return|>` or `<|call|>` where sampled, in `<|end|>` where the template writes history. */

import { type Family, plainCallId } from "./family.ts";

export const GPT_OSS: Family = { name: "gpt_oss", closedBy: ["<|return|>"], callId: plainCallId };
