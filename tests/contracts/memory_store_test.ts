import { createMemoryStore } from "../../shared/adapters/memory_store.ts";
import { testTaskStore } from "./task_store_contract.ts";

testTaskStore("MemoryStore", () => {
  const store = createMemoryStore();
  return Promise.resolve({ store, residue: null, dispose: () => store.close() });
});
