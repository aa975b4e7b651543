/**
 * Plays the host of hostile modules: starts a server with them and with modules that they attack,
 * and prints as JSON what they got and what they have changed. The argument is a `HostSetting`. It
 * runs as root and as an ordinary user.
 */
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadConfig } from "#core/config/index.ts";
import { createHost } from "#core/host.ts";
import { parseHostPort } from "#core/permissions/hosts.ts";
import { sandboxLayers } from "#core/sandbox/index.ts";
import { reasonOf } from "#core/util/errors.ts";
import { callAt } from "../../unit/modules/mod_http_admin/support.ts";
import { eventually } from "../eventually.ts";
import { freePort } from "../free_port.ts";
import { refuserOf } from "./refusers.ts";
import { actRoutes, acts, raw } from "./relay_acts.ts";

export interface HostSetting {
  readonly namespaces: "auto" | "required" | "off";
  /** Whether malformed messages are sent as well, after which sandboxes are started again. */
  readonly messages: boolean;
}

/** One attempt of a hostile module. */
export interface Attempt {
  readonly kind: string;
  readonly name: string;
  /** The layer that refused it, as far as the code of the error tells. */
  readonly refusedBy: string;
  /** Why the outcome is wrong; undefined if the attempt was refused as it should be. */
  readonly fault: string | undefined;
}

export interface HostReport {
  readonly attempts: readonly Attempt[];
  readonly changed: readonly string[];
  /** The layers that work for this user. */
  readonly layers: readonly string[];
}

/** The outcome of an attempt, as `hostile_module.mjs` reports it. */
interface Outcome {
  readonly kind: string;
  readonly name: string;
  readonly wanted: string | readonly string[];
  readonly got?: string;
  readonly code?: string;
  readonly message?: string;
  readonly permission?: string;
}

/** The refuser of attempts that get a value without a secret. */
const LEFT_OUT = "host (left out)";

/** A text that no hostile module may ever get. */
const marker = `marker-${crypto.randomUUID()}`;
const { namespaces, messages } = JSON.parse(process.argv[2] as string) as HostSetting;
const folder = realpathSync(mkdtempSync(join(tmpdir(), "modhost-escape-")));
const data = join(folder, "data");
const plugins = join(folder, "plugins");
const configFile = join(folder, "modhost.config.json");
/** Counts calls of functions and hooks that no hostile module may reach. */
const state = globalThis as { reached?: number };

const vault = `export const options = { vault_key: { type: "string", secret: true, describe: "A key." } };
export default (module) => {
  module.depends("http");
  for (const event of ["vault-event", "config-changed"]) module.hook(event, (data) => { globalThis.reached += data?.from === "test" ? 0 : 1; });
  module.provides("http", { route: { GET: () => "vault" } });
};`;
const helper = `export default () => ({
  double: (value) => 2 * value,
  never: () => new Promise(() => undefined),
  secret: () => { globalThis.reached += 1; return "${marker}"; },
  inner: { secret: () => { globalThis.reached += 1; return "${marker}"; } },
  key: "${marker}",
});`;
const relay = `${raw}
export const depends = ["http", "helper"];
export default (module) => module.provides("http", { route: { GET: () => "fine",
${actRoutes}
} });`;

/** Returns why an outcome is wrong; undefined for a refusal that names what would allow it. */
function faultOf(outcome: Outcome): string | undefined {
  const { wanted, got, code, message = "", permission } = outcome;
  if (JSON.stringify(outcome).includes(marker)) return "it got a secret";
  if (got !== undefined) return Array.isArray(wanted) && wanted.includes(got) ? undefined : `got ${got}`;
  const found = `${code} ${message}`;
  if (code === "LATE") return found;
  if (wanted === "any" || Array.isArray(wanted)) return undefined;
  if (wanted === "node") return code === "ERR_ACCESS_DENIED" && permission !== undefined ? undefined : found;
  if (wanted === "rule") return code === "SANDBOXED" && /: \w/.test(message) ? undefined : found;
  const named = `modules: { stranger: { grant: { ${wanted as string}: `;
  return code === "PERMISSION_DENIED" && message.includes(named) ? undefined : found;
}

/** Returns everything that a hostile module could change. */
function facts(): Readonly<Record<string, string>> {
  // The server itself writes the record of changes and the uses of tokens.
  const own = /module_data\/stranger\/|audit\.jsonl|tokens_usage\.json/;
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const guarded = files.filter((path) => !own.test(path));
  return Object.fromEntries(guarded.map((path) => [path, readFileSync(path, "latin1")]));
}

async function run(): Promise<HostReport> {
  for (const path of [plugins, join(plugins, "mod_stranger"), join(data, "module_data/vault")])
    mkdirSync(path, { recursive: true });
  writeFileSync(join(data, "module_data/vault/secret.txt"), marker);
  writeFileSync(join(plugins, "mod_vault.js"), vault);
  writeFileSync(join(plugins, "mod_helper.js"), helper);
  writeFileSync(join(plugins, "mod_evil.js"), relay);
  copyFileSync(
    fileURLToPath(new URL("hostile_module.mjs", import.meta.url)),
    join(plugins, "mod_stranger/mod_stranger.mjs"),
  );
  const port = await freePort();
  const admin = await freePort();
  const web = createServer((request, response) => {
    const location = `http://127.0.0.1:${admin}/admin/api/tokens`;
    response.writeHead(request.method === "POST" ? 307 : 302, { location }).end();
  });
  await new Promise<void>((resolve) => void web.listen(0, "127.0.0.1", resolve));
  const granted = (web.address() as AddressInfo).port;
  const own = `${hostname().toLowerCase()}:${admin}`;
  const name = typeof parseHostPort(own) === "string" ? `rebound.example:${admin}` : own;
  const call = { helper: ["double", "never"] };
  const restricted = { run: "sandboxed", namespaces };
  const config = {
    plugin_paths: [plugins],
    modules_enabled: ["http_admin", "vault", "helper", "stranger", "evil"],
    modules: {
      stranger: { ...restricted, grant: { call, write: ["data"], connect: [`127.0.0.1:${granted}`, name] } },
      evil: { ...restricted, grant: { call } },
    },
    http_ports: [port],
    https_ports: [],
    http_interfaces: ["127.0.0.1"],
    admin_port: admin,
    admin_interfaces: ["127.0.0.1"],
    data_path: data,
    load_timeout: 240,
    isolated_timeout: 5,
    unload_grace: 0.1,
    quarantine_pause: 0.05,
    quarantine_max_pause: 0.05,
    vault_key: marker,
    stranger_facts: { data, config: configFile, plugins, port, admin, granted, name: name.replace(/:\d+$/, "") },
  };
  writeFileSync(configFile, JSON.stringify(config), { mode: 0o600 });
  process.env.MODHOST_VAULT_KEY = marker;
  state.reached = 0;
  const ends: string[] = [];
  const write = (line: string) => {
    if (/its sandbox ended/.test(line)) ends.push(line);
  };
  const host = createHost({
    config: await loadConfig({ path: configFile, cwd: folder, env: process.env }),
    log: { level: "warn", destination: { write } },
  });
  await host.start();
  try {
    const failed = host.modules().filter(({ status }) => status !== "loaded");
    if (failed.length > 0) throw new Error(failed.map((each) => `${each.name}: ${each.note}`).join("\n"));
    const text = async (path: string, headers: Record<string, string> = {}) =>
      (await fetch(`http://127.0.0.1:${port}${path}`, { headers })).text();
    const token = { name: marker, scopes: "admin" };
    const { value } = await callAt<{ secret: string }>(join(data, "admin.sock"), "POST", "/tokens", token);
    const before = facts();
    const outcomes = JSON.parse(await text("/stranger/try")) as Outcome[];
    const attempts: Attempt[] = outcomes.map((outcome) => ({
      kind: outcome.kind,
      name: outcome.name,
      refusedBy: outcome.got === undefined ? refuserOf(outcome.code ?? "") : LEFT_OUT,
      fault: faultOf(outcome),
    }));
    const seen = await text("/stranger/seen", { authorization: `Bearer ${value.secret}` });
    attempts.push({
      kind: "tokens",
      name: "sees the token of a request",
      refusedBy: LEFT_OUT,
      fault: seen.includes(value.secret) ? "it got the token" : undefined,
    });
    for (const [act, [, reason]] of messages ? Object.entries(acts) : [])
      attempts.push(await relayAttempt(act, reason, text, ends));
    const after = facts();
    const paths = new Set([...Object.keys(before), ...Object.keys(after)]);
    const changed = [...paths].filter((path) => before[path] !== after[path]);
    if ((await text("/vault")) !== "vault") changed.push("the route of another module");
    if (state.reached > 0) changed.push("functions and hooks of other modules were called");
    if (({} as { polluted?: unknown }).polluted !== undefined) changed.push("the prototype of all objects");
    const layers = sandboxLayers().flatMap((layer) => (layer.works ? [layer.name] : []));
    return { attempts, changed, layers: layers.filter((layer) => layer !== "namespaces" || namespaces !== "off") };
  } finally {
    await host.stop();
    web.close();
    web.closeAllConnections();
  }
}

/** Sends malformed messages: the sandbox is ended for the reason, or they are ignored. */
async function relayAttempt(
  act: string,
  reason: RegExp | undefined,
  text: (path: string) => Promise<string>,
  ends: readonly string[],
): Promise<Attempt> {
  const seen = ends.length;
  await text(`/evil/${act}`).catch(() => "");
  const isOver = async () => (reason === undefined ? (await text("/evil")) === "fine" : ends.length > seen);
  const late = await eventually("it is ended or ignored", isOver, { every: 20, within: 60_000 }).then(
    () => undefined,
    reasonOf,
  );
  const end = ends[seen];
  const fault = end === undefined || reason?.test(end) === true ? late : end;
  const isFine = async () => (await text("/evil").catch(() => "")) === "fine";
  await eventually("the sandbox is started again", isFine, { every: 20 });
  return {
    kind: "messages",
    name: `sends messages: ${act}`,
    refusedBy: reason === undefined ? "host (ignored)" : "host (sandbox ended)",
    fault,
  };
}

try {
  console.log(JSON.stringify(await run()));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
