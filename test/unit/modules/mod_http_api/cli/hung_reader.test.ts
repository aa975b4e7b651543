import assert from "node:assert/strict";
import { test } from "node:test";
import { RawConnection } from "#test/support/raw.ts";
import { call, Sandbox, urlOf } from "./support.ts";

test("a reader that accepts no data is cut off at shutdown, and no error is logged", async () => {
  await using sandbox = await Sandbox.withRepo();
  const daemon = await sandbox.daemon();
  const url = urlOf(await sandbox.api());
  const body = new FormData();
  body.append("file", new Blob([Buffer.alloc(48 * 1024 * 1024, 1)]));
  const { Hash } = JSON.parse((await call(url, "add?pin=false", { body })).text);
  using reader = await RawConnection.open(Number(new URL(url).port), { timeout: 60_000 });
  reader.socket.setNoDelay(true);
  reader.write(`POST /api/v0/cat?arg=${Hash} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n`);
  await reader.until(/HTTP\/1\.1 200 /);
  reader.socket.pause();
  const { stderr, code } = await daemon.stop();
  assert.equal(code, 0);
  assert.match(stderr, /Cut off requests that had not ended after 2 s: POST \/api\/v0\/cat \(\d+ s\)/);
  // On a busy machine the node may take longer to close than the remaining half second; nothing
  // waited for the reader.
  const errors = stderr.split("\n").filter((line) => /too long|error/i.test(line) && !/undoing the node: /.test(line));
  assert.deepEqual(errors, []);
});
