/**
 * Tests several hosts as containers: everything that the compose file names exists, and its parts
 * fit together.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { parse } from "yaml";
import { sections } from "#config/build/generate.ts";
import { loadConfig } from "#core/config/index.ts";
import { project } from "../docs/guides/support.ts";

interface Service {
  readonly image: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly networks?: readonly string[];
  readonly depends_on?: readonly string[] | Readonly<Record<string, unknown>>;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
  readonly networks: {
    readonly inside: { readonly ipam: { readonly config: readonly [{ readonly subnet: string }] } };
  };
}

const folder = join(project, "config/deploy/scale");
const textOf = (name: string) => readFileSync(join(folder, name), "utf8");
const { services, volumes, networks } = parse(textOf("compose.yaml"), { merge: true }) as Compose;
const hosts = Object.keys(services).filter((name) => services[name]?.image === "modhost");

const known = Object.fromEntries(
  Array.from(textOf("example.env").matchAll(/^(\w+)=(.*)$/gm), ([, name, value]) => [name, value]),
);
const compose = [["docker", "compose"], ["docker-compose"]].find(
  ([program = "", ...words]) => spawnSync(program, [...words, "version"]).status === 0,
);

describe("the compose file", () => {
  test("is accepted by Docker Compose", { skip: compose ? false : "needs docker compose" }, () => {
    const [program = "", ...words] = compose ?? [];
    const options = { cwd: folder, env: { ...process.env, ...known }, encoding: "utf8" } as const;
    const { status, stderr } = spawnSync(program, [...words, "--file", "compose.yaml", "config", "--quiet"], options);
    assert.equal(status, 0, stderr);
  });

  test("names existing services, volumes, files and variables, and images without a registry", () => {
    assert.equal(hosts.length, 3);
    for (const [name, { image, environment = {}, volumes: mounted = [], depends_on = [] }] of Object.entries(
      services,
    )) {
      assert.match(image, /^[a-z]+(\/[a-z]+)?(:[\w.-]+)?$/, name);
      for (const text of Object.values(environment)) {
        for (const [, variable = ""] of text.matchAll(/\$\{(\w+)/g)) assert.ok(variable in known, variable);
      }
      for (const [source = ""] of mounted.map((each) => each.split(":"))) {
        assert.ok(source.startsWith("./") ? existsSync(join(folder, source)) : source in volumes, source);
      }
      for (const other of Array.isArray(depends_on) ? depends_on : Object.keys(depends_on))
        assert.ok(other in services);
    }
  });

  test("has hosts with data of their own, behind a proxy that they trust, on the stores that they name", async () => {
    const data = hosts.flatMap((name) => services[name]?.volumes?.filter((each) => each.endsWith(":/data")) ?? []);
    assert.equal(new Set(data).size, hosts.length);
    const config = await loadConfig({ path: join(folder, "modhost.config.yaml"), cwd: folder, env: {} });
    for (const { owner, options } of await sections()) config.declare(options, owner);
    config.check();
    assert.deepEqual(config.unknownNames(), []);
    assert.deepEqual(config.value("trusted_proxies"), [networks.inside.ipam.config[0].subnet]);
    const store = config.value("node_store") as { endpoint: string; sql: string };
    for (const url of [store.endpoint, store.sql]) assert.ok(new URL(url).hostname in services, url);
    const [port] = config.value("http_ports") as number[];
    const upstreams = Array.from(textOf("nginx.conf").matchAll(/^ {4}server ([\w:]+)/gm), ([, server]) => server);
    assert.deepEqual(
      upstreams,
      hosts.map((name) => `${name}:${port}`),
    );
  });
});
