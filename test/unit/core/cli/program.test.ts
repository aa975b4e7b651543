import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, realpathSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { ran } from "./called.ts";
import { Program, withNode } from "./spawned.ts";

const hello = `export default (module: { depends(name: string): unknown; provides(kind: string, item: object): void }) => {
  module.depends("http");
  module.provides("http", { route: { "GET": () => "hello", "GET /wait": () => new Promise(() => {}), "GET /a/*": () => "a" } });
};`;
const broken = "export default () => { throw new Error('out of luck'); };";
const config = "plugin_paths: [./modules]\nmodules_enabled: [http, hello]\n";

describe("help, version and wrong usage", () => {
  test("--help lists the commands, and COMMAND --help its options", async () => {
    await using program = await Program.in({});
    const all = await program.call(["--help"]);
    assert.equal(all.code, 0);
    for (const name of ["run", "check", "modules", "routes", "--config", "--json"])
      assert.ok(all.stdout.includes(name));
    const one = await program.call(["routes", "--help"]);
    assert.match(one.stdout, /^Usage: modhost routes/);
    assert.match(one.stdout, /--explain/);
  });

  test("--version prints the version of the package", async () => {
    await using program = await Program.in({});
    const manifest = JSON.parse(await readFile(new URL("../../../../package.json", import.meta.url), "utf8"));
    assert.equal((await program.call(["--version"])).stdout, `${manifest.version}\n`);
  });

  test("a long output passes through a pipe completely", async () => {
    await using program = await Program.in({});
    const { stdout } = await program.call(["completion", "zsh"]);
    assert.ok(stdout.length > 65_536, "a pipe takes that much at once");
    assert.equal(stdout, (await ran(program.folder, ["completion", "zsh"])).stdout);
  });

  for (const [args, message] of [
    [["chekc"], /no command or file chekc: did you mean check\?/],
    [["--ports", "6280"], /run has no option --ports: .*set all ports.* MODHOST_HTTP_PORTS=6280/],
    [["--port", "x"], /--port takes a port number, not x/],
    [["--prt=x", "6280"], /run has no option --prt/],
    [["run", "--log-level=warn"], /run has no option --log-level: set it in the config file, or as MODHOST_LOG_LEVEL/],
    [["run", "./none.ts"], /no file or folder \.\/none\.ts/],
    [["check", "extra"], /no file or folder extra/],
    [["check", "--jsn"], /check has no option --jsn: did you mean --json\?/],
    [["check", "--config"], /--config/],
    [["routes", "--explain", "hello"], /a method and a path, such as "GET \/hello", not hello/],
  ] as const) {
    test(`${args.join(" ")} is refused with exit code 2`, async () => {
      await using program = await Program.in({});
      const { code, stderr, stdout } = await program.call(args);
      assert.equal(code, 2);
      assert.match(stderr, message);
      assert.equal(stdout, "");
    });
  }
});

describe("run", () => {
  const module = `export default (module) => {
    const later = (run) => setImmediate(run) && "soon";
    module.provides("http", { route: {
      "GET": () => "here",
      "GET /reject": () => later(() => Promise.reject(new Error("adrift"))),
      "GET /odd": () => later(() => Promise.reject(Object.create(null))),
    } });
  };`;
  const lines = (stderr: string) =>
    stderr
      .split("\n")
      .flatMap((line): { module?: string; level: string; msg: string }[] =>
        line.startsWith("{") ? [JSON.parse(line)] : [],
      );

  test("logs an unhandled rejection under its module, and keeps serving", async () => {
    await using program = await Program.in({ "mod_astray.js": module });
    const { started, kill, ended } = await program.serve(["mod_astray.js"]);
    const url = started.apps.find(({ name }) => name === "astray")?.urls[0];
    for (const path of ["/reject", "/odd", "/reject"]) assert.equal(await (await fetch(url + path)).text(), "soon");
    kill("SIGTERM");
    const { code, stderr } = await ended;
    assert.equal(code, 0);
    const errors = lines(stderr).filter(({ level }) => level === "error");
    const failed = "The module astray failed while running code that is not awaited:";
    const adrift = `${failed} adrift (mod_astray.js:5)`;
    assert.deepEqual(
      errors.map(({ module, msg }) => [module, msg]),
      [
        ["astray", adrift],
        ["astray", "The module astray failed while running code that is not awaited: [Object: null prototype] {}"],
        ["astray", adrift],
      ],
    );
  });

  test("serves a module file without configuration", async () => {
    await using program = await Program.in({ "mod_hello.ts": hello, ".modhostrc": "log_level: nonsense" });
    const { started, kill, ended } = await program.serve(["run", "./mod_hello.ts"], withNode);
    const app = started.apps.find(({ name }) => name === "hello");
    assert.equal(await (await fetch(app?.urls[0] ?? "")).text(), "hello");
    assert.deepEqual(started.failed, []);
    assert.equal(realpathSync(started.data), join(realpathSync(program.folder), "data"));
    kill("SIGTERM");
    assert.equal((await ended).code, 0);
  });

  test("serves a folder as a site with a listing, and a module folder as a module", async () => {
    await using program = await Program.in({
      "my site/page.html": "<p>page</p>",
      "mod_hello/index.ts": hello,
    });
    const { started, kill, ended } = await program.serve(["my site", "mod_hello"]);
    const [site, app] = ["site_my site", "hello"].map((name) => started.apps.find((app) => app.name === name));
    assert.match(site?.urls[0] ?? "", /\/my%20site\/$/);
    assert.equal(await (await fetch(`${site?.urls[0]}page.html`)).text(), "<p>page</p>");
    assert.match(await (await fetch(site?.urls[0] ?? "")).text(), /page\.html/);
    assert.equal(await (await fetch(app?.urls[0] ?? "")).text(), "hello");
    kill("SIGINT");
    assert.equal((await ended).code, 0);
  });

  test("without arguments serves the configuration, and names the modules that failed", async () => {
    await using program = await Program.in({
      "modhost.config.yaml": `${config}  - broken\n`.replace("[http, hello]\n", "\n  - http\n  - hello\n"),
      "modules/mod_hello.ts": hello,
      "modules/mod_broken.ts": broken,
    });
    const { started, kill, ended } = await program.serve([]);
    assert.deepEqual(
      started.apps.map(({ name }) => name),
      ["hello"],
    );
    assert.equal(started.failed[0]?.name, "broken");
    assert.match(started.failed[0]?.note ?? "", /out of luck/);
    assert.equal(realpathSync(started.config ?? ""), join(realpathSync(program.folder), "modhost.config.yaml"));
    kill("SIGTERM");
    assert.equal((await ended).code, 0);
  });

  test("without any file serves ./data, over HTTP and HTTPS", async () => {
    await using program = await Program.in({ "data/modules/mod_hello.ts": hello, "data/www/index.html": "home" });
    const { started, kill, ended } = await program.serve([], { MODHOST_HTTPS_PORTS: "0" });
    assert.deepEqual(
      started.apps
        .map(({ name }) => name)
        .filter((name) => ["files", "hello"].includes(name))
        .sort(),
      ["files", "hello"],
    );
    const urls = started.apps.find(({ name }) => name === "files")?.urls ?? [];
    assert.deepEqual(urls.map((url) => new URL(url).protocol).sort(), ["http:", "https:"]);
    assert.equal(await (await fetch(urls.find((url) => url.startsWith("http:")) ?? "")).text(), "home");
    kill("SIGTERM");
    assert.equal((await ended).code, 0);
  });

  test("prints text for people with --no-json", async () => {
    await using program = await Program.in({ "mod_hello.ts": hello });
    const { line, kill, ended } = await program.serve(["run", "./mod_hello.ts", "--no-json"]);
    assert.equal(line, "modhost serves");
    kill("SIGTERM");
    const { stdout } = await ended;
    assert.match(stdout, /^ {2}hello +http:\/\/localhost:\d+\/hello$/m);
    assert.match(stdout, /^ {2}ports +http on 127\.0\.0\.1:\d+/m);
    assert.match(stdout, /Stop with Ctrl\+C\.\n\nStopping\.\nStopped after \d+ s\.\n$/);
  });

  test("a signal during the start stops it", async () => {
    const slow =
      "export default () => { console.log('loading'); return new Promise(() => setInterval(() => {}, 999)); };";
    await using program = await Program.in({ "mod_slow.ts": slow });
    const { line, kill, ended } = await program.serve(["./mod_slow.ts"], { MODHOST_STOP_TIMEOUT: "0.2" });
    assert.equal(line, "loading");
    kill("SIGTERM");
    assert.equal((await ended).code, 0);
  });

  test("a config in TypeScript may import the types of the host", async () => {
    await using program = await Program.in({
      "modhost.config.ts":
        "import { defineConfig } from 'modhost';\nexport default defineConfig({ data_path: './kept' });",
    });
    const { started, kill, ended } = await program.serve([]);
    assert.match(started.data, /\/kept$/);
    kill("SIGTERM");
    assert.equal((await ended).code, 0);
  });

  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    test(`a second ${signal} ends it at once with ${code}, but an echo of the first does not`, async () => {
      await using program = await Program.in({ "mod_hello.ts": hello });
      const { started, kill, ended } = await program.serve(["run", "./mod_hello.ts"], { MODHOST_STOP_TIMEOUT: "1m" });
      const url = started.apps.find(({ name }) => name === "hello")?.urls[0];
      const waiting = fetch(`${url}/wait`).catch((error: Error) => error);
      await fetch(url ?? "");
      kill(signal);
      kill(signal);
      const early = await Promise.race([ended, delay(400, "still running")]);
      assert.equal(early, "still running");
      kill(signal);
      assert.equal((await ended).code, code);
      assert.ok((await waiting) instanceof Error);
    });
  }

  test("names a taken port with its option, in one line", async () => {
    await using program = await Program.in({ "mod_hello.ts": hello });
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const { code, stderr } = await program.run(["run", "./mod_hello.ts"], {
      MODHOST_HTTP_PORTS: String(port),
      MODHOST_LOG_LEVEL: "error",
    });
    server.close();
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`modhost: Port ${port} on 127\\.0\\.0\\.1 is taken .*http_ports`));
    assert.doesNotMatch(stderr, /\n\s+at /);
  });

  test("an invalid configuration prevents the start, and every problem is printed", async () => {
    await using program = await Program.in({ "modhost.config.json": '{ "log_level": "loud", "http_max_streams": 0 }' });
    const { code, stderr } = await program.run([]);
    assert.equal(code, 1);
    assert.match(stderr, /modhost\.config\.json: log_level is "loud", but it must be one of debug, info, warn, error/);
    assert.match(stderr, /modhost\.config\.json: http_max_streams is 0, but it must be an integer from 1/);
  });

  test("reads the file that --config names", async () => {
    await using program = await Program.in({});
    const { code, stderr } = await program.run(["--config", "none.yaml"]);
    assert.equal(code, 1);
    assert.match(stderr, /^modhost: There is no config file .*none\.yaml/);
  });
});

describe("check", () => {
  test("lists the modules of a valid configuration with their files, with exit code 0", async () => {
    await using program = await Program.in({ "modhost.config.yaml": config, "modules/mod_hello.ts": hello });
    const { code, stdout } = await program.call(["check"]);
    const report = JSON.parse(stdout);
    assert.equal(code, 0);
    assert.equal(report.ok, true);
    const files = Object.fromEntries(
      report.modules.map((module: { name: string; file: string }) => [module.name, module.file]),
    );
    assert.match(files.hello, /modules\/mod_hello\.ts$/);
    assert.match(files.http, /modules\/mod_http\/index\.ts$/);
  });

  test("reports wrong values, broken modules and unknown names, with exit code 1", async () => {
    await using program = await Program.in({
      "wrong.yaml": `${config}http_ports: many\nstop_timeout: soon\n`,
      "broken.yaml": "plugin_paths: [./modules]\nmodules_enabled: [http, broken, missing]\nhttp_prots: 80\n",
      "modules/mod_hello.ts": hello,
      "modules/mod_broken.ts": broken,
    });
    const env = { MODHOST_HTTP_PORTS: undefined };
    const wrong = await program.call(["check", "--config", "wrong.yaml"], env);
    assert.equal(wrong.code, 1);
    assert.equal(JSON.parse(wrong.stdout).problems.length, 2);
    const { code, stdout } = await program.call(["check", "-c", "broken.yaml", "--no-json"]);
    assert.equal(code, 1);
    assert.match(stdout, /problem {2}broken: .*out of luck/);
    assert.match(stdout, /problem {2}missing: /);
    assert.match(stdout, /warning {2}http_prots is no known option: did you mean http_ports\?/);
  });

  test("reports wrong route keys as problems, and warns of those that look like patterns", async () => {
    const app = (key: string) =>
      `export default (module) => { module.depends("http"); module.provides("http", { route: { "${key}": () => "x" } }); };`;
    await using program = await Program.in({ "mod_gte.js": app("GTE /"), "mod_id.js": app("GET /a/:id") });
    const { code, stdout } = await program.call(["check", "./mod_gte.js", "mod_id.js", "--no-json"]);
    assert.equal(code, 1);
    assert.match(stdout, /problem {2}gte: App gte: the route key "GTE \/" names the method GTE/);
    assert.match(stdout, /warning {2}id: the route key "GET \/a\/:id" .*write "GET \/a\/\*"/);
    assert.deepEqual((await program.call(["check", "mod_id.js"])).code, 0);

    const modules = await program.call(["modules", "mod_gte.js"]);
    const own = JSON.parse(modules.stdout).find(({ name }: { name: string }) => name === "gte");
    assert.deepEqual([modules.code, own.status], [1, "failed"]);
    const routes = await program.call(["routes", "mod_gte.js", "mod_id.js"]);
    assert.equal(routes.code, 1);
    assert.match(routes.stderr, /^modhost: gte: App gte: the route key "GTE \/"/);
    const listed = JSON.parse(routes.stdout) as { app: string; path: string }[];
    assert.deepEqual(
      listed.filter(({ app }) => app === "gte" || app === "id").map(({ path }) => path),
      ["/id/a/:id"],
    );
    for (const explain of [
      ["--explain", "GET /id/a/:id"],
      ["--explain", "GET", "/id/a/:id"],
    ]) {
      const { stdout, code } = await program.call(["routes", "mod_id.js", ...explain]);
      assert.deepEqual([JSON.parse(stdout).candidates.length, code], [1, 0]);
    }
  });
});

describe("check", () => {
  test("names a certificate file that cannot be used, and creates none", async () => {
    await using program = await Program.in({
      "modhost.config.yaml": "certificates: { a.example: { certificate: ./a.pem, key: ./a.key } }",
    });
    const { code, stdout } = await program.call(["check"]);
    assert.equal(code, 1);
    assert.match(JSON.parse(stdout).problems[0], /The certificate for a\.example cannot be used: .*a\.(pem|key)/);
    assert.ok(!existsSync(join(program.folder, "data")));
  });
});

describe("modules and routes", () => {
  const files = { "modhost.config.yaml": config, "modules/mod_hello.ts": hello };

  test("modules lists each module with its status, file and resources", async () => {
    await using program = await Program.in(files);
    const states = JSON.parse((await program.call(["modules"])).stdout);
    const own = states.find(({ name }: { name: string }) => name === "hello");
    assert.equal(own.status, "loaded");
    assert.deepEqual(own.depends, ["http"]);
    // Tests start without the modules that need the node, which `withoutNode` names. A new one has
    // to be added there, or every start of a test loads the node.
    assert.ok(!states.some(({ name }: { name: string }) => name === "node"));
    assert.match(
      (await program.call(["modules", "--no-json"])).stdout,
      /^MODULE .*\n(.*\n)*hello +\* +loaded +trusted +http /m,
    );
  });

  test("routes lists method, path, app and file", async () => {
    await using program = await Program.in(files);
    const routes = JSON.parse((await program.call(["routes"])).stdout) as {
      method: string;
      path: string;
      file: string;
    }[];
    assert.deepEqual(routes.map(({ method, path }) => `${method} ${path}`).sort(), [
      "GET /hello",
      "GET /hello/a/*",
      "GET /hello/wait",
    ]);
    assert.ok(routes.every(({ file }) => file.endsWith("mod_hello.ts")));
  });

  test("--explain lists the middleware before the app, the outermost first", async () => {
    const own = "export default () => (context, next) => next();";
    const listed = "http_middleware: [{ use: ./own.js, order: 5, apps: [hello] }, { use: ./own.js, name: first }]";
    await using program = await Program.in({
      ...files,
      "own.js": own,
      "modhost.config.yaml": `${config}${listed}\n`,
    });
    const { middleware } = JSON.parse((await program.call(["routes", "--explain", "/hello"])).stdout);
    assert.deepEqual(
      middleware.map(({ name, module, apps }: { name: string; module: string; apps?: string[] }) => [
        name,
        module,
        apps,
      ]),
      [
        ["first", "http", undefined],
        ["./own.js", "http", ["hello"]],
      ],
    );
    const text = await program.call(["routes", "--explain", "/hello", "--no-json"]);
    assert.match(
      text.stdout,
      /Middleware, the outermost first:\n +1\. +first +order 0 +all apps .*\n +2\. +\.\/own\.js +order 5 +hello /,
    );
  });

  test("--explain lists the candidate routes in their order, with the argument of the wildcard", async () => {
    await using program = await Program.in(files);
    for (const args of [["GET /hello/a/b"], ["get", "/hello/a/b"], ["/hello/a/b"]]) {
      const { stdout } = await program.call(["routes", "--explain", ...args]);
      const { method, candidates } = JSON.parse(stdout);
      assert.equal(method, "GET");
      assert.deepEqual(
        candidates.map(({ path, argument }: { path: string; argument: string }) => [path, argument]),
        [["/hello/a/*", "b"]],
      );
    }
    const text = await program.call(["routes", "--explain", "POST", "/hello", "--no-json"]);
    assert.match(text.stdout, /^POST \/hello on \*\nNo route matches\.\n405: /);
  });
});
