/**
 * Recorded responses of go-ipfs 0.9.0 and Kubo 0.43.0 to random calls, and how responses are
 * compared.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { families } from "#test/clients/differential/families.ts";
import { type Compared, type Family, levels } from "#test/clients/differential/family.ts";
import { casesOf, comparedIn, play, responder, textOf } from "#test/clients/differential/play.ts";
import { replay } from "#test/clients/differential/recording.ts";
import { isUnexplained, shown } from "#test/clients/differential/report.ts";
import { RawRpc } from "#test/clients/differential/rpc.ts";
import { startRpc } from "./support.ts";

describe("random calls get the recorded responses of go-ipfs and Kubo", () => {
  for (const level of levels) {
    test(`recorded calls at the level ${level} get the recorded responses`, async () => {
      await using host = await startRpc({ api_level: level });
      await using rpc = new RawRpc(`http://127.0.0.1:${host.http}`);
      for (const family of families.filter(({ recorded }) => recorded > 0)) {
        for (const call of family.before ?? []) await rpc.ask(call);
        const outcomes = await replay(family, level, responder(family, rpc.ask));
        assert.deepEqual(outcomes.filter(isUnexplained).map(shown), [], family.name);
      }
    });
  }
});

describe("comparing a case", () => {
  const family = (...paths: string[]): Family => ({
    name: "test",
    *random() {
      for (const path of paths) yield { path };
    },
    explained: [{ reason: "it is meant", applies: ({ ours }) => ours.response === "meant" }],
    recorded: 0,
  });
  const played = (responses: readonly string[], paths = ["a", "b"]) => {
    const given = responses.values();
    const [first] = casesOf(family(...paths), "0.43", { seed: 1, count: 1 });
    const ours = async () => comparedIn(given.next().value as string);
    return play(family(), "0.43", first as NonNullable<typeof first>, async () => comparedIn("400\n! no"), ours);
  };

  test("equal responses are no difference", async () => {
    assert.deepEqual(await played(["400\n! no", "400\n! no"]), {
      name: "random 0",
      calls: 2,
      otherWords: [],
      difference: undefined,
      reason: undefined,
    });
  });

  test("a refusal with another message is counted, and the case continues", async () => {
    const { calls, otherWords, difference } = await played(["400\n! never", "400\n! no"]);
    assert.deepEqual([calls, otherWords.length, difference], [2, 1, undefined]);
  });

  test("a case ends with its first difference, which needs an explanation", async () => {
    const outcomes = [await played(["200 yes"]), await played(["400"]), await played(["meant"])];
    assert.deepEqual(
      outcomes.map((outcome) => [outcome.calls, outcome.reason, isUnexplained(outcome)]),
      [
        [1, undefined, true],
        [1, undefined, true],
        [1, "it is meant", false],
      ],
    );
  });

  test("responses are parsed as they were recorded", () => {
    for (const compared of [{ response: "200 a\nb" }, { response: "500", refusal: "a\n! b" }] satisfies Compared[]) {
      assert.deepEqual(comparedIn(textOf(compared)), compared);
    }
  });

  test("each family makes the same calls for the same seed", () => {
    const callsOf = (family: Family) =>
      [...casesOf(family, "0.43", { seed: 3, count: 20 })].map(({ calls }) => {
        const { value } = calls.next();
        return value;
      });
    for (const each of families) assert.deepEqual(callsOf(each), callsOf(each), each.name);
  });
});
