import assert from "node:assert/strict";
import { test } from "node:test";
import { configFrom } from "#core/config/index.ts";
import { httpUrl } from "#core/module/url.ts";
import type { ListeningPort, ModuleLog } from "#core/types.ts";

interface Case {
  readonly config?: Record<string, unknown>;
  readonly open?: readonly [scheme: string, address: string, port: number][];
  readonly host?: string;
  readonly app?: string;
  readonly path?: string;
}

function urlOf({ config = {}, open = [], host = "*", app = "app", path }: Case): { url: string; warnings: number } {
  let warnings = 0;
  const log = { warn: () => void warnings++ } as unknown as ModuleLog;
  const listening = (): ListeningPort[] =>
    open.map(([scheme, address, port]) => ({ service: scheme, scheme, address, port }));
  return { url: httpUrl({ config: configFrom(config, "/"), host, log, listening }, app, path), warnings };
}

const plain: [string, string, number] = ["http", "127.0.0.1", 5280];
const secure: [string, string, number] = ["https", "::", 5281];

const cases: readonly [title: string, given: Case, url: string][] = [
  ["HTTPS takes precedence over HTTP", { open: [plain, secure] }, "https://localhost:5281/app"],
  ["HTTP is used without HTTPS", { open: [plain] }, "http://localhost:5280/app"],
  ["default ports are left out", { open: [["https", "::", 443]] }, "https://localhost/app"],
  ["an address of the network is the name", { open: [["http", "192.0.2.1", 80]] }, "http://192.0.2.1/app"],
  [
    "another loopback address than 127.0.0.1 is not called localhost",
    { open: [["http", "127.0.0.2", 81]] },
    "http://127.0.0.2:81/app",
  ],
  ["an IPv6 address has brackets", { open: [["http", "2001:db8::1", 81]] }, "http://[2001:db8::1]:81/app"],
  [
    "a module of a host has the name of its host",
    { open: [plain], host: "one.example" },
    "http://one.example:5280/app",
  ],
  [
    "http_default_host names the server",
    { open: [plain], config: { http_default_host: "d.example" } },
    "http://d.example:5280/app",
  ],
  [
    "before ports are open, the options name them",
    { config: { http_ports: [8080], https_ports: [] } },
    "http://localhost:8080/app",
  ],
  [
    "a port that the system will choose is left out",
    { config: { http_ports: [0], https_ports: [] } },
    "http://localhost/app",
  ],
  [
    "http_paths changes the path of the app",
    { open: [plain], config: { http_paths: { app: "/moved/" } } },
    "http://localhost:5280/moved/",
  ],
  [
    "default_path is used unless http_paths has the app",
    { open: [plain], path: "deep/path" },
    "http://localhost:5280/deep/path",
  ],
  ["an app can be at the root", { open: [plain], path: "/" }, "http://localhost:5280/"],
  [
    "$host is replaced by the host's name",
    { open: [plain], host: "one.example", path: "/$host/x" },
    "http://one.example:5280/one.example/x",
  ],
  [
    "http_external_url replaces everything before the path, and its own path precedes that of the app",
    { open: [secure], config: { http_external_url: "https://www.example/base/" } },
    "https://www.example/base/app",
  ],
];

for (const [title, given, url] of cases) {
  test(`http_url: ${title}`, () => {
    assert.deepEqual(urlOf(given), { url, warnings: 0 });
  });
}

test("http_url: without any port it is an unusable address, with a warning", () => {
  assert.deepEqual(urlOf({ config: { http_ports: [], https_ports: [] } }), {
    url: "http://disabled.invalid/",
    warnings: 1,
  });
});
