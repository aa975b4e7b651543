/**
 * A hostile module that tries to escape through the module object, the network and JavaScript. Each
 * attempt has what must refuse it: the kind of a permission, "rule" for what no grant allows,
 * "node" for Node's own permissions, "any" for any error, or the texts that it may get instead of
 * an error. `GET /try` responds with the outcomes as JSON.
 */
import childProcess from "node:child_process";
import cluster from "node:cluster";
import dgram from "node:dgram";
import dns from "node:dns";
import { once } from "node:events";
import fs from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import { createRequire, register } from "node:module";
import net from "node:net";
import { join } from "node:path";
import tls from "node:tls";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";

export const depends = ["http", "helper"];
export const options = { stranger_facts: { type: "object", describe: "What it knows of its host." } };

/** Milliseconds for one attempt. */
const PATIENCE = 20_000;

const connected = (socket) => once(socket, "connect").then(() => "connected");
const finished = (child) =>
  new Promise((resolve, reject) => child.once("error", reject).once("exit", (code) => resolve(`exit ${code}`)));
const inWorker = (code, more = {}) =>
  new Promise((resolve, reject) => {
    const text = `const { parentPort } = require("node:worker_threads");
      Promise.resolve().then(() => (${code})()).then(
        (value) => parentPort.postMessage({ value: String(value) }),
        ({ code, message, permission }) => parentPort.postMessage({ code, message, permission }));`;
    const worker = new Worker(text, { eval: true, ...more });
    worker.once("error", reject).once("message", ({ value, ...error }) => {
      if (value === undefined) reject(Object.assign(new Error(error.message), error));
      else resolve(value);
    });
  });
const fetched = (url, more) =>
  fetch(url, more).then(
    (response) => response.text(),
    (error) => {
      throw error.cause ?? error;
    },
  );

export default (module) => {
  const facts = module.get_option("stranger_facts");
  const helper = module.depends("helper");
  const { data, config, plugins, port, admin, granted, name } = facts;
  const tokens = join(data, "tokens.json");
  const read = (file) => fs.readFileSync(file, "utf8");

  const attempts = {
    options: {
      "reads a secret option of another module": ["options", () => module.get_option("vault_key")],
      "reads an option of the host": ["options", () => module.get_option("http_ports")],
      "reads the URL of the host": ["options", () => module.http_url()],
      "reads the grants of all modules": ["options", () => module.get_option("modules")],
      "reads the options of virtual hosts": ["options", () => module.get_option("hosts")],
      "reads an option as a text": ["options", () => module.get_option_string("vault_key")],
      "reads an option as a list": ["options", () => module.get_option_array("vault_key")],
      "reads an option by the name of a prototype": [["undefined"], () => module.get_option("stranger___proto__")],
      "reads the config file": ["node", () => read(config)],
      "changes the config file": ["node", () => fs.writeFileSync(config, "{}")],
      "reads the earlier config file": ["node", () => read(`${config}.1`)],
      "reads an option by the environment": [["undefined"], () => process.env.MODHOST_VAULT_KEY],
      "reads a variable that is not granted": [["undefined"], () => process.env.PATH],
      "reads the environment of its host": ["node", () => read(`/proc/${process.ppid}/environ`)],
      "reads the environment in a worker": [
        ["undefined"],
        () => inWorker("() => process.env.PATH", { env: { ...process.env } }),
      ],
      "loads a file of variables": ["any", () => process.loadEnvFile(config)],
    },
    tokens: {
      "identifies a token": ["rule", () => module.tokens.identify({ headers: {} })],
      "authorizes a request": ["rule", () => module.tokens.authorize({ headers: {} }, { kind: "admin" })],
      "reads the token store": ["node", () => read(tokens)],
      "removes the token store": ["node", () => fs.rmSync(tokens)],
      "appends to the token store": ["node", () => fs.appendFileSync(tokens, " ")],
      "links to the token store": ["any", () => fs.symlinkSync(tokens, join(module.data_path(), "tokens"))],
      "links the token store into its folder": ["any", () => fs.linkSync(tokens, join(module.data_path(), "hard"))],
      "imports the token store": ["any", () => import(pathToFileURL(tokens).href, { with: { type: "json" } })],
      "requires the token store": ["any", () => createRequire(import.meta.url)(tokens)],
      "declares scopes after it is loaded": [
        "rule",
        () => module.provides("token-scope", { kind: "admin", help: "", accesses: {} }),
      ],
      "declares scopes with functions": [
        "rule",
        () => module.provides("token-scope", { kind: "evil", help: "", parse: () => ({}) }),
      ],
    },
    routes: {
      "provides a port service": ["rule", () => module.provides("net", { name: "http", onconnect() {} })],
      "provides operations of the Admin API": ["rule", () => module.provides("admin", { name: "evil" })],
      "provides metrics of others": ["rule", () => module.provides("metrics", { collect: () => [] })],
      "handles the apps of others": [
        "rule",
        () =>
          module.handle_items(
            "http-provider",
            () => undefined,
            () => undefined,
          ),
      ],
      "adds an item of the host": ["rule", () => module.add_item("net-provider", { name: "http", onconnect() {} })],
      "hooks the requests of others": ["rule", () => module.hook("http-finished", () => undefined)],
      "hooks the errors of others": ["rule", () => module.hook("http-error", () => undefined)],
      "hooks an event of another module": ["rule", () => module.hook("vault-event", () => undefined)],
      "announces an event of the host": [
        "rule",
        () => module.announce_event("config-changed", { options: ["vault_key"] }),
      ],
      "announces an event of another module": ["rule", () => module.announce_event("vault-event", 1)],
      "fires an event": ["rule", () => module.fire_event("http-error", {})],
      "operates the server": ["rule", () => module.server.reload("vault")],
      "stops the server": ["rule", () => module.stop_server()],
      "gets the keys of certificates": ["rule", () => module.tls_options()],
      "shares tables with others": ["rule", () => module.shared("/vault")],
      "learns the files of other modules": [
        ["[]"],
        () =>
          JSON.stringify(
            module
              .modules()
              .filter(
                ({ name: of, file, note, permissions }) =>
                  of !== "stranger" && (file ?? note ?? permissions) !== undefined,
              ),
          ),
      ],
    },
    calls: {
      "depends on another module": ["rule", () => module.depends("vault")],
      "calls a function that is not granted": ["call", () => helper.secret()],
      "reads a value of another module": [["undefined"], () => helper.key],
      "calls a function of an object that is not granted": ["call", () => helper.inner.secret()],
      "gets the constructor of a function": [
        ["undefined"],
        () => helper.double.constructor("return process.env.PATH")(),
      ],
      "calls with an object that cannot be copied": ["any", () => helper.double({ toString: () => "x" })],
      "loads a module by its name": ["any", () => module.import_named("vault")],
      "loads the code of another module": ["any", () => import(pathToFileURL(join(plugins, "mod_vault.js")).href)],
      "reads the code of another module": ["node", () => read(join(plugins, "mod_vault.js"))],
      "changes its own code": ["node", () => fs.writeFileSync(import.meta.filename, "")],
      "adds a module": ["node", () => fs.writeFileSync(join(plugins, "mod_next.js"), "")],
      "reads a resource of another module": ["node", () => module.load_resource("../mod_vault.js")],
      "changes a package": ["node", () => fs.writeFileSync(createRequire(import.meta.url).resolve("modhost"), "")],
      "registers a loader for others": [
        "any",
        async () => {
          register(
            `data:text/javascript,${encodeURIComponent('import fs from "node:fs"; export function initialize() { fs.readFileSync("/etc/passwd"); }')}`,
          );
          await import("data:text/javascript,export default 1");
        },
      ],
    },
    data: {
      "reads the data of another module": ["node", () => read(join(data, "module_data/vault/secret.txt"))],
      "lists the data of the server": ["node", () => fs.readdirSync(data)],
      "writes to the data of the server": ["node", () => fs.writeFileSync(join(data, "evil"), "")],
      "reads by dots from its data folder": ["node", () => read(`${module.data_path()}/../vault/secret.txt`)],
      "reads by a stream": ["node", () => once(fs.createReadStream(tokens), "data")],
      "reads by a blob": ["any", async () => (await fs.openAsBlob(tokens)).text()],
      "reads by promises": ["node", () => fs.promises.readFile(tokens, "utf8")],
      "copies the data of another module": [
        "node",
        () => fs.cpSync(join(data, "module_data/vault"), join(module.data_path(), "copy"), { recursive: true }),
      ],
      "opens a folder": ["node", () => fs.opendirSync(data)],
      "attaches a database": [
        "any",
        async () => {
          const { DatabaseSync } = await import("node:sqlite");
          new DatabaseSync(":memory:").exec(`attach '${join(data, "evil.sqlite")}' as x; create table x.y(z)`);
        },
      ],
      "loads an extension of SQLite": [
        "any",
        async () => {
          const { DatabaseSync } = await import("node:sqlite");
          new DatabaseSync(":memory:", { allowExtension: true }).loadExtension(tokens);
        },
      ],
      "writes a heap snapshot": ["any", async () => (await import("node:v8")).writeHeapSnapshot(join(data, "heap"))],
      "writes a report": [
        "any",
        () => {
          process.report.directory = data;
          process.report.writeReport("evil.json");
          if (!fs.existsSync(join(data, "evil.json"))) throw Object.assign(new Error("no report"), { code: "NONE" });
        },
      ],
      "asks what it may read": [["false"], () => process.permission.has("fs.read", tokens)],
    },
    network: {
      "connects to the Admin API": ["connect", () => fetched(`http://127.0.0.1:${admin}/admin/api/tokens`)],
      "connects to the dashboard by a name": ["connect", () => fetched(`http://localhost:${admin}/dashboard`)],
      "connects to the dashboard by IPv6": ["connect", () => fetched(`http://[::1]:${admin}/dashboard`)],
      "connects by an address in IPv6": ["connect", () => connected(net.connect(admin, "::ffff:127.0.0.1"))],
      "connects by a short address": ["connect", () => connected(net.connect(admin, "127.1"))],
      "connects by a number": ["connect", () => connected(net.connect(admin, "2130706433"))],
      "connects by a number in hexadecimal": ["connect", () => connected(net.connect(admin, "0x7f000001"))],
      "connects by an octal address": ["connect", () => connected(net.connect(admin, "0177.0.0.1"))],
      "connects to the address of no host": ["connect", () => connected(net.connect(admin, "0.0.0.0"))],
      "connects to the empty address of IPv6": ["connect", () => connected(net.connect(admin, "::"))],
      "connects with a final dot": ["connect", () => connected(net.connect(admin, "localhost."))],
      "connects with spaces around": ["connect", () => connected(net.connect(admin, " 127.0.0.1 "))],
      "connects with a zero byte": ["connect", () => connected(net.connect(admin, `127.0.0.1\0.example.org`))],
      "connects with a zone": ["connect", () => connected(net.connect(admin, "fe80::1%lo"))],
      "connects to the RPC of a node": [
        "connect",
        () => fetched("http://127.0.0.1:5001/api/v0/id", { method: "POST" }),
      ],
      "connects to the own server": ["connect", () => fetched(`http://127.0.0.1:${port}/vault`)],
      "connects to the metadata of a cloud": ["connect", () => connected(net.connect(80, "169.254.169.254"))],
      "connects to a private address": ["connect", () => connected(net.connect(80, "10.0.0.1"))],
      "connects to the Internet": ["connect", () => connected(net.connect(443, "1.1.1.1"))],
      "connects to another port of a granted host": ["connect", () => connected(net.connect(admin, "127.0.0.1"))],
      "connects by a granted name that leads to this machine": ["any", () => connected(net.connect(admin, name))],
      "follows a redirect": ["connect", () => fetched(`http://127.0.0.1:${granted}/redirect`)],
      "follows a redirect with a body": [
        "connect",
        () => fetched(`http://127.0.0.1:${granted}/redirect`, { method: "POST", body: "x" }),
      ],
      "connects by TLS": [
        "connect",
        () => once(tls.connect({ host: "127.0.0.1", port: admin, rejectUnauthorized: false }), "secureConnect"),
      ],
      "connects by HTTP/2": [
        "connect",
        async () => {
          const session = http2.connect(`http://127.0.0.1:${admin}`);
          const failed = new Promise((_, reject) => session.once("error", reject));
          const responded = once(session.request({ ":path": "/dashboard" }), "response");
          await Promise.race([responded, failed]);
        },
      ],
      "connects by an agent of its own": [
        "connect",
        () => once(http.get({ host: "127.0.0.1", port: admin, agent: new http.Agent() }), "response"),
      ],
      "connects by its own connection of an agent": [
        "connect",
        () => once(http.get({ createConnection: () => net.connect(admin, "127.0.0.1") }), "response"),
      ],
      "connects by a websocket": [
        "any",
        () =>
          new Promise((resolve, reject) => {
            const socket = new WebSocket(`ws://127.0.0.1:${admin}/`);
            socket.onopen = () => resolve("open");
            socket.onerror = () => reject(Object.assign(new Error("refused"), { code: "ERROR" }));
          }),
      ],
      "connects from a worker": [
        "any",
        () =>
          inWorker(`async () => {
        const socket = require("node:net").connect(${admin}, "127.0.0.1");
        await require("node:events").once(socket, "connect");
      }`),
      ],
      "connects to the admin socket": ["rule", () => connected(net.connect(join(data, "admin.sock")))],
      "connects to an abstract socket": ["rule", () => connected(net.connect("\0modhost"))],
      "connects a socket of TLS itself": [
        "rule",
        () => new tls.TLSSocket(new net.Socket()).connect(admin, "127.0.0.1"),
      ],
      "resolves a name": ["rule", () => dns.promises.lookup("example.org")],
      "resolves by a resolver of its own": [
        "rule",
        () => {
          const resolver = new dns.promises.Resolver();
          resolver.setServers(["127.0.0.1"]);
          return resolver.resolve4("secret.example.org");
        },
      ],
      "sends by UDP": ["rule", () => dgram.createSocket("udp4").send("x", admin, "127.0.0.1")],
      "listens on a port": ["listen", () => once(net.createServer().listen(18_125), "listening")],
      "listens on a privileged port": ["listen", () => once(http.createServer().listen(80, "0.0.0.0"), "listening")],
      "listens on the port of its host": [
        "listen",
        () => once(net.createServer().listen(admin, "127.0.0.2"), "listening"),
      ],
      "listens on a port that the system chooses": ["rule", () => net.createServer().listen(0)],
      "listens on a Unix socket": ["rule", () => net.createServer().listen(join(module.data_path(), "s"))],
      "listens on a descriptor": ["rule", () => net.createServer().listen({ fd: 4 })],
      "opens more connections than it may": [
        "any",
        async () => {
          const open = Array.from({ length: 400 }, () => net.connect(granted, "127.0.0.1"));
          try {
            await Promise.all(open.map(connected));
          } finally {
            for (const socket of open) socket.on("error", () => undefined).destroy();
          }
        },
      ],
    },
    processes: {
      "spawns a program": ["node", () => finished(childProcess.spawn("/bin/true"))],
      "runs a shell": ["node", () => childProcess.execSync("id")],
      "runs a file": ["node", () => childProcess.execFileSync(process.execPath, ["-p", "1"])],
      forks: ["node", () => finished(childProcess.fork(import.meta.filename))],
      "forks a cluster": ["any", () => finished(cluster.fork())],
      "signals its host": ["any", () => process.kill(process.ppid, 0)],
      "starts the debugger of its host": ["any", () => process._debugProcess(process.ppid)],
      "becomes another user": ["any", () => process.setuid(process.getuid() === 1 ? 2 : 1)],
      "opens an inspector": ["any", async () => (await import("node:inspector")).open(0)],
      "inspects the main thread of a worker": [
        "any",
        () =>
          inWorker(`() => {
        const session = new (require("node:inspector").Session)();
        session.connectToMainThread();
      }`),
      ],
      "starts a worker without permissions": [
        "any",
        () =>
          inWorker(`() => require("node:fs").readFileSync(${JSON.stringify(tokens)}, "utf8")`, {
            execArgv: ["--no-permission"],
          }),
      ],
      "reads in a worker": [
        "any",
        () => inWorker(`() => require("node:fs").readFileSync(${JSON.stringify(tokens)}, "utf8")`),
      ],
      "reads by a binding of Node": ["any", () => process.binding("fs").readFileUtf8(tokens, 0)],
      "spawns by a binding of Node": [
        "any",
        () => {
          const { error } = process.binding("spawn_sync").spawn({ file: "/bin/true", args: ["true"], stdio: [] });
          if (error) throw Object.assign(new Error("refused"), { code: `ERRNO${error}` });
        },
      ],
      "connects by a binding of Node": [
        "any",
        () => {
          const { TCP } = process.binding("tcp_wrap");
          const error = new TCP(0).bind("127.0.0.1", 0);
          if (error) throw Object.assign(new Error("refused"), { code: `ERRNO${error}` });
        },
      ],
      "loads an addon": ["any", () => process.dlopen({ exports: {} }, join(module.data_path(), "addon.node"))],
      "makes native calls": ["any", () => process.getBuiltinModule("node:ffi").dlopen(null, {})],
      "runs a program of WASI": [
        "node",
        async () => {
          const { WASI } = await import("node:wasi");
          new WASI({ version: "preview1", preopens: { "/": "/" } });
        },
      ],
      "changes its folder": ["any", () => process.chdir(data)],
    },
  };

  const tried = async ([wanted, attempt]) => {
    const late = Promise.withResolvers();
    const timer = setTimeout(() => late.reject(Object.assign(new Error("no end"), { code: "LATE" })), PATIENCE);
    try {
      const value = await Promise.race([Promise.resolve().then(attempt), late.promise]);
      return { wanted, got: String(value).slice(0, 500) };
    } catch (error) {
      const { code, message, permission } = error ?? {};
      return { wanted, code: String(code ?? ""), message: String(message), permission };
    } finally {
      clearTimeout(timer);
    }
  };

  module.provides("http", {
    route: {
      GET: () => "fine",
      "GET /try": async () => {
        const outcomes = [];
        for (const [kind, entries] of Object.entries(attempts))
          for (const [name, entry] of Object.entries(entries)) outcomes.push({ kind, name, ...(await tried(entry)) });
        return JSON.stringify(outcomes);
      },
      "GET /seen": ({ request }) => JSON.stringify([request.headers, request.token]),
    },
  });
};
