import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { RpcServer } from "../support/rpc_server.ts";
import { drive } from "./drive.ts";
import { clients, short } from "./libraries.ts";

describe("real client libraries add, list, pin and read back", () => {
  let folder: string;
  let server: RpcServer;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "modhost-clients-"));
    server = await RpcServer.start({ folder });
  });
  after(async () => {
    await server?.stop();
    await rm(folder, { recursive: true, force: true });
  });
  for (const [name, create] of Object.entries(clients)) {
    test(name, async () => {
      for await (const _ of drive(await create(server.url), short));
    });
  }
});
