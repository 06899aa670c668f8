import { compileChatTemplate } from "../../shared/rendering/chat_template.ts";
import { PromptTemplate } from "../../shared/rendering/prompt_template.ts";
import { plain } from "../../shared/rendering/jinja/text.ts";
import { createHfTokenizer } from "../../shared/adapters/hf_tokenizer.ts";
import { writtenVocabulary } from "./written_vocabulary.ts";
import { canonical } from "../golden/golden_conversation.ts";
import { examineModel } from "../../shared/rendering/create_renderer.ts";
import { examine } from "../../doctor/examine.ts";
const own = JSON.parse(await Deno.readTextFile(new URL("../golden/conversations.json", import.meta.url)));
const vectors = JSON.parse(await Deno.readTextFile(new URL("../fixtures/vectors/templates/qwen3.json", import.meta.url)));
const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);
const mode = Deno.args[0];
const forms: any = {}; const py = mode === "compare" ? JSON.parse(await Deno.readTextFile("/tmp/real_py.json")) : {};
for (const e of [...Deno.readDirSync("/tmp/lcp/real")].map((x) => x.name).sort()) {
  const n = e.replace(".jinja", "");
  if (Deno.args[1] && !n.includes(Deno.args[1])) continue;
  const source = await Deno.readTextFile(`/tmp/lcp/real/${e}`);
  let prompt: any;
  try { prompt = new PromptTemplate({ chatTemplate: compileChatTemplate(source, { now: () => NOW }), specialTokens: { bos_token: "<s>", eos_token: "</s>" }, defaults: {} }); }
  catch (error) { console.log(n, "COMPILE", (error as Error).message); continue; }
  if (mode === "forms") { const f = prompt.callForm; forms[n] = { arguments: f.argumentsAs === "object" ? "object" : "text", no_content: f.noContentAs }; continue; }
  if (mode === "compare") {
    if (!Array.isArray(py[n])) { console.log(n, "PY", py[n]); continue; }
    let bad = 0, errs = 0;
    for (const [i, c] of [...own, ...vectors].entries()) {
      let got: any; try { got = { text: plain(prompt.render({ ...canonical(c), addGenerationPrompt: c.add_generation_prompt })) }; } catch (error) { got = { error: (error as Error).message }; }
      const want = py[n][i];
      if ("error" in want && "error" in got) { errs++; continue; }
      if (got.text !== want.text && bad++ < 2) { let k = 0; while (got.text && want.text && got.text[k] === want.text[k]) k++; console.log(n, i, c.name, "AT", k, JSON.stringify((want.text ?? want.error).slice(Math.max(0,k - 60), k + 60)), "GOT", JSON.stringify((got.text ?? got.error).slice(Math.max(0,k - 60), k + 100))); }
    }
    console.log(n, "bad", bad, "errors", errs);
    continue;
  }
  const tokens = new Set<string>(["<s>", "</s>"]);
  for (const m of source.matchAll(/<\|[\w ]+\|>|<｜[^<>｜\s]+｜>|\[\/?[A-Z_]{3,}\]|<\/?(?:think|tool_call|tool_response|arg_key|arg_value|minimax:tool_call|start_of_turn|end_of_turn|turn\||\|turn|\|?channel\|?)>|<sop>|\[gMASK\]|\]~!b\[|\]~b\]|\[e~\[|<(?:start|end)_of_turn>|<\|?turn\|?>|<\|\w+>|<\w+\|>/g)) tokens.add(m[0]);
  const tokenizer = createHfTokenizer(writtenVocabulary({ special: [...tokens].filter((t) => !/^<\/?\w+>$/.test(t) || t === "<s>" || t === "</s>"), plain: [...tokens].filter((t) => /^<\/?[\w:]+>$/.test(t) && t !== "<s>" && t !== "</s>"), bos: "<s>", eos: "</s>" }), { worker: "none" });
  const d = await examine({ tokenizer, renderer: { chatTemplate: source, now: () => NOW }, engine: null });
  const a = new Map(d.about);
  console.log(`${d.healthy ? "ok  " : "FAIL"} ${n} | ${a.get("family")} | ${a.get("tool-call parser")} | ${a.get("reasoning parser")} | ${a.get("a turn ends in")}`);
  for (const f of d.findings) if (f.verdict === "failed") console.log("      ", f.name, "|", f.note.slice(0, 420));
}
if (mode === "forms") await Deno.writeTextFile("/tmp/real_forms.json", JSON.stringify(forms));
