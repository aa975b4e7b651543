/** Tests what docs/guides/sandbox/layers.md says of single layers: what they do not refuse. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, describe, test } from "node:test";
import { launchSandboxed, sandboxLayers, sandboxUnavailable } from "#core/sandbox/index.ts";
import { readGuide } from "#test/contract/docs/guides/support.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "modhost-layers-")));
for (const name of ["own", "outside", "listen"]) mkdirSync(join(folder, name));
const outside = join(folder, "outside", "secret.txt");
writeFileSync(outside, "secret");
after(() => rmSync(folder, { recursive: true, force: true }));

const program = join(folder, "own", "tries.mjs");
writeFileSync(
  program,
  `import fs from "node:fs";
import net from "node:net";
import os from "node:os";
const [outside, host] = process.argv.slice(2);
const tries = {
  content: () => fs.readFileSync(outside, "utf8"),
  size: () => fs.statSync(outside).size,
  process: () => fs.statSync("/proc/" + host).isDirectory(),
  space: () => fs.statfsSync(outside).type > 0,
  name: () => os.hostname(),
  clock: () => Date.now() > 0 && performance.now() > 0,
  machine: () => os.cpus().length > 0 && os.freemem() > 0 && os.loadavg().length === 3,
  environment: () => Object.keys(process.env).join(),
};
const outcomes = Object.entries(tries).map(([name, attempt]) => {
  try { return [name, attempt()]; } catch (error) { return [name, error.code]; }
});
new net.Socket({ fd: 3 }).end(JSON.stringify(Object.fromEntries(outcomes)));`,
);

/** Returns what the program got, by native calls or as JavaScript that Node.js restricts. */
async function tried(namespaces: "off" | "required", isNative: boolean): Promise<Record<string, unknown>> {
  const { socket, child } = launchSandboxed({
    name: "tries",
    program,
    args: [outside, String(process.pid)],
    listen: join(folder, "listen", "s"),
    policy: { read: [join(folder, "own")], write: [], run: [], addons: false, env: {}, namespaces, user: "same" },
    testing: { native: isNative },
  });
  const [found, errors] = await Promise.all([text(socket), text(child.stderr!)]);
  assert.equal(errors, "");
  return JSON.parse(found) as Record<string, unknown>;
}

const always = { clock: true, machine: true, environment: "" };
const namespaces = sandboxLayers().find(({ name }) => name === "namespaces");

describe("a sandbox", { skip: sandboxUnavailable() ?? false }, () => {
  test("without namespaces hides the contents of files from native code, and not that they exist", async () => {
    assert.deepEqual(await tried("off", true), {
      ...always,
      content: "EACCES",
      size: 6,
      process: true,
      space: true,
      name: hostname(),
    });
  });

  test("hides files and processes from JavaScript by Node's permissions, and not the name of the machine", async () => {
    const denied = "ERR_ACCESS_DENIED";
    const { space, ...others } = await tried("off", false);
    assert.deepEqual(others, { ...always, content: denied, size: denied, process: denied, name: hostname() });
    assert.ok(space === denied || space === true, String(space));
  });

  test("with namespaces hides files, processes and the name of the machine from native code", {
    skip: namespaces?.works !== true && (namespaces?.detail ?? true),
  }, async () => {
    const missing = "ENOENT";
    const { process: seen, ...others } = await tried("required", true);
    assert.deepEqual(others, { ...always, content: missing, size: missing, space: missing, name: "sandbox" });
    assert.equal(seen, missing);
  });
});

describe("moving a file between two granted folders", { skip: sandboxUnavailable() ?? false }, () => {
  const mover = join(folder, "own", "moves.mjs");
  writeFileSync(
    mover,
    `import fs from "node:fs";
import net from "node:net";
const [from, to] = process.argv.slice(2);
let outcome = "moved";
try { fs.renameSync(from, to); } catch (error) { outcome = error.code; }
new net.Socket({ fd: 3 }).end(outcome);`,
  );
  for (const [abi, expected] of [
    [1, "EXDEV"],
    [2, "moved"],
  ] as const) {
    const newest = /ABI (\d+)/.exec(sandboxLayers().find(({ name }) => name === "landlock")?.detail ?? "")?.[1];
    test(`gives ${expected} with Landlock ABI ${abi}`, {
      skip: abi > Number(newest) && "the kernel is older",
    }, async () => {
      const [from, to] = ["from", "to"].map((name) => join(folder, `${name}${abi}`));
      mkdirSync(from!);
      mkdirSync(to!);
      writeFileSync(join(from!, "file"), "");
      const { socket, child } = launchSandboxed({
        name: "moves",
        program: mover,
        args: [join(from!, "file"), join(to!, "file")],
        listen: join(folder, "listen", "m"),
        policy: {
          read: [join(folder, "own")],
          write: [from!, to!],
          run: [],
          addons: false,
          env: {},
          namespaces: "off",
          user: "same",
        },
        testing: { native: true, landlockAbi: abi },
      });
      const [outcome] = await Promise.all([text(socket), text(child.stderr!)]);
      assert.equal(outcome, expected);
    });
  }
});

test("the guide names each layer that can restrict a module", () => {
  const guide = readGuide("sandbox/layers");
  const layers = ["landlock", "seccomp", "limits", "namespaces", "user", "cgroup", "node-permission"];
  for (const name of layers) assert.match(guide, new RegExp(`^\\| \`${name}\` \\| .+ \\| .+ \\|$`, "m"));
  if (sandboxUnavailable() !== undefined) return;
  const here = sandboxLayers().map(({ name }) => name);
  assert.deepEqual(here.filter((name) => name !== "node").sort(), [...layers].sort());
});

test("the guide names the Linux versions that the layers do", () => {
  const source = readFileSync(new URL("../../../../core/sandbox/layers.ts", import.meta.url), "utf8");
  assert.match(source, /Linux 5\.13 or later/);
  assert.match(readGuide("sandbox/layers"), /^\| before 5\.13 \| none \| sandboxed modules are not loaded \|$/m);
});
