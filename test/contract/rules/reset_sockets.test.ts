import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { promisify } from "node:util";

const root = new URL("../../../", import.meta.url);

/** Files that may call the method, each with the reason. */
const exceptions: Readonly<Record<string, string>> = {
  "core/isolation/network/carried_socket.ts": "replaces the method",
  "modules/mod_node/network/p2p/splice.ts": "checks the state before",
  "test/unit/core/cli/careless_modules.ts": "resets a connection that it has just opened",
};

test("connections are reset by resetSocket, because Node.js may never exit after resetAndDestroy", () => {
  const files = globSync("{core,modules,test}/**/*.{ts,mjs}", { cwd: root }).filter((file) => !(file in exceptions));
  const found = files.filter((file) => /\.resetAndDestroy\(/.test(readFileSync(new URL(file, root), "utf8")));
  assert.deepEqual(found, []);
});

test("a process exits after resetSocket of a connection that is shutting down", { timeout: 60_000 }, async () => {
  const code = `
    import { connect, createServer } from "node:net";
    import { resetSocket } from "#node/network/p2p/splice.ts";
    const server = createServer((socket) => socket.on("error", () => {}).resume());
    server.listen(0, "127.0.0.1", () => {
      const socket = connect(server.address().port, "127.0.0.1", () => {
        socket.end();
        process.nextTick(() => {
          resetSocket(socket);
          server.close();
        });
      });
    });`;
  const options = ["--conditions=source", "--input-type=module", "--eval", code];
  await promisify(execFile)(process.execPath, options, { cwd: root, timeout: 30_000, killSignal: "SIGKILL" });
});
