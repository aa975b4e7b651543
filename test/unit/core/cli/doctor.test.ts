import assert from "node:assert/strict";
import { chmod, mkdir, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import type { Finding, Installation, System } from "#core/cli/doctor/check.ts";
import { dataChecks } from "#core/cli/doctor/data_checks.ts";
import { systemChecks } from "#core/cli/doctor/system_checks.ts";
import { layersOf, runChecks } from "#core/cli/doctor.ts";
import { configFrom } from "#core/config/index.ts";
import { type SandboxLayer, sandboxLayers } from "#core/sandbox/index.ts";
import type { ServerStatus } from "#core/types.ts";
import { folderOf, pluginHost } from "#test/unit/core/module/support.ts";
import { ran } from "./called.ts";

/** A machine without namespaces, whose server is not root. */
const layers: readonly SandboxLayer[] = [
  { name: "landlock", works: true, detail: "Files are refused.", isRequired: true },
  { name: "namespaces", works: false, detail: "No bubblewrap.", remedy: "Install it.", isRequired: false },
  { name: "user", works: false, detail: "Not root.", remedy: "Start it as root.", isRequired: false },
];
const noLandlock: SandboxLayer = { ...layers[0]!, works: false, detail: "Old kernel.", remedy: "Update it." };

const space = { type: 0xef53, free: 50e9, files: 1000, freeFiles: 900 };
const machine: System = {
  uid: process.getuid?.(),
  node: process.version,
  now: Date.now,
  read: () => undefined,
  space: () => space,
};

/**
 * Creates a folder without any problem. The returned function runs the checks after changing some
 * of its facts.
 */
async function healthy(t: TestContext) {
  const data = join(await folderOf(t, {}), "data");
  await mkdir(data, { mode: 0o700 });
  const report = { config: undefined, problems: [], warnings: [] };
  const well = { report, config: undefined, data, socket: join(data, "admin.sock"), running: undefined, layers };
  const found = async (other: Partial<Installation>, system: Partial<System> = {}) => {
    const installation = { ...well, unreached: undefined, ...other, system: { ...machine, ...system } };
    const results = await runChecks([...systemChecks, ...dataChecks], installation);
    return results.filter(({ findings }) => findings.length > 0);
  };
  return { data, found };
}

const textsOf = (results: readonly { check: string; findings: readonly Finding[] }[]) =>
  results.flatMap(({ check, findings }) => findings.map(({ level, text }) => `${check}: ${level}: ${text}`)).join("\n");

const running = (more: Partial<ServerStatus>) =>
  ({ pid: process.pid, certificates: [], warnings: [], modules: [], ...more }) as unknown as ServerStatus;

describe("modhost doctor", () => {
  test("finds nothing in an installation without problems", async (t) => {
    const { found } = await healthy(t);
    assert.equal(textsOf(await found({})), "");
  });

  for (const [name, other, wanted] of [
    ["a Node.js that is too old", { node: "v24.1.0" }, /^Node\.js: problem: This is Node\.js v24\.1\.0/],
    [
      "a disk that is full",
      { space: () => ({ ...space, free: 5e6 }) },
      /^space: problem: .* has only 5\.0 MB of free space/,
    ],
    [
      "a disk that is nearly full",
      { space: () => ({ ...space, free: 5e8 }) },
      /^space: warning: .* has only 500 MB of free space/,
    ],
    [
      "no free inodes",
      { space: () => ({ ...space, freeFiles: 3 }) },
      /^space: warning: .* has room for only 3 more files/,
    ],
    ["a file system in memory", { space: () => ({ ...space, type: 0x01021994 }) }, /^file system: warning: .* tmpfs/],
    ["a clock that is behind", { now: () => 0 }, /^clock: warning: The clock shows 1970/],
    [
      "few open files",
      { read: (path: string) => (path.endsWith("limits") ? "Max open files  256   512  files" : undefined) },
      /^open files: warning: 512 /,
    ],
    [
      "few watches",
      { read: (path: string) => (path.endsWith("user_watches") ? "100\n" : undefined) },
      /^file watches: warning: fs\.inotify\.max_user_watches is 100/,
    ],
  ] as const) {
    test(name, async (t) => {
      const { found } = await healthy(t);
      const results = await found({}, other);
      assert.match(textsOf(results), wanted);
      assert.ok(results.every(({ findings }) => findings.every(({ remedy }) => remedy.length > 0)));
    });
  }

  test("finds a data folder and secrets that other users can read", async (t) => {
    const { data, found } = await healthy(t);
    await chmod(data, 0o755);
    await writeFile(join(data, "tokens.json"), "{}", { mode: 0o644 });
    const text = textsOf(await found({}));
    assert.match(text, /^data folder: warning: Other users can read/m);
    assert.match(text, /^data folder: warning: Other users may use .*tokens\.json$/m);
    await chmod(join(data, "tokens.json"), 0o600);
    const [, file] = [data, join(data, "tokens.json")];
    assert.match(textsOf(await found({ data: file })), /^data folder: problem: .* is not a folder$/m);
  });

  test("finds a private key that other users can read", async (t) => {
    const { data, found } = await healthy(t);
    const key = join(data, "a.key");
    await writeFile(key, "", { mode: 0o640 });
    const config = configFrom({ certificates: { "a.test": { certificate: join(data, "a.pem"), key } } }, data);
    assert.doesNotMatch(textsOf(await found({ config })), /^keys/m);
    await chmod(key, 0o644);
    assert.match(textsOf(await found({ config })), /^keys: warning: Other users may use the private key .*a\.key$/m);
  });

  test("finds a stale socket, and one whose path is too long", async (t) => {
    const { data, found } = await healthy(t);
    const socket = join(data, "admin.sock");
    const server = createServer();
    await new Promise<void>((done) => server.listen(socket, done));
    await symlink(socket, join(data, "link"));
    await chmod(socket, 0o600);
    const text = textsOf(await found({ unreached: "nobody listens there" }));
    assert.match(text, /^admin socket: warning: nobody listens there$/m);
    assert.equal(textsOf(await found({ running: running({}) })), "");
    await new Promise((done) => server.close(done));
    assert.match(
      textsOf(await found({ socket: `/${"x".repeat(120)}` })),
      /^admin socket: problem: .* longer than 107/m,
    );
  });

  test("finds certificates of the running server that expire", async (t) => {
    const { found } = await healthy(t);
    const at = (days: number) => new Date(Date.now() + days * 86_400_000 + 60_000).toISOString();
    const certificates = [
      { name: "a", source: "file", expires: at(3), fingerprint: "" },
      { name: "b", source: "acme", expires: at(-3), fingerprint: "" },
      { name: "c", source: "self-signed", expires: at(1), fingerprint: "" },
      { name: "d", source: "file", expires: at(90), fingerprint: "" },
    ] as const;
    const text = textsOf(await found({ running: running({ certificates, warnings: ["The module x: slow"] }) }));
    assert.match(text, /^certificates: warning: The certificate of a expires in 3 days/m);
    assert.match(text, /^certificates: problem: The certificate of b has expired/m);
    assert.doesNotMatch(text, /of [cd] /);
    assert.match(text, /^server: warning: The module x: slow$/m);
  });

  test("finds modules that cannot be sandboxed here, and says how to get what is missing", async (t) => {
    const { data, found } = await healthy(t);
    const withModules = (modules: object) => configFrom({ modules }, data);
    const sandboxed = withModules({ shop: { run: "sandboxed" }, wiki: { run: "isolated" } });
    assert.equal(textsOf(await found({ config: sandboxed })), "", "optional layers may be missing");
    const [result] = await found({ config: sandboxed, layers: [noLandlock, ...layers.slice(1)] });
    assert.deepEqual(result, {
      check: "sandbox",
      findings: [{ level: "problem", text: "Old kernel. It is required for shop.", remedy: "Update it." }],
    });
    const required = withModules({ shop: { run: "sandboxed", namespaces: "required" } });
    assert.match(
      textsOf(await found({ config: required })),
      /^sandbox: problem: No bubblewrap\. It is required for shop\.$/,
    );
    const none = withModules({ wiki: { run: "isolated" } });
    assert.equal(textsOf(await found({ config: none, layers: [noLandlock] })), "");
  });

  test("reports a check that throws as a finding", async (t) => {
    const { data } = await healthy(t);
    const broken = { name: "x", help: "", run: () => Promise.reject(new Error("no luck")) };
    const [result] = await runChecks([broken], { data } as Installation);
    assert.match(result?.findings[0]?.text ?? "", /could not be checked: no luck/);
  });
});

describe("modhost doctor as a command", () => {
  const resultOf = (text: string) =>
    JSON.parse(text) as { ok: boolean; server?: object; checks: { check: string; findings: Finding[] }[] };

  test("reports a wrong value and a taken port, with exit code 1", async (t) => {
    const server = createServer();
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    t.after(() => server.close());
    const { port } = server.address() as { port: number };
    const config = { http_ports: [port], https_ports: [], modules_enabled: ["http"] };
    const cwd = await folderOf(t, {
      "modhost.config.json": JSON.stringify(config),
      "wrong.json": '{ "load_timeout": "x" }',
    });
    const taken = await ran(cwd, ["doctor", "--json"]);
    const findings = resultOf(taken.stdout).checks.find(({ check }) => check === "ports")?.findings ?? [];
    assert.equal(taken.code, 1);
    assert.match(findings[0]?.text ?? "", new RegExp(`${port}`));
    assert.match(findings[0]?.remedy ?? "", /the server of this configuration, add http_admin to modules_enabled/);
    const found = { MODHOST_MODULES_ENABLED: "http,http_admin" };
    const others = resultOf((await ran(cwd, ["doctor", "--json"], { env: found })).stdout).checks;
    assert.match(JSON.stringify(others), /or choose another port"/, "a server with http_admin would be found");
    const wrong = await ran(cwd, ["doctor", "wrong.json", "--no-json"]);
    assert.equal(wrong.code, 1);
    assert.match(wrong.stdout, /^problem {3}configuration .*load_timeout/m);
    assert.match(wrong.stdout, /→ correct .*; then run modhost check/);
  });

  test("shows the layers as the running server has found them, which its unit can restrict", () => {
    const shop = [
      { name: "landlock", is_active: true, text: "Files are refused to shop." },
      { name: "user", is_active: true, text: "Each has its own." },
    ];
    const wiki = [{ name: "user", is_active: false, text: "It cannot reach its file.", remedy: "Open it." }];
    const modules = [{ sandbox: wiki }, {}, { sandbox: shop }] as unknown as ServerStatus["modules"];
    assert.deepEqual(layersOf({ modules }, layers), [
      { name: "landlock", works: true, detail: "Files are refused to shop.", isRequired: true },
      layers[1],
      { name: "user", works: true, detail: "Each has its own.", isRequired: false },
    ]);
    const refused = [{ name: "namespaces", is_active: false, text: "The unit refuses them.", remedy: "Allow them." }];
    const only = [{ sandbox: refused }] as unknown as ServerStatus["modules"];
    assert.deepEqual(layersOf({ modules: only }, layers)[1], {
      name: "namespaces",
      works: false,
      detail: "The unit refuses them.",
      isRequired: false,
      remedy: "Allow them.",
    });
  });

  test("names each layer of the sandbox, as text and as JSON", async (t) => {
    const cwd = await folderOf(t, { "modhost.config.json": '{ "http_ports": [], "https_ports": [] }' });
    const { sandbox } = JSON.parse((await ran(cwd, ["doctor", "--json"])).stdout);
    assert.deepEqual(
      sandbox,
      sandboxLayers().map(({ isRequired: is_required, ...layer }) => ({ ...layer, is_required })),
    );
    const { stdout } = await ran(cwd, ["doctor", "--no-json"]);
    for (const { name, works, detail, remedy } of sandboxLayers()) {
      const state = works ? "works" : "missing";
      assert.match(stdout, new RegExp(`^  ${name} +${state} +${RegExp.escape(detail)}$`, "m"));
      if (remedy !== undefined) assert.ok(stdout.includes(`→ ${remedy}`), remedy);
    }
  });

  test("inspects the running server", async (t) => {
    const { folder } = await pluginHost(t, {}, { modules_enabled: ["http_admin"], plugin_autoload: false });
    const cwd = await folderOf(t, {
      "modhost.config.json": JSON.stringify({ data_path: folder, modules_enabled: ["http"] }),
    });
    const { code, stdout, stderr } = await ran(cwd, ["doctor", "--json"]);
    const { ok, server, checks } = resultOf(stdout);
    assert.deepEqual([code, ok, stderr], [0, true, ""], stdout);
    assert.ok(server);
    assert.ok(checks.some(({ check }) => check === "repo lock"));
    assert.deepEqual(checks.find(({ check }) => check === "ports")?.findings, []);
  });
});
