import assert from "node:assert/strict";
import { Session } from "node:inspector/promises";
import { test } from "node:test";
import { type ProfileSettings, profile } from "#node/util/profile.ts";

const collectors = ["cpu", "allocs"];

const collect = (settings: Partial<ProfileSettings> = {}) =>
  Array.fromAsync(profile({ collectors, milliseconds: 20, signal: new AbortController().signal, ...settings }));

test("only one caller can sample at a time, and the next one can when that has finished or is aborted", async () => {
  const leave = new AbortController();
  const first = collect({ milliseconds: 600_000, signal: leave.signal });
  await assert.rejects(collect(), { message: /another profile is being taken/ });
  leave.abort(new Error("enough"));
  await assert.rejects(first);
  assert.deepEqual(
    (await collect()).map(({ name }) => name),
    ["cpu.cpuprofile", "allocs.heapprofile"],
  );
});

test("a sampling time of more than an hour is refused", async () => {
  await assert.rejects(collect({ milliseconds: 1000 * 3_600_000 }), { message: /at most 1h/ });
});

test("a failing collector ends the others", async (t) => {
  const open = new Set<Session>();
  const { connect, disconnect, post } = Session.prototype;
  t.after(() => Object.assign(Session.prototype, { connect, disconnect, post }));
  Session.prototype.connect = function () {
    open.add(this);
    connect.call(this);
  };
  Session.prototype.disconnect = function () {
    open.delete(this);
    disconnect.call(this);
  };
  Session.prototype.post = function (this: Session, method: string, ...rest: never[]) {
    if (method === "HeapProfiler.startSampling") return Promise.reject(new Error("no room"));
    return (post as (...given: unknown[]) => Promise<unknown>).call(this, method, ...rest);
  } as never;
  await assert.rejects(collect({ milliseconds: 600_000 }), { message: "no room" });
  assert.equal(open.size, 0);
});
