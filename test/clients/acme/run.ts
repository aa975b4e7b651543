/**
 * `npm run test:acme [-- --pebble PATH]`: gets certificates by ACME from Pebble, which rejects
 * everything that is not exactly right, and some valid nonces. PATH is the program or its folder;
 * its name server `pebble-challtestsrv` has to be in the same folder.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { accessSync, constants, statSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "node:tls";
import { parseArgs } from "node:util";
import { createHost } from "#core/index.ts";
import { makeSelfSigned } from "#core/tls/self_signed.ts";
import { freePort } from "#test/support/free_port.ts";

const PATIENCE_MS = 120_000;
const { values } = parseArgs({ options: { pebble: { type: "string" } } });

const eab = { id: "kid-1", key: "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W" };

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function found(): string | undefined {
  const named = values.pebble;
  const folders = (process.env.PATH ?? "").split(delimiter);
  const paths = named === undefined ? folders.map((folder) => join(folder, "pebble")) : [named, join(named, "pebble")];
  return paths.find((path) => isProgram(path) && isProgram(join(dirname(path), "pebble-challtestsrv")));
}

async function freeUdpPort(): Promise<number> {
  const socket = createSocket("udp4").bind(0, "127.0.0.1");
  await once(socket, "listening");
  const { port } = socket.address();
  socket.close();
  return port;
}

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const value = await look().catch(() => undefined);
    if (value !== undefined) return value;
    if (Date.now() > end) throw new Error(`gave up after two minutes of waiting for this: ${what}`);
    await pause(100);
  }
}

/** Resolves to the issuer of the certificate that a client gets for a name. */
async function issuerOf(port: number, servername: string): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", servername, rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const { issuer = "" } = socket.getPeerX509Certificate() ?? {};
  socket.destroy();
  return issuer;
}

async function run(pebble: string, challenge: string, isBound: boolean): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-pebble-"));
  const children: ChildProcess[] = [];
  let output = "";
  const begin = (program: string, args: string[]) => {
    const env = { ...process.env, PEBBLE_VA_NOSLEEP: "1", PEBBLE_WFE_NONCEREJECT: "30" };
    const child = spawn(program, args, { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (output += String(data)));
    children.push(child);
  };
  const [listen, management, http, https, hands] = await Promise.all(Array.from({ length: 5 }, freePort));
  const dns = await freeUdpPort();
  const pair = await makeSelfSigned(["localhost", "127.0.0.1"]);
  await writeFile(join(folder, "cert.pem"), pair.certificate);
  await writeFile(join(folder, "key.pem"), pair.key);
  const config = {
    pebble: {
      listenAddress: `127.0.0.1:${listen}`,
      managementListenAddress: `127.0.0.1:${management}`,
      certificate: "cert.pem",
      privateKey: "key.pem",
      httpPort: http,
      tlsPort: https,
      externalAccountBindingRequired: isBound,
      externalAccountMACKeys: isBound ? { [eab.id]: eab.key } : {},
      retryAfter: { authz: 1, order: 1 },
      profiles: { default: { description: "90 days", validityPeriod: 7_776_000 } },
    },
  };
  await writeFile(join(folder, "config.json"), JSON.stringify(config));
  const names = ["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "", "-defaultIPv6", ""];
  const servers = ["-dnsserver", `127.0.0.1:${dns}`, "-management", `127.0.0.1:${hands}`, "-defaultIPv4", "127.0.0.1"];
  begin(join(dirname(pebble), "pebble-challtestsrv"), [...names, ...servers]);
  begin(pebble, ["-config", "config.json", "-dnsserver", `127.0.0.1:${dns}`]);
  let log = "";
  const host = createHost({
    config: {
      modules_enabled: ["http"],
      data_path: join(folder, "data"),
      http_ports: [http],
      http_interfaces: ["127.0.0.1"],
      https_ports: [https],
      https_interfaces: ["127.0.0.1"],
      hosts: { "elsewhere.example": {} },
      acme_hosts: ["a.modhost.example", "b.modhost.example"],
      acme_agree: true,
      acme_email: "admin@modhost.example",
      acme_directory: `https://localhost:${listen}/dir`,
      acme_ca_file: join(folder, "cert.pem"),
      acme_challenge: challenge,
      ...(isBound ? { acme_eab_id: eab.id, acme_eab_key: eab.key } : {}),
    },
    log: { destination: { write: (line: string) => void (log += line) }, format: "json" },
  });
  try {
    await until("pebble", async () => (/Listening on/i.test(output) ? true : undefined));
    await host.start();
    for (const name of ["a.modhost.example", "b.modhost.example"]) {
      await until(`a certificate for ${name}`, async () => {
        return /Pebble Intermediate/.test(await issuerOf(https as number, name)) ? true : undefined;
      });
    }
    assert.doesNotMatch(await issuerOf(https as number, "other.example"), /Pebble/);
    const states = host
      .status()
      .certificates.filter(({ source, expires }) => source === "acme" && expires !== undefined);
    assert.equal(states.length, 2);
    return `2 certificates, the last until ${states.at(-1)?.expires?.slice(0, 10)}`;
  } catch (error) {
    throw new Error(`${String(error)}\n${log}\n${output.slice(-8000)}`);
  } finally {
    await host.stop({ timeout: 5 });
    for (const child of children) {
      if (child.exitCode === null) child.kill();
    }
    await rm(folder, { recursive: true, force: true });
  }
}

const pebble = found();
const cases = [
  ["http-01", false],
  ["tls-alpn-01", false],
  ["http-01", true],
] as const;
let passed = 0;
let failed = 0;
if (pebble === undefined) {
  console.log(
    "left out: Pebble is not installed. Build it with Go: go install github.com/letsencrypt/pebble/v2/cmd/...@latest",
  );
}
for (const [challenge, isBound] of pebble === undefined ? [] : cases) {
  const name = `${challenge}${isBound ? ", bound account" : ""}`;
  try {
    console.log(`${name}: ${await run(pebble as string, challenge, isBound)}`);
    passed += 1;
  } catch (error) {
    failed += 1;
    console.log(`${name}: ${(error as Error).stack}`);
  }
}
console.log(`${passed} passed, ${failed} failed, ${pebble === undefined ? cases.length : 0} skipped`);
process.exitCode = failed === 0 ? 0 : 1;
