/**
 * Configuration changes by commands: `check` shows them beforehand, and `reload` without a name
 * applies them.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { describe, test } from "node:test";
import type { Change } from "#core/types.ts";
import { ran } from "#test/unit/core/cli/called.ts";
import { reconfigured } from "#test/unit/core/operations/reconfigured.ts";

const base = { modules_enabled: ["http", "http_admin"], admin_port: 0 };

describe("commands for the configuration of a running server", () => {
  test("check shows pending changes and sets its exit code, and reload applies them", async () => {
    await using server = await reconfigured(base);
    const run = (...words: string[]) => ran(server.folder, words);
    const before = await run("check", "--exit-code", "--no-json");
    assert.equal(before.code, 0, before.stdout);
    assert.match(before.stdout, /The running server uses this configuration/);

    await server.write({ ...base, log_level: "warn" });
    const waiting = await run("check", "--exit-code", "--no-json");
    assert.equal(waiting.code, 4);
    assert.match(waiting.stdout, /modhost reload would change the running server:\n {2}log_level: "info" -> "warn"\n/);
    assert.equal((await run("check", "--json")).code, 0);

    const reloaded = await run("reload", "--no-json");
    assert.match(reloaded.stdout, /^apply the configuration: done \(\d+ ms\)\n {2}log_level: "info" -> "warn"\n$/);
    assert.equal((await run("check", "--exit-code")).code, 0);
    assert.match((await run("reload", "--no-json")).stdout, /Nothing differs/);
  });

  test("check warns of ports that others use, but not of the server's own ports", async () => {
    await using server = await reconfigured(base);
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    await server.write({ ...base, http_ports: [(other.address() as AddressInfo).port] });
    const { port } = other.address() as AddressInfo;
    const warned = async () => (await ran(server.folder, ["check", "--no-json"])).stdout.match(/Port .* is taken/)?.[0];
    assert.match((await warned()) ?? "", /on 127\.0\.0\.1 is taken/);
    other.close();
    await once(other, "close");
    assert.equal((await ran(server.folder, ["reload"])).code, 0);
    assert.equal(await warned(), undefined);
    // The server's own listening address blocks the new one until it closes.
    await server.write({ ...base, http_ports: [port], http_interfaces: ["*"] });
    assert.equal(await warned(), undefined);
    assert.equal((await ran(server.folder, ["reload"])).code, 0);
  });

  test("reload with an invalid file names the errors and changes nothing", async () => {
    await using server = await reconfigured(base);
    await server.write({ ...base, log_level: "loud" });
    const { code, stdout } = await ran(server.folder, ["reload", "--json"]);
    const change = JSON.parse(stdout) as Change;
    assert.deepEqual([code, change.result, change.error?.code], [1, "refused", "CONFIG_INVALID"]);
    assert.match(change.error?.message ?? "", /log_level is "loud", but it must be one of debug, info, warn, error/);
    assert.equal((await ran(server.folder, ["check", "--exit-code"])).code, 1);
    assert.equal((await ran(server.folder, ["reload", "--host", "a.test"])).code, 2);
  });
});
