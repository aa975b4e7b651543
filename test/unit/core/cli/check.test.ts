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

/** `modhost check` in a new folder with these files. */
async function check(files: Files, words: readonly string[] = [], more: NodeJS.ProcessEnv = {}) {
  const folder = join(root, String((made += 1)));
  await write(folder, { "package.json": `{ "type": "module" }`, ...files });
  const text = await ran(folder, ["check", "--no-json", ...words], { env: { ...env, ...more } });
  return { ...text, folder };
}

describe("check: the verdict", () => {
  test("is a sentence, with the number of warnings", async () => {
    const { code, stdout } = await check({ "modhost.config.yaml": "modules_enabled: [http, http_admin]\n" });
    assert.equal(code, 0);
    assert.match(stdout, /^The configuration is valid\.$/m);
    const warned = await check({ "modhost.config.yaml": "modules_enabled: [http, http_admin]\nnonsense: 1\n" });
    assert.equal(warned.code, 0);
    assert.match(warned.stdout, /^The configuration is valid, with 1 warning\.$/m);
  });

  test("of what is wrong says how much, and what would become of the server", async () => {
    const { code, stdout } = await check({ "modhost.config.yaml": "log_level: loud\nstop_timeout: soon\n" });
    assert.equal(code, 1);
    assert.match(stdout, /^The configuration is not valid: 2 problems; the server would not start\.$/m);
  });
});

describe("check: guards", () => {
  const guards = (entry: string) =>
    `modules_enabled: [http, http_guard]\nhosts:\n  a.test: &a { http_guard: { "*": { rate: 1/s } } }\n  b.test: ${entry}\n`;

  test("that an entry of hosts merges do not count as unknown options", async () => {
    // Without the module http_admin its variable would be an unknown option.
    const withoutAdmin = { MODHOST_ADMIN_PORT: undefined };
    const { code, stdout } = await check({ "modhost.config.yaml": guards("{ <<: *a }") }, [], withoutAdmin);
    assert.equal(code, 0);
    assert.doesNotMatch(stdout, /hosts/);
  });

  test("whose option name is misspelt are a problem", async () => {
    const { code, stdout } = await check({ "modhost.config.yaml": guards("{ http_gaurd: {} }") });
    assert.equal(code, 1);
    assert.match(stdout, /hosts\.b\.test\.http_gaurd is set, but no option has this name: write http_guard/);
  });
});

describe("check: the port of the dashboard", () => {
  test("causes a warning with the remedy when it is taken", async () => {
    const blocker = createServer().listen(0, "127.0.0.1");
    await once(blocker, "listening");
    const { port } = blocker.address() as { port: number };
    const config = "modules_enabled: [http, http_admin]\nadmin_interfaces: [127.0.0.1]\n";
    const { code, stdout } = await check({ "modhost.config.yaml": config }, [], { MODHOST_ADMIN_PORT: String(port) });
    blocker.close();
    assert.equal(code, 0);
    assert.match(
      stdout,
      /^warning +Port \d+ on 127\.0\.0\.1 is taken .* MODHOST_ADMIN_PORT=\d+ \(or does this server run\?\)$/m,
    );
  });
});

describe("check: the file", () => {
  test("may be named by an argument as by --config", async () => {
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

  test("ports that the options give twice, or at an address that nobody has, are a problem", async () => {
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

  test("a log that is a folder or cannot be made, and a data folder that is a file, are problems", async () => {
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
  test("is a warning", async () => {
    const { code, stdout } = await check({ "modhost.config.yaml": "# http_ports: [80]\n" });
    assert.equal(code, 0);
    assert.match(stdout, /^warning +The config file is empty: all options have their defaults$/m);
  });
});

describe("check: values", () => {
  test("a path at which nothing can be made, or at which there is nothing to serve, is a warning", async () => {
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

  test("a URL that is none is a problem", async () => {
    const { code, stdout } = await check({ "modhost.config.yaml": "http_external_url: www.example.org\n" });
    assert.equal(code, 1);
    assert.match(
      stdout,
      /problem {2}modhost\.config\.yaml: http_external_url is "www\.example\.org", but it must be a URL/,
    );
  });

  test("names of apps that nobody provides, and of apps that two modules provide, are warnings", async () => {
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

  test("middleware before an app that nobody provides is a warning", async () => {
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

  test("a port that is taken is a warning, since this server may be running", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const more = { MODHOST_HTTP_PORTS: String(port) };
    const { code, stdout } = await check({ "modhost.config.yaml": "modules_enabled: [http]\n" }, [], more);
    server.close();
    assert.equal(code, 0);
    assert.match(stdout, new RegExp(`warning  Port ${port} on 127\\.0\\.0\\.1 is taken .*or does this server run\\?`));
  });

  test("a secret is in nothing that is printed, and a required option that is missing is a problem", async () => {
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
