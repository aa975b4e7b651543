/** `npm run test:clients`: real client libraries against a started server, at full size. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RpcServer } from "../support/rpc_server.ts";
import { drive } from "./drive.ts";
import { clients, full } from "./libraries.ts";

let failed = 0;
let passed = 0;
for (const [name, create] of Object.entries(clients)) {
  const folder = await mkdtemp(join(tmpdir(), "modhost-clients-"));
  try {
    await using server = await RpcServer.start({ folder });
    for await (const line of drive(await create(server.url), full)) console.log(`${name}: ${line}`);
    passed += 1;
  } catch (error) {
    failed += 1;
    console.log(`${name}: ${(error as Error).stack}`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
