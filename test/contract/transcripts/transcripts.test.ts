import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { parseExplanations, readExplanations, readLeft } from "./explained.ts";
import { type Judged, judge, unused } from "./judge.ts";
import { type ReplayedStep, replay } from "./replay.ts";
import { withServers } from "./servers.ts";

/** Scenarios that are played on every run. `npm run transcripts` plays the others, too. */
const short = "^(add|blocks|cid|config|diag|pins|read|repo|wire)/";

describe("recorded conversations with the reference", () => {
  let judged: readonly Judged[];
  let stale: readonly string[];
  before(async () => {
    const explanations = await readExplanations();
    const report = await withServers((first, second) => replay({ urls: [first.url, second.url] }, short));
    judged = judge(report, explanations);
    stale = unused(report, explanations);
  });

  test("get the recorded responses, or differ as explained", () => {
    const failed = judged.filter(({ verdict }) => verdict === "failed");
    assert.deepEqual(
      failed.map(({ name, remarks }) => [name, ...remarks]),
      [],
    );
    assert.ok(judged.filter(({ verdict }) => verdict === "passed").length > 500);
  });

  test("have no explanations for steps that do not exist", () => assert.deepEqual(stale, []));
});

/** Scenarios of level 0.43 that are played on every run. */
const shortLater = "^level-0\\.43-(blocks|cid|dag|gone|keys|multibase|reading|wire)/";

test("conversations with Kubo 0.43 get the recorded responses at that level, except for listed ones", async () => {
  const level = "0.43";
  const explanations = await readExplanations(level);
  const left = await readLeft(level);
  const report = await withServers((first, second) => replay({ urls: [first.url, second.url] }, shortLater, level), {
    level,
  });
  const failed = judge(report, explanations, left).filter(({ verdict }) => verdict === "failed");
  assert.deepEqual(
    failed.map(({ name, remarks }) => [name, ...remarks]),
    [],
  );
  assert.deepEqual(unused(report, explanations), []);
});

describe("judging a step", () => {
  const step = (number: number, ...got: unknown[]): ReplayedStep => ({
    topic: "read",
    scenario: "all",
    step: number,
    call: "cat",
    ok: got.length === 0,
    differences: got.map((value) => ({ aspect: "status", at: "status", got: value, want: 200 })),
  });
  const explanations = parseExplanations(
    "| Scenario | Steps | Differs in | Reason |\n|---|---|---|---|\n| read/all | 1, 2 | status | so |\n",
  );
  const verdicts = (...steps: ReplayedStep[]) => judge(steps, explanations).map(({ verdict }) => verdict);

  test("a step that is listed as left is a failure only if it passes", () => {
    const left = { "read/all": [3] };
    assert.deepEqual(judge([step(3, 404)], [], left)[0]?.verdict, "left");
    assert.deepEqual(judge([step(3)], [], left)[0]?.verdict, "failed");
  });

  test("an explained step differs as explained", () => {
    assert.deepEqual(verdicts(step(1, 500)), ["explained"]);
    const inBody = { ...step(1), ok: false, differences: [{ aspect: "body", at: "", got: 1, want: 2 }] } as const;
    assert.deepEqual(verdicts(inBody), ["failed"]);
  });
  test("an explained step that passes is a failure", () => assert.deepEqual(verdicts(step(2)), ["failed"]));
  test("a difference without an explanation is a failure", () => assert.deepEqual(verdicts(step(3, 404)), ["failed"]));
  test("an explanation needs its step", () => {
    assert.deepEqual(unused([step(1, 500)], explanations), ["read/all 2 is explained, but the step does not exist"]);
  });
});
