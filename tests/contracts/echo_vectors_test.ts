/** Every echo vector through the pure functions: places, grades and verdicts must be those the vectors state. */

import assert from "node:assert/strict";
import { Forest } from "../../shared/core/forest.ts";
import { servedBy } from "../../shared/core/forest_node.ts";
import { type Decision, verdictText } from "../../shared/core/judgement.ts";
import { locate } from "../../shared/core/locate.ts";
import { requestHistory, turnHistory } from "../../shared/core/record_history.ts";
import { requestUnits } from "../../shared/core/request_units.ts";
import type { RequestHistory, TurnHistory } from "../../shared/core/turn_history.ts";
import { judge, verdictOnArrival } from "../../shared/core/verdict.ts";
import {
  assistantOf,
  conversationOf,
  type EchoVector,
  readEchoVectors,
  type VectorExpectation,
} from "./echo_vectors.ts";

const POLICY = { history: "append_only", echo: "lenient", final: true } as const;

/** The forest of a vector's requests, and what `locate` said of each when it came. */
function replay(vector: EchoVector): { forest: Forest; located: ReturnType<typeof locate>[] } {
  const forest = new Forest();
  const located = vector.requests.map((_, k) => {
    const request = requestUnits(conversationOf(vector, k));
    const place = locate(forest, request, { echo: "lenient" });
    const { reply } = vector.served[k]!;
    // What is stored comes back as JSON.
    if (reply === null) {
      const history: RequestHistory = JSON.parse(JSON.stringify(requestHistory(forest, request)));
      forest.addFailed(history);
    } else {
      const history: TurnHistory = JSON.parse(JSON.stringify(turnHistory(forest, request, assistantOf(vector, reply))));
      forest.add(forest.turns, place.extend?.turn ?? null, history);
    }
    return place;
  });
  return { forest, located };
}

function wanted(expected: VectorExpectation): Record<string, unknown> {
  const strict = expected.strict_echo ?? expected.append_only;
  return {
    relation: expected.relation,
    parent: expected.parent,
    echo: expected.echo,
    echo_also: expected.echo_also ?? [],
    tools: expected.tools ?? "same",
    reasoning: expected.reasoning ?? null,
    append_only: expected.append_only,
    strict_echo: strict,
    on_arrival: expected.on_arrival ?? expected.append_only,
    on_arrival_strict: expected.on_arrival_strict ?? expected.on_arrival ?? strict,
  };
}

function found(forest: Forest, decision: Decision): Record<string, unknown> {
  const arrival = verdictOnArrival(forest, decision.entry);
  return {
    relation: decision.relation,
    parent: decision.relatedEntry,
    echo: decision.echo,
    echo_also: decision.also,
    tools: decision.toolsChanged ? "changed" : "same",
    reasoning: decision.reasoning,
    append_only: verdictText(decision.verdict),
    strict_echo: verdictText(decision.strictVerdict),
    on_arrival: verdictText(arrival.lenient),
    on_arrival_strict: verdictText(arrival.strict),
  };
}

for (const vector of readEchoVectors()) {
  Deno.test(`judge gives the verdicts of ${vector.id}`, () => {
    const { forest } = replay(vector);
    const { decisions } = judge(forest, POLICY);
    assert.deepEqual(decisions.map((decision) => found(forest, decision)), vector.expect.map(wanted));
  });

  Deno.test(`locate places the requests of ${vector.id} as they come`, () => {
    const { forest, located } = replay(vector);
    for (const [k, place] of located.entries()) {
      const expected = vector.expect[k]!;
      // Which root is the main one, and whether a retried request made a turn, is not known on arrival.
      const isRoot = expected.relation === "root" || expected.relation === "side_root";
      if (isRoot) {
        assert.ok(place.relation === "root" || place.relation === "side_root", `request ${k}: ${place.relation}`);
      } else assert.equal(place.relation, expected.relation, `request ${k}`);
      assert.equal(place.echo, expected.echo, `request ${k}`);
      // Nor which calls are side calls, which no fork is said to come from.
      if (expected.relation === "fork") continue;
      const parent = expected.parent === null ? null : forest.entries[expected.parent]!;
      assert.equal(place.relatedTo, parent === null ? null : servedBy(parent)?.turn ?? null, `request ${k}`);
    }
  });
}
