import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { SqlConnection, SqlCounts } from "#node/storage/shared/sql/connection.ts";
import { sqlSettings } from "#node/storage/shared/sql/settings.ts";
import { resetSocket } from "#test/support/reset_socket.ts";

test("connections that are reset at any moment fail their call, and nothing else", async (t) => {
  let connections = 0;
  // Resets immediately, before the first response, and after it.
  const server = createServer((socket) => {
    socket.on("error", () => {});
    connections += 1;
    if (connections % 3 === 0) resetSocket(socket);
    else if (connections % 3 === 1) setImmediate(() => resetSocket(socket));
    else socket.once("data", () => resetSocket(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const settings = sqlSettings(`postgres://127.0.0.1:${port}/none`);
  const call = async () => {
    const line = new SqlConnection(settings, { name: "test", counts: new SqlCounts() });
    await assert.rejects(
      line.run((sql) => sql.unsafe("select 1"), 200),
      { code: "STORE_UNAVAILABLE" },
    );
    line.close();
  };
  // On a busy machine, some calls end before they have connected.
  while (connections < 20) await Promise.all(Array.from({ length: 20 }, call));
});
