import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { glob, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import http from "node:http";
import https from "node:https";
import { isBuiltin } from "node:module";
import { basename, join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";
import { Program, withNode } from "#test/unit/core/cli/spawned.ts";
import { write } from "#test/unit/core/module/support.ts";
import { install, type Packed, pack, run } from "./packed.ts";

let packed: Packed;
let project: string;
const inPackage = (path: string) => join(project, "node_modules/modhost", path);

before(async () => {
  packed = await pack();
  project = await install(packed, ["@types/node", "typescript-native"]);
});
after(() => packed?.[Symbol.asyncDispose]());

interface Component {
  readonly group?: string;
  readonly name: string;
  readonly version: string;
  readonly licenses: readonly unknown[];
  readonly hashes: readonly unknown[];
}

/** Returns the names of packages that built code imports or requires, at its start or later. */
function importedPackages(text: string): string[] {
  const imports =
    /(?:\b(?:import|export)\b[\s\w$*{},]*\bfrom|(?<!')\bimport|\b(?:import|importLate|importMeta\.resolve|require\d*|require\d*\.resolve)\(|createRequire\d*\([^()]*\)\()\s*"((?:@[a-z0-9-]+\/)?[a-z0-9][\w.-]*)(?:\/[\w./-]+)?"/g;
  const found = text.matchAll(imports);
  return [...found].map(([, each = ""]) => each).filter((each) => !isBuiltin(each));
}

describe("the tarball", () => {
  test("is made from the build that was made just before", async () => {
    const { scripts } = JSON.parse(await readFile(new URL("../../../package.json", import.meta.url), "utf8"));
    assert.equal(scripts.prepack, "npm run build");
    assert.equal(scripts.build, "node config/build/build.mjs");
  });

  test("contains the program, the files that it reads, and nothing else", () => {
    const kinds = packed.files.map((path) => {
      const page = /^dist\/modules\/\w+\/pages\/.*(\.\w+)$/.exec(path);
      if (page !== null) return `dist/modules pages ${page[1]}`;
      if (path.startsWith("dist/"))
        return path
          .replace(/^dist\/(core|modules)\/.*?(\.d\.ts|\.js)$/, "dist/$1 $2")
          .replace(/(\/declarations)\/.*/, "$1");
      return path
        .replace(/^(config\/deploy|core\/cli\/scaffold|docs)\/.*$/, "$1")
        .replace(/^modules\/\w+\//, "modules ");
    });
    assert.deepEqual([...new Set(kinds)].sort(), [
      "CHANGELOG.md",
      "CONTRIBUTING.md",
      "LICENSE",
      "README.md",
      "config/default.yaml",
      "config/deploy",
      "config/modhost.config.sample.yaml",
      "config/modhost.schema.json",
      "core/cli/launch.mjs",
      "core/cli/scaffold",
      "dist/LICENSES",
      "dist/core .d.ts",
      "dist/core .js",
      "dist/declarations",
      "dist/modules .d.ts",
      "dist/modules .js",
      "dist/modules pages .css",
      "dist/modules pages .js",
      "dist/program.js",
      "dist/program.mjs",
      "dist/program_node.js",
      "dist/program_packages.js",
      "dist/sbom.cdx.json",
      "docs",
      "modules README.md",
      "modules cli/launch_node.mjs",
      "package.json",
    ]);
  });

  test("has every page and image that its README links to", async () => {
    const readme = await readFile(inPackage("README.md"), "utf8");
    const links = [...readme.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map(([, link = ""]) => link);
    assert.ok(links.length > 20);
    assert.deepEqual(
      links.filter((link) => !existsSync(inPackage(link))),
      [],
    );
  });

  test("has every file that its exports name", async () => {
    const { exports } = JSON.parse(await readFile(inPackage("package.json"), "utf8"));
    for (const [path, target] of Object.entries<string | Record<string, string>>(exports)) {
      // Only the targets for a clone are not shipped.
      const { source: _, ...targets } = typeof target === "string" ? { default: target } : target;
      for (const file of Object.values(targets)) assert.ok(existsSync(inPackage(file)), `${path} names ${file}`);
    }
  });
});

describe("the manifest", () => {
  const read = async (path: string) => JSON.parse(await readFile(inPackage(path), "utf8"));
  const installed = (name: string) =>
    readFile(new URL(`../../../node_modules/${name}/package.json`, import.meta.url), "utf8");
  /**
   * Packages that a library uses only if they happen to be installed. Without them it works as
   * well.
   */
  const tried = ["bufferutil", "utf-8-validate", "msgpackr-extract", "iconv-lite", "kerberos", "node-gyp"];

  test("is compared with imports of all forms", () => {
    const built = `import{a}from"ws";import "b";require("koa/lib");require2.resolve("c/x.css");importLate("@d/e");importMeta.resolve("f");
      createRequire(x)("late");import("g").then();import fs from"node:fs";require("./h.js");import{i}from"../i.js";
      import j,{k as l}from"j";export*from"m";text='it was changed from "false"';
      throw new Error("Please add 'import "k"' to the top.");`;
    assert.deepEqual(importedPackages(built), ["ws", "b", "koa", "c", "@d/e", "f", "late", "g", "j", "m"]);
  });

  test("depends on the packages that the program imports, and on nothing else", async () => {
    const { dependencies, optionalDependencies, peerDependencies = {} } = await read("package.json");
    const quic = JSON.parse(await installed("@chainsafe/libp2p-quic")).optionalDependencies;
    const ofNode = Object.keys(optionalDependencies).filter((name) => !Object.hasOwn(quic, name));
    for (const [name, version] of Object.entries(quic)) assert.equal(optionalDependencies[name], version);
    const imported = new Set<string>();
    for await (const file of glob("dist/**/*.{js,mjs}", {
      cwd: inPackage("."),
      exclude: (path) => /\bpages\b/.test(path),
    })) {
      for (const name of importedPackages(await readFile(inPackage(file), "utf8"))) imported.add(name);
    }
    // Packages with machine code look for variants for many machines, and some of these do not
    // exist.
    const own = [...imported].filter(
      (name) => !tried.includes(name) && name !== "modhost" && !name.startsWith("@chainsafe/libp2p-quic-"),
    );
    assert.deepEqual(own.sort(), [...Object.keys({ ...dependencies, ...peerDependencies }), ...ofNode].sort());
    const byHost = importedPackages(await readFile(inPackage("dist/program.js"), "utf8"));
    assert.deepEqual(
      ofNode.filter((name) => byHost.includes(name)),
      [],
      "the host imports a package that npm may leave out",
    );
  });

  test("has no overrides, because npm would not apply them when others install the package", async () => {
    assert.equal((await read("package.json")).overrides, undefined);
  });

  test("comes with a bill of materials that names the bundled packages with version and licence", async () => {
    const text = await readFile(inPackage("dist/sbom.cdx.json"), "utf8");
    assert.equal(await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(text), null);
    const { components } = JSON.parse(text);
    const { dependencies } = await read("package.json");
    const names = new Set(components.map(({ group, name }: Component) => (group ? `${group}/${name}` : name)));
    for (const name of ["koa", "@koa/router", "koa-static", "formidable", "lilconfig", "libp2p"]) {
      assert.ok(names.has(name), name);
      assert.ok(!(name in dependencies), name);
    }
    const licences = await readFile(inPackage("dist/LICENSES"), "utf8");
    for (const { group, name, version, licenses, hashes } of components as Component[]) {
      assert.ok(licenses.length === 1 && hashes.length === 1, name);
      assert.ok(licences.includes(`${group ? `${group}/` : ""}${name} ${version}`), name);
    }
  });

  test("has a page that explains each of its packages", async () => {
    const page = await readFile(new URL("../../../docs/reference/packages.md", import.meta.url), "utf8");
    const [, within = "", development = ""] = page.split(/^## /m);
    const named = (text: string) => {
      const cells = [...text.matchAll(/^\| (.+?) \|/gm)].map(([, cell]) => cell);
      return [...cells.join().matchAll(/`([^`]+)`/g)].map(([, name]) => name as string);
    };
    const { components } = await read("dist/sbom.cdx.json");
    const contained = new Set(components.map(({ group, name }: Component) => (group ? `${group}/${name}` : name)));
    const { dependencies, optionalDependencies, devDependencies, peerDependencies = {} } = await read("package.json");
    const isQuic = (name: string) => name.startsWith("@chainsafe/libp2p-quic-");
    const ofNode = Object.fromEntries(Object.entries(optionalDependencies).filter(([name]) => !isQuic(name)));
    const direct = Object.keys(devDependencies).filter((name) => contained.has(name) && !name.startsWith("@libp2p/"));
    assert.deepEqual(
      direct.filter((name) => !named(within).includes(name)),
      [],
    );
    assert.deepEqual(
      named(within).filter((name) => !contained.has(name)),
      [],
    );
    const needed = Object.keys({ ...dependencies, ...ofNode, ...peerDependencies });
    assert.deepEqual(
      needed.filter((name) => !named(development).includes(name)),
      [],
    );
  });
});

describe("an installed package", () => {
  test("has a program that prints its version", async () => {
    const { version } = JSON.parse(await readFile(inPackage("package.json"), "utf8"));
    assert.equal(await run("node_modules/.bin/modhost", ["--version"], project), `${version}\n`);
  });

  test("serves loose modules in TypeScript and CommonJS, and npm packages of either kind", async () => {
    const moduleBody = (kind: string) =>
      `module.depends("http"); module.provides("http", { route: { GET: "${kind}" } });`;
    const manifest = (more: object) => JSON.stringify({ version: "1.0.0", modhost: { kind: "module" }, ...more });
    await write(project, {
      "served/modhost.config.yaml":
        "plugin_paths: [plugins]\nmodules_enabled: [http, http_files, typed, common, folder, apart, esm, cjs]\nhttp_log: false\n",
      "served/plugins/mod_typed.ts": `
        import { defineModule, HttpError, ModhostError } from "modhost";
        import type { Module } from "modhost/types";
        const error: Error = new HttpError(409);
        const refuse = () => { throw new HttpError(418, "as the host knows it"); };
        export default defineModule({
          load(module: Module) { module.provides("http", { route: { GET: "typed", "GET /refused": refuse } }); },
        });`,
      "served/plugins/mod_apart.ts": `
        import { HttpError } from "modhost";
        export const isolated = true;
        export default function (module) { new HttpError(409); ${moduleBody("apart")} }`,
      "served/plugins/mod_common.cjs": `
        const { HttpError } = require("modhost");
        module.exports = function (module) { new HttpError(409); ${moduleBody("common")} };`,
      "served/plugins/mod_folder/package.json": JSON.stringify({ type: "commonjs", main: "main.js" }),
      "served/plugins/mod_folder/main.js": `module.exports = function (module) { ${moduleBody("folder")} };`,
      "node_modules/modhost-mod-esm/package.json": manifest({ type: "module", exports: "./main.js" }),
      "node_modules/modhost-mod-esm/main.js": `
        import { formdecode } from "modhost/net/http";
        export default function (module) { formdecode(""); ${moduleBody("esm")} }`,
      "node_modules/modhost-mod-cjs/package.json": manifest({ type: "commonjs", main: "main.js" }),
      "node_modules/modhost-mod-cjs/main.js": `
        const { formdecode } = require("modhost/net/http");
        module.exports = function (module) { formdecode(""); ${moduleBody("cjs")} };`,
    });
    await using program = new Program(join(project, "served"), inPackage("core/cli/launch.mjs"));
    const { started, kill, ended } = await program.serve(["run"]);
    assert.deepEqual(started.failed, []);
    const port = started.ports.find(({ scheme }) => scheme === "http")?.port;
    for (const kind of ["typed", "common", "folder", "apart", "esm", "cjs"]) {
      assert.equal(await (await fetch(`http://127.0.0.1:${port}/${kind}`)).text(), kind);
    }
    // An `HttpError` of a second copy of the package would cause a 500.
    assert.equal((await fetch(`http://127.0.0.1:${port}/typed/refused`)).status, 418);
    kill("SIGTERM");
    assert.equal((await ended).code, 0);
  });

  test("starts with the compile cache of an earlier start, unless it is damaged", async () => {
    const cache = join(project, "compiled");
    const env = { ...withNode, NODE_COMPILE_CACHE: cache };
    const cacheFiles = async () => {
      const files = await readdir(cache, { recursive: true });
      return files.filter((file) => basename(file).startsWith("modhost-")).map((file) => join(cache, file));
    };
    const version = async () => {
      await using program = await Program.in({}, inPackage("core/cli/launch.mjs"));
      const { code, stdout, stderr } = await program.run(["--version"], env);
      assert.equal(code, 0, stderr);
      return stdout;
    };
    const first = await version();
    const [file = ""] = await cacheFiles();
    const made = await stat(file);
    assert.equal(await version(), first);
    assert.deepEqual([await cacheFiles(), (await stat(file)).ino], [[file], made.ino]);
    const bytes = await readFile(file);
    bytes[bytes.length >> 1] = ~(bytes[bytes.length >> 1] ?? 0);
    await writeFile(file, bytes);
    assert.equal(await version(), first);
    // The cache file has been made again.
    assert.notEqual((await stat(file)).ino, made.ino);
    assert.equal(await version(), first);
  });

  test("loads the code of elliptic curves when a key first needs it", async () => {
    // That code loads this module of Node.js.
    const loaded = 'process.moduleLoadList.includes("NativeModule internal/crypto/webcrypto")';
    const program = JSON.stringify(pathToFileURL(inPackage("dist/program.mjs")));
    const code = `const { part } = await import(${program});
      part("modules/mod_node/index");
      console.log(${loaded});`;
    const said = await run(process.execPath, ["--input-type=module", "--eval", code], project);
    assert.equal(said, "false\n");
  });

  test("runs without a configuration, by its embedded default", async () => {
    await using program = await Program.in({}, inPackage("core/cli/launch.mjs"));
    const report = JSON.parse((await program.run(["check"], withNode)).stdout);
    assert.deepEqual([report.ok, report.problems], [true, []]);
    assert.ok(report.modules.length > 3);
  });

  test("runs the node as a program, even after a crash, and in the host together with the pinning service", async () => {
    await write(project, {
      "node/text.txt": "packed",
      "node/modhost.config.yaml":
        "modules_enabled: [http, http_api, http_pinning]\nhttps_ports: []\napi_offline: true\n",
    });
    const env = { ...withNode, IPFS_PATH: join(project, "node", "repo") };
    const node = new Program(join(project, "node"), inPackage("modules/mod_http_api/cli/launch_node.mjs"));
    const said = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await node.run(args, env);
      assert.equal(code, 0, `${args.join(" ")}: ${stdout}${stderr}`);
      return stdout.trim();
    };
    await said("init", "--profile=test");
    const cid = await said("add", "-Q", "text.txt");
    const daemon = await node.serve(["daemon", "--offline"], env);
    daemon.kill("SIGKILL");
    await daemon.ended;
    assert.equal(await said("cat", cid), "packed");
    assert.match(await said("key", "gen", "--type=secp256k1", "curved"), /^k/);
    // The command lists bundled packages as well as installed ones.
    const packages = (await said("version", "deps")).split("\n").map((line) => line.replace(/^(.+)@.*$/, "$1"));
    assert.deepEqual(
      ["modhost", "koa", "lmdb", "fastify"].map((name) => packages.includes(name)),
      [true, true, true, false],
    );

    await using host = new Program(join(project, "node"), inPackage("core/cli/launch.mjs"));
    const { started, kill, ended } = await host.serve(["run"], withNode);
    assert.deepEqual(started.failed, []);
    assert.ok(started.apps.some(({ module }) => module === "http_pinning"));
    kill("SIGTERM");
    assert.equal((await ended).code, 0);
    // The process that serves a mount runs a file of its own.
    assert.ok(existsSync(inPackage("dist/modules/mod_node/mount/mount_child.js")));
  });

  test("serves without its optional packages, and logs one line with the package that the node needs and the command to install it", async () => {
    const lean = await install(packed, [], { lean: true });
    const launcher = join(lean, "node_modules/modhost/core/cli/launch.mjs");
    await write(lean, {
      "default/mod_hello.mjs": `export default (module) => module.provides("http", { route: { "GET /": () => "Hello" } });`,
      "named/modhost.config.yaml": "modules_enabled: [http, http_health, node]\nhttp_log: false\n",
    });
    await using host = new Program(join(lean, "default"), launcher);
    const running = await host.serve(["run", "./mod_hello.mjs"], { ...withNode, MODHOST_HTTPS_PORTS: "0" });
    assert.deepEqual(running.started.failed, []);
    const served = new Set<string>();
    for (const { scheme = "", port } of running.started.ports) {
      if (served.has(scheme)) continue;
      served.add(scheme);
      const client = scheme === "https" ? https : http;
      const [response] = await once(
        client.get({ host: "127.0.0.1", port, path: "/hello/", rejectUnauthorized: false }),
        "response",
      );
      assert.equal(await text(response), "Hello");
    }
    assert.deepEqual([...served].sort(), ["http", "https"]);
    running.kill("SIGTERM");
    const { code, stderr } = await running.ended;
    assert.deepEqual([code, stderr.includes("lmdb")], [0, false]);

    await using named = new Program(join(lean, "named"), launcher);
    const other = await named.serve(["run"], withNode);
    assert.deepEqual(
      other.started.failed.map(({ name }) => name),
      ["node"],
    );
    const port = other.started.ports[0]?.port;
    assert.equal((await fetch(`http://127.0.0.1:${port}/health/live`)).status, 200);
    other.kill("SIGTERM");
    const lines = (await other.ended).stderr.split("\n").filter((line) => line.includes("lmdb"));
    const said =
      "The module node needs the package lmdb, which is not installed: npm install --include=optional installs it";
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).msg),
      [said],
    );
    const command = await named.run(["node", "init"]);
    assert.deepEqual([command.code, command.stderr], [1, `Error: ${said}\n`]);
    const help = await named.run(["help", "node"]);
    assert.deepEqual([help.code, help.stderr], [1, `modhost: ${said.replace("node", "http_api")}\n`]);
    const completion = await named.run(["completion", "bash"]);
    assert.equal(completion.code, 0, completion.stderr);
    assert.match(completion.stdout, /\['\.token'\]/);
    const { checks } = JSON.parse((await named.run(["doctor"])).stdout);
    assert.deepEqual(checks.find(({ check }: { check: string }) => check === "commands of modules").findings, []);
  });

  test("can be required", async () => {
    await write(project, {
      "required.cjs": `
        const { createHost, HttpError } = require("modhost");
        const { createTestHost } = require("modhost/testing");
        const { request } = require("modhost/net/http");
        require("modhost/types");
        const server = require("modhost/net/http/server");
        console.log([createHost, HttpError, createTestHost, request].map((each) => typeof each).join(), Object.keys(server).length > 0);`,
    });
    assert.equal(await run(process.execPath, ["required.cjs"], project), "function,function,function,function true\n");
  });

  test("has declarations that compile under all conditions of the compiler", async () => {
    await write(project, {
      "types/tsconfig.json": JSON.stringify({
        compilerOptions: {
          target: "es2024",
          lib: ["esnext"],
          module: "nodenext",
          types: ["node"],
          strict: true,
          noEmit: true,
          skipLibCheck: false,
        },
      }),
      "types/module.ts": `
        import { createHost, defineConfig, defineModule, type Host } from "modhost";
        import { formdecode, request } from "modhost/net/http";
        import * as server from "modhost/net/http/server";
        import { createNode, type Node } from "modhost/node";
        import type { HttpFiles } from "modhost/http_files";
        import type { HttpGateway } from "modhost/http_gateway";
        import { createTestHost } from "modhost/testing";
        import type { HttpEvent, Module, TokenScopeKind } from "modhost/types";

        export const config = defineConfig({ http_ports: [8080] });
        export const host: Host = createHost({ config });
        export const started = createTestHost();
        export const table: object = server;
        export const node: Promise<Node> = createNode({ repo: "repo" });
        const rooms: TokenScopeKind<{ readonly kind: "room"; readonly path: string }, string> = {
          kind: "room",
          forms: [{ form: "room:/PATH", help: "rooms" }],
          parse: (text) => text.slice(5),
          covers: (path, need) => need.path.startsWith(path),
          describe: (need) => need.path,
        };
        export default defineModule({
          load(module: Module) {
            module.provides("token-scope", rooms);
            module.depends<HttpFiles>("http_files").serve("www");
            module.depends<HttpGateway>("http_gateway").serve_cid("/ipns/example.org");
            // @ts-expect-error: the declarations are read, and nothing has become any
            module.depends(1);
            module.provides("http", {
              route: {
                "GET /": async (event: HttpEvent) => (await request("http://localhost/")).body,
                "GET /x/*": (event: HttpEvent, rest: string) => formdecode(rest) && event.request.path,
              },
            });
          },
        });`,
      "types/common.cts": `
        import modhost = require("modhost");
        export const host: modhost.Host = modhost.createHost();`,
    });
    // The declarations themselves are checked once.
    for (const flags of [[], ["--customConditions", "source", "--skipLibCheck"]]) {
      await run("node_modules/.bin/tsc", ["-p", "types", "--singleThreaded", ...flags], project);
    }
  });
});

describe("a module made by modhost new", () => {
  for (const flags of [[], ["--js"]]) {
    test(`passes its own tests and can be packed ${flags.join(" ")}`, async () => {
      const name = `made${flags.length}`;
      await run("node_modules/.bin/modhost", ["new", name, ...flags], project);
      const folder = join(project, `mod_${name}`);
      await symlink(join(project, "node_modules"), join(folder, "node_modules"));
      assert.match(await run("npm", ["test"], folder), /pass 2\b/);
      const packed = await run("npm", ["pack", "--dry-run", "--json", "--foreground-scripts=false"], folder);
      const [{ files }] = JSON.parse(packed.slice(packed.indexOf("[")));
      const own = flags.length > 0 ? [`mod_${name}.js`] : [`dist/mod_${name}.d.ts`, `dist/mod_${name}.js`];
      assert.deepEqual(files.map(({ path }: { path: string }) => path).sort(), ["README.md", ...own, "package.json"]);
    });
  }
});
