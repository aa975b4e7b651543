/** The client of the Admin API that commands use: how it finds out whether a server runs. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { NoServerError, StuckServerError, statusOf } from "#core/cli/index.ts";

/** Creates a socket whose server calls `connected` for each connection. */
async function socketAt(t: TestContext, connected: (socket: Socket) => void): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-client-"));
  const path = join(folder, "admin.sock");
  const open = new Set<Socket>();
  const server = createServer((socket) => connected(socket) ?? void open.add(socket)).listen(path);
  await once(server, "listening");
  t.after(async () => {
    for (const socket of open) socket.destroy();
    server.close();
    await rm(folder, { recursive: true });
  });
  return path;
}

describe("the status of a server", () => {
  test("is an error after a limited time if the server accepts the call and does not respond", async (t) => {
    const path = await socketAt(t, () => undefined);
    await assert.rejects(statusOf(path, { within: 50 }), (error: Error) => {
      assert.ok(error instanceof StuckServerError);
      assert.match(error.message, /^The server at .*admin\.sock has not responded for 0\.05 s: .*kill -9/);
      return true;
    });
  });

  test("is an error if the connection breaks off in the middle of the response", async (t) => {
    const path = await socketAt(t, (socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"pid":');
    });
    await assert.rejects(statusOf(path, { within: 50 }), StuckServerError);
  });

  test('is "no server" if the server closes the connection, or nobody listens', async (t) => {
    const path = await socketAt(t, (socket) => void socket.destroy());
    await assert.rejects(statusOf(path), NoServerError);
    await assert.rejects(statusOf(`${path}.none`), NoServerError);
  });
});
