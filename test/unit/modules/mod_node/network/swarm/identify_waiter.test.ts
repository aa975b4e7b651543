import assert from "node:assert/strict";
import { test } from "node:test";
import type { Connection, Libp2p } from "@libp2p/interface";
import { IdentifyWaiter } from "#node/network/swarm/identify_waiter.ts";

/** The events of libp2p. */
function reported() {
  const events = new EventTarget();
  const report = (type: string, detail: unknown) => events.dispatchEvent(new CustomEvent(type, { detail }));
  return { report, identified: new IdentifyWaiter(events as unknown as Libp2p) };
}
const connection = () => ({ status: "open" }) as Connection;

test("one waiter may abort, and the others resolve when the connection is identified", async () => {
  const { report, identified } = reported();
  const silent = connection();
  const leaving = new AbortController();
  const left = assert.rejects(identified.wait(silent, leaving.signal), /gone/);
  const other = identified.wait(silent);
  leaving.abort(new Error("gone"));
  await left;
  await assert.rejects(identified.wait(silent, leaving.signal), /gone/);
  report("peer:identify", { connection: silent });
  await other;
  await identified.wait(silent);
});

test("waiting ends with the connection", async () => {
  const { report, identified } = reported();
  const short = connection();
  const waiting = identified.wait(short, AbortSignal.timeout(60_000));
  report("connection:close", short);
  await waiting;
});
