import assert from "node:assert/strict";
import { test } from "node:test";
import type { Connection, Libp2p } from "@libp2p/interface";
import { Identified } from "#node/network/swarm/identified.ts";

/** What libp2p tells. */
function told() {
  const events = new EventTarget();
  const tell = (type: string, detail: unknown) => events.dispatchEvent(new CustomEvent(type, { detail }));
  return { tell, identified: new Identified(events as unknown as Libp2p) };
}
const connection = () => ({ status: "open" }) as Connection;

test("who waits for a connection to be identified may leave, and the others hear of it", async () => {
  const { tell, identified } = told();
  const silent = connection();
  const leaving = new AbortController();
  const left = assert.rejects(identified.of(silent, leaving.signal), /gone/);
  const other = identified.of(silent);
  leaving.abort(new Error("gone"));
  await left;
  await assert.rejects(identified.of(silent, leaving.signal), /gone/);
  tell("peer:identify", { connection: silent });
  await other;
  await identified.of(silent);
});

test("a connection that ends is waited for no longer", async () => {
  const { tell, identified } = told();
  const short = connection();
  const waiting = identified.of(short, AbortSignal.timeout(10_000));
  tell("connection:close", short);
  await waiting;
});
