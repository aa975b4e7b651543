import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { ProgressWatch } from "#core/http/connection/progress.ts";
import { IncomingBody } from "#core/http/message/body.ts";
import type { NodeRequest } from "#core/util/node_messages.ts";

const PIECE = Buffer.alloc(64 * 1024);
const PIECES = 64;
/** The limit, and one piece that exceeds it. */
const MOST_IN_A_TURN = 9;

/** A request whose whole body has arrived. */
function filled(): NodeRequest {
  let left = PIECES;
  const read = function (this: Readable) {
    left -= 1;
    this.push(left < 0 ? null : PIECE);
  };
  return new Readable({ read }) as unknown as NodeRequest;
}

test("a body that arrives at once is read over several turns of the event loop, and whole", async () => {
  const body = new IncomingBody(filled(), new ProgressWatch(30, 1), () => undefined);
  const turns = [0];
  let isOver = false;
  const turn = () => {
    turns.push(0);
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  for await (const _ of body) turns[turns.length - 1] = (turns.at(-1) as number) + 1;
  isOver = true;
  assert.equal(
    turns.reduce((sum, count) => sum + count, 0),
    PIECES,
  );
  assert.ok(Math.max(...turns) <= MOST_IN_A_TURN, `pieces in each turn: ${turns.join(", ")}`);
});

test("a reader that stops early gets nothing more of the body", async () => {
  const request = filled();
  const body = new IncomingBody(request, new ProgressWatch(30, 1), () => undefined);
  let pieces = 0;
  for await (const _ of body) {
    pieces += 1;
    if (pieces === MOST_IN_A_TURN) break;
  }
  const { received } = body;
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  assert.equal((request as unknown as Readable).isPaused(), true);
  assert.equal(body.received, received);
});
