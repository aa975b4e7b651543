/**
 * Uses each contribution of the example of the guide "Extend modhost", installed from its tarball
 * next to the package.
 */
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "#test/support/free_port.ts";
import { Program, withNode } from "#test/unit/core/cli/spawned.ts";
import { write } from "#test/unit/core/module/support.ts";

const config = `modules_enabled: [http, http_errors, http_files, http_admin, http_health, http_openmetrics, backup, visits]
admin_local: any_user
admin_interfaces: ["127.0.0.1"]
http_files_dir: www
https_ports: []
http_log: false
`;

/** `project`: the folder in which both packages are installed. */
export async function useVisits(project: string): Promise<void> {
  const folder = join(project, "visits");
  await mkdir(folder);
  await write(folder, {
    "modhost.config.yaml": config,
    "www/index.html": "<h1>Hello</h1>",
  });
  await using program = new Program(folder, join(project, "node_modules/.bin/modhost"));
  const said = async (words: readonly string[], expected = 0) => {
    const { code, stdout, stderr } = await program.run(words, withNode);
    assert.equal(code, expected, `${words.join(" ")}: ${stdout}${stderr}`);
    return stdout;
  };
  const { started, kill, ended } = await program.serve(["run"], { MODHOST_ADMIN_PORT: String(await freePort()) });
  assert.deepEqual(started.failed, []);
  const portOf = (name: string) => started.ports.find(({ service }) => service === name)?.port;
  const ask = async (path: string, headers: Record<string, string> = {}, service = "http") =>
    (await fetch(`http://localhost:${portOf(service)}${path}`, { headers })).text();

  const entry = started.apps.find(({ module }) => module === "visits");
  assert.deepEqual(entry?.urls, [`http://localhost:${portOf("http")}/visits/`], "the start page");
  await ask("/files/");
  assert.match(await ask("/visits/"), /have shown 1 pages/);
  assert.deepEqual(JSON.parse(await said(["visits"])), [{ app: "files", visits: 1 }], "the command");
  assert.match(await said(["--help"]), /^ {2}visits /m);
  assert.match(await ask("/metrics"), /^visits_pages_total\{app="files"\} 1$/m);
  assert.match(await ask("/health/ready"), /ready|ok/i);

  const { secret } = JSON.parse(await said(["token", "new", "screen", "visits:read"])) as { readonly secret: string };
  assert.deepEqual(JSON.parse(await ask("/visits/counts", { authorization: `Bearer ${secret}` })), [
    { app: "files", visits: 1 },
  ]);

  const page = await ask("/admin/", { accept: "text/html" }, "admin");
  const [script = ""] = /\/admin\/files\/\w+\/of-visits\/main\.js/.exec(page) ?? [];
  assert.match(await ask(script, {}, "admin"), /addSection\(/, "the page of the dashboard");

  await said(["backup", "backups"]);
  await said(["restore", "backups", "--to", "restored"]);
  const restored = await readFile(join(folder, "restored/data/visits/counts.json"), "utf8");
  assert.equal(JSON.parse(restored).files, 1, "the backup");

  kill("SIGTERM");
  assert.equal((await ended).code, 0);
  await writeFile(join(folder, "data/visits/counts.json"), "[");
  assert.match(await said(["doctor", "--no-json"], 1), /^problem +visits +The visits in .* cannot be read$/m);
}
