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

const env = { MODHOST_HTTP_PORTS: "0", MODHOST_HTTPS_PORTS: "" };
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
    const { code, stdout } = await check({ "modhost.config.yaml": "modules_enabled: [http]\n" });
    assert.equal(code, 0);
    assert.match(stdout, /^The configuration is valid\.$/m);
    const warned = await check({ "modhost.config.yaml": "modules_enabled: [http]\nnonsense: 1\n" });
    assert.equal(warned.code, 0);
    assert.match(warned.stdout, /^The configuration is valid, with 1 warning\.$/m);
  });

  test("of what is wrong says how much, and what would become of the server", async () => {
    const { code, stdout } = await check({ "modhost.config.yaml": "log_level: loud\nstop_timeout: soon\n" });
    assert.equal(code, 1);
    assert.match(stdout, /^The configuration is not valid: 2 problems; the server would not start\.$/m);
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
