import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Files, write } from "../module/support.ts";
import { ran } from "./called.ts";

let root: string;
let made = 0;
before(async () => {
  root = await mkdtemp(join(tmpdir(), "modhost-check-"));
});
after(() => rm(root, { recursive: true }));

const env = { MODHOST_HTTP_PORTS: "0", MODHOST_HTTPS_PORTS: "", MODHOST_ADMIN_PORT: "0" };
const app = (name: string) =>
  `export default (module) => { module.depends("http"); module.provides("http", { name: "${name}", route: { GET: "x" } }); };`;

/** Runs `modhost check` in a new folder with these files. */
async function check(files: Files, words: readonly string[] = [], more: NodeJS.ProcessEnv = {}) {
  const folder = join(root, String((made += 1)));
  await write(folder, { "package.json": `{ "type": "module" }`, ...files });
  const text = await ran(folder, ["check", "--no-json", ...words], { env: { ...env, ...more } });
  return { ...text, folder };
}

describe("the last line of check", () => {
  test("says that the configuration is valid, with the number of warnings", async () => {
    const { code, stdout } = await check({ "modhost.config.yaml": "modules_enabled: [http, http_admin]\n" });
    assert.equal(code, 0);
    assert.match(stdout, /^The configuration is valid\.$/m);
    const warned = await check({ "modhost.config.yaml": "modules_enabled: [http, http_admin]\nnonsense: 1\n" });
    assert.equal(warned.code, 0);
    assert.match(warned.stdout, /^The configuration is valid, with 1 warning\.$/m);
  });

  test("names the number of problems, and says that the server would not start", async () => {
    const { code, stdout } = await check({ "modhost.config.yaml": "log_level: loud\nstop_timeout: soon\n" });
    assert.equal(code, 1);
    assert.match(stdout, /^The configuration is not valid: 2 problems; the server would not start\.$/m);
  });
});

describe("check", () => {
  const guards = (entry: string) =>
    `modules_enabled: [http, http_guard]\nhosts:\n  a.test: &a { http_guard: { "*": { rate: 1/s } } }\n  b.test: ${entry}\n`;

  test("accepts options that an entry of hosts merges", async () => {
    // Without the module http_admin its variable would be an unknown option.
    const withoutAdmin = { MODHOST_ADMIN_PORT: undefined };
    const { code, stdout } = await check({ "modhost.config.yaml": guards("{ <<: *a }") }, [], withoutAdmin);
    assert.equal(code, 0);
    assert.doesNotMatch(stdout, /hosts/);
  });

  test("reports a misspelt option of a guard as a problem", async () => {
    const { code, stdout } = await check({ "modhost.config.yaml": guards("{ http_gaurd: {} }") });
    assert.equal(code, 1);
    assert.match(stdout, /hosts\.b\.test\.http_gaurd is set, but no option has this name: write http_guard/);
  });
});

describe("check: the port of the dashboard", () => {
  test("warns of a taken port, and names the remedy", async () => {
    const blocker = createServer().listen(0, "127.0.0.1");
    await once(blocker, "listening");
    const { port } = blocker.address() as { port: number };
    const config = "modules_enabled: [http, http_admin]\nadmin_interfaces: [127.0.0.1]\n";
    const { code, stdout } = await check({ "modhost.config.yaml": config }, [], { MODHOST_ADMIN_PORT: String(port) });
    blocker.close();
    assert.equal(code, 0);
    assert.match(
      stdout,
      /^warning +Port \d+ on 127\.0\.0\.1 is taken .* MODHOST_ADMIN_PORT=\d+ \(perhaps because this server runs\)$/m,
    );
  });
});

describe("check: the file", () => {
  test("reads a config file that is named as an argument", async () => {
    const files = { "own.yaml": "modules_enabled: [http]\n", "modhost.config.yaml": "log_level: loud\n" };
    const { code, stdout } = await check(files, ["own.yaml"]);
    assert.equal(code, 0);
    assert.match(stdout, /^config +.*own\.yaml$/m);
    const two = await check(files, ["own.yaml", "modhost.config.yaml"]);
    assert.equal(two.code, 2);
    assert.match(two.stderr, /There can be one config file, not .*own\.yaml and .*modhost\.config\.yaml/);
  });
});

describe("check: what a start opens", () => {
  const freePort = async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, "close");
    return port;
  };

  test("reports ports that are configured twice, or at an address of no interface, as problems", async () => {
    const port = await freePort();
    for (const [text, message] of [
      [`https_ports: [${port}]\nhttps_interfaces: [127.0.0.1]`, /http_ports has it too.*https_ports/],
      ['http_interfaces: ["*", 127.0.0.1]', /:: in http_interfaces has it too.*http_interfaces/],
      ["http_interfaces: [127.0.0.1, 127.0.0.1]", /127\.0\.0\.1 in http_interfaces has it too/],
      ["http_interfaces: [192.0.2.1]", /EADDRNOTAVAIL.*http_interfaces/],
    ] as const) {
      const more = { MODHOST_HTTP_PORTS: String(port), MODHOST_HTTPS_PORTS: undefined };
      const config = `modules_enabled: [http]\nhttps_ports: []\n`;
      const own = text.startsWith("https_ports") ? config.replace("https_ports: []\n", "") : config;
      const { code, stdout } = await check({ "modhost.config.yaml": `${own}${text}\n` }, [], more);
      assert.equal(code, 1, text);
      assert.match(stdout, message);
      assert.doesNotMatch(stdout, /taken by another program|does this server run/);
      assert.match(stdout, /1 problem; the server would not start/);
    }
  });

  test("reports a log file that is a folder or cannot be created, and a data folder that is a file, as problems", async () => {
    for (const [text, message] of [
      ["log_file: .", /problem +log_file: .* is a folder/],
      ["log_file: ./note.txt/log", /problem +log_file: a file is in the way of .*note\.txt\/log/],
      ["http_log_file: .", /problem +http_log: .*http_log_file cannot be opened/],
      ["data_path: ./note.txt", /problem +.*data_path is .*note\.txt, but that is a file: it must be a folder/],
      ["http_external_url: https://a.example/?q", /http_external_url is .* no query and no fragment/],
    ] as const) {
      const files = { "modhost.config.yaml": `modules_enabled: [http, http_log]\n${text}\n`, "note.txt": "a file" };
      const { code, stdout } = await check(files);
      assert.equal(code, 1, text);
      assert.match(stdout, message);
    }
  });
});

describe("check: an empty file", () => {
  test("warns of an empty config file", async () => {
    const { code, stdout } = await check({ "modhost.config.yaml": "# http_ports: [80]\n" });
    assert.equal(code, 0);
    assert.match(stdout, /^warning +The config file is empty: all options have their defaults$/m);
  });
});

describe("check: values", () => {
  test("warns of a path where nothing can be created, and of one where nothing exists to serve", async () => {
    const { code, stdout, folder } = await check({
      "modhost.config.yaml":
        "modules_enabled: [http, http_files]\nhttp_files_dir: ./wwww\ndata_path: ./note.txt/data\nplugin_paths: [./mods]\n",
      "note.txt": "a file",
    });
    assert.equal(code, 0);
    assert.ok(stdout.includes(`warning  http_files_dir: there is no ${join(folder, "wwww")}`), stdout);
    assert.ok(stdout.includes(`warning  data_path: a file is in the way of ${join(folder, "note.txt/data")}`), stdout);
    assert.ok(stdout.includes(`warning  plugin_paths: there is no ${join(folder, "mods")}`), stdout);
  });

  test("reports an invalid URL as a problem", async () => {
    const { code, stdout } = await check({ "modhost.config.yaml": "http_external_url: www.example.org\n" });
    assert.equal(code, 1);
    assert.match(
      stdout,
      /problem {2}modhost\.config\.yaml: http_external_url is "www\.example\.org", but it must be a URL/,
    );
  });

  test("warns of app names that no module provides, and of one that two modules provide", async () => {
    const { code, stdout } = await check({
      "modhost.config.yaml":
        "plugin_paths: [.]\nmodules_enabled: [http, one, two, hello]\nhttp_paths: { helo: /, hello: /h }\n",
      "mod_one.js": app("shop"),
      "mod_two.js": app("shop"),
      "mod_hello.js": app("hello"),
    });
    assert.equal(code, 0);
    assert.match(stdout, /warning {2}http_paths\.helo: no app is named helo: did you mean hello\?/);
    assert.match(stdout, /warning {2}The modules one and two both provide an app shop: /);
    assert.doesNotMatch(stdout, /http_paths\.hello/);
  });

  test("warns of middleware for an app that no module provides", async () => {
    const { code, stdout } = await check({
      "modhost.config.yaml":
        "plugin_paths: [.]\nmodules_enabled: [http, hello]\nhttp_middleware: [{ use: ./limits.js, apps: [helo, hello] }]\n",
      "mod_hello.js": app("hello"),
      "limits.js": "export default () => (context, next) => next();",
    });
    assert.equal(code, 0);
    assert.match(stdout, /warning {2}http_middleware, \S*limits\.js: no app is named helo: did you mean hello\?/);
    assert.doesNotMatch(stdout, /no app is named hello/);
  });

  test("warns of a taken port, since this server may be running", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const more = { MODHOST_HTTP_PORTS: String(port) };
    const { code, stdout } = await check({ "modhost.config.yaml": "modules_enabled: [http]\n" }, [], more);
    server.close();
    assert.equal(code, 0);
    assert.match(
      stdout,
      new RegExp(`warning  Port ${port} on 127\\.0\\.0\\.1 is taken .*perhaps because this server runs`),
    );
  });

  test("prints no secret, and reports a missing required option as a problem", async () => {
    const { code, stdout } = await check({
      "modhost.config.yaml": "plugin_paths: [.]\nmodules_enabled: [http, mail, post]\nmail_password: hunter22\n",
      "mod_mail.js": `export const options = { mail_password: { type: "string", secret: true, describe: "" } };
        export default (module) => { throw new Error("refused " + module.get_option("mail_password")); };`,
      "mod_post.js": `export const options = { post_key: { type: "string", required: true, describe: "A key." } };
        export default () => {};`,
    });
    assert.equal(code, 1);
    assert.match(stdout, /problem {2}mail: .*refused \(secret\)/);
    assert.match(stdout, /problem {2}post: The module post needs the option post_key, which is not set: A key\. /);
    assert.doesNotMatch(stdout, /hunter22/);
  });
});
