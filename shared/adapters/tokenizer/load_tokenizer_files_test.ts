import assert from "node:assert/strict";
import { loadTokenizerFiles } from "./load_tokenizer_files.ts";
import { loadHubFiles } from "./transformers_tokenizer.ts";

const TOKENIZER = { model: { vocab: { a: 0 } } };
const FILES: Record<string, string> = {
  "tokenizer.json": JSON.stringify(TOKENIZER),
  "tokenizer_config.json": '{"eos_token": "a"}',
  "chat_template.jinja": "{{ messages }}",
  "generation_config.json": '{"eos_token_id": [1, 2]}',
};

async function inFolder(files: Record<string, string>, work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "tokenizer files " });
  try {
    for (const [name, text] of Object.entries(files)) await Deno.writeTextFile(`${folder}/${name}`, text);
    await work(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function servingFiles(files: Record<string, string>, work: (url: string) => Promise<void>): Promise<void> {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    const text = files[new URL(request.url).pathname.replace("/model/", "")];
    return text === undefined ? new Response("no such file", { status: 404 }) : new Response(text);
  });
  try {
    await work(`http://127.0.0.1:${server.addr.port}/model`);
  } finally {
    await server.shutdown();
  }
}

const WANTED = {
  tokenizerJson: TOKENIZER,
  tokenizerConfig: { eos_token: "a" },
  chatTemplate: "{{ messages }}",
  stopTokenIds: [1, 2],
};

Deno.test("loadTokenizerFiles reads a folder, by path and by URL", async () => {
  await inFolder(FILES, async (folder) => {
    assert.deepEqual(await loadTokenizerFiles(folder), WANTED);
    const url = `file://${folder.replaceAll(" ", "%20")}`;
    assert.deepEqual(await loadTokenizerFiles(url), WANTED);
    assert.deepEqual(await loadTokenizerFiles(`${url}/tokenizer.json`), WANTED);
  });
});

Deno.test("loadTokenizerFiles reads a folder over HTTP", async () => {
  await servingFiles(FILES, async (url) => {
    assert.deepEqual(await loadTokenizerFiles(url), WANTED);
    assert.deepEqual(await loadTokenizerFiles(`${url}/tokenizer.json`), WANTED);
  });
});

Deno.test("loadTokenizerFiles does without template and generation settings", async () => {
  const { "tokenizer.json": json = "", "tokenizer_config.json": config = "" } = FILES;
  const few = { "tokenizer.json": json, "tokenizer_config.json": config };
  const wanted = { ...WANTED, chatTemplate: null, stopTokenIds: [] };
  await inFolder(few, async (folder) => assert.deepEqual(await loadTokenizerFiles(folder), wanted));
  await servingFiles(few, async (url) => assert.deepEqual(await loadTokenizerFiles(url), wanted));
  await inFolder({ ...few, "generation_config.json": '{"eos_token_id": 7}' }, async (folder) => {
    assert.deepEqual((await loadTokenizerFiles(folder)).stopTokenIds, [7]);
  });
});

Deno.test("loadTokenizerFiles tells which file is missing or unreadable", async () => {
  await inFolder({}, async (folder) => {
    await assert.rejects(loadTokenizerFiles(folder), { code: "not_ready", message: /no tokenizer\.json/ });
  });
  await inFolder({ ...FILES, "tokenizer_config.json": "{" }, async (folder) => {
    await assert.rejects(loadTokenizerFiles(folder), {
      code: "not_ready",
      message: /tokenizer_config\.json .* not JSON/,
    });
  });
  await inFolder({ ...FILES, "generation_config.json": '{"eos_token_id": "end"}' }, async (folder) => {
    await assert.rejects(loadTokenizerFiles(folder), { code: "not_ready", message: /"end"/ });
  });
  await assert.rejects(loadTokenizerFiles("/no/such folder"), { code: "not_ready" });
});

Deno.test("loadTokenizerFiles takes what is neither folder nor URL for a hub id", async () => {
  const asked: string[] = [];
  const files = await loadTokenizerFiles("Owner/Model-1.5", {
    loadFromHub: (id) => {
      asked.push(id);
      return Promise.resolve({ ...WANTED, generationConfig: { eos_token_id: [1, 2] } });
    },
  });
  assert.deepEqual(files, WANTED);
  assert.deepEqual(asked, ["Owner/Model-1.5"]);
});

class FakeTokenizer {
  readonly _tokenizerJSON = TOKENIZER;
  readonly _tokenizerConfig = { eos_token: "a" };
}

Deno.test("loadHubFiles takes the package's tokenizer and the files beside it", async () => {
  await servingFiles(FILES, async (url) => {
    const transformers = {
      AutoTokenizer: { from_pretrained: (id: string) => id === "model" ? new FakeTokenizer() : assert.fail(id) },
      env: { remoteHost: new URL("/", url).href, remotePathTemplate: "{model}/" },
    };
    const files = await loadHubFiles("model", { importTransformers: () => Promise.resolve(transformers) });
    assert.deepEqual(files, {
      tokenizerJson: TOKENIZER,
      tokenizerConfig: { eos_token: "a" },
      chatTemplate: "{{ messages }}",
      generationConfig: { eos_token_id: [1, 2] },
    });
  });
});

Deno.test("loadHubFiles tells what is wrong with package or model", async () => {
  const load = (transformers: () => Promise<unknown>) => loadHubFiles("model", { importTransformers: transformers });
  await assert.rejects(load(() => Promise.reject(new Error("no package"))), { code: "not_ready", message: /imported/ });
  await assert.rejects(load(() => Promise.resolve({})), { code: "not_ready", message: /AutoTokenizer/ });
  const env = { remoteHost: "http://127.0.0.1:1/", remotePathTemplate: "{model}/" };
  const failing = { AutoTokenizer: { from_pretrained: () => Promise.reject(new Error("unknown model")) }, env };
  await assert.rejects(load(() => Promise.resolve(failing)), { code: "not_ready", message: /model can't be loaded/ });
  const changed = { AutoTokenizer: { from_pretrained: () => Promise.resolve({}) }, env };
  await assert.rejects(load(() => Promise.resolve(changed)), { code: "not_ready", message: /another version/ });
});
