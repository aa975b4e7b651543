/** Modules for `careless.test.ts` that fail outside of the calls of the host. */

/** Code that fails later without being awaited. No error has a frame of the module in its stack. */
export const ways = {
  a_socket: 'net.connect(1, "127.0.0.1")',
  a_connection:
    'const server = net.createServer((socket) => socket.on("data", fail)).listen(0, "127.0.0.1", () => net.connect(server.address().port, "127.0.0.1").end("x"))',
  a_cut_connection:
    'const server = net.createServer((socket) => socket.resume()).listen(0, "127.0.0.1", () => net.connect(server.address().port, "127.0.0.1", function () { this.resetAndDestroy(); }))',
  a_request: 'http.get("http://127.0.0.1:1/")',
  a_fetch: 'fetch("http://127.0.0.1:1/")',
  a_server: 'net.createServer().listen(1, "8.8.8.8")',
  a_datagram: 'dgram.createSocket("udp4").bind(1, "8.8.8.8")',
  a_program: 'child.spawn("/nonexistent")',
  a_child: 'child.exec("true", fail)',
  a_thread: 'new Worker("throw new Error()", { eval: true })',
  a_file: 'fs.createReadStream("/nonexistent")',
  a_callback: 'fs.stat("/", fail)',
  a_name: 'dns.lookup("127.0.0.1", fail)',
  a_stream: "new PassThrough().destroy(new Error())",
  a_target:
    'const target = new EventTarget(); target.addEventListener("a", fail); target.dispatchEvent(new Event("a"))',
  a_signal: 'AbortSignal.timeout(1).addEventListener("abort", fail)',
  a_port:
    'const { port1, port2 } = new MessageChannel(); port1.on("message", () => { port1.close(); fail(); }); port2.postMessage(1)',
  an_emitter: "setImmediate(() => new EventEmitter().emit('error', null))",
  a_timeout: "setTimeout(fail, 1)",
  a_hook: "createHook({ init: fail }).enable(); setImmediate(() => undefined)",
  a_resolution:
    'const resolver = new dns.Resolver({ tries: 1 }); resolver.setServers(["127.0.0.1:1"]); resolver.resolve("a.invalid", () => { throw new Error(); })',
  a_stack:
    "Error.prepareStackTrace = fail; setImmediate(() => { throw new Error(); }); setTimeout(() => delete Error.prepareStackTrace, 100)",
  a_tick: "process.nextTick(fail)",
  a_microtask: "queueMicrotask(fail)",
  a_rejection: "Promise.reject(null)",
  a_late_rejection: "sleep(1).then(fail)",
  a_number: "setImmediate(() => { throw 7; })",
  a_nothing: "setImmediate(() => { throw undefined; })",
  a_frozen: "setImmediate(() => { throw Object.freeze({}); })",
  a_trap:
    "setImmediate(() => { throw Object.defineProperties(new Error(), { stack: { get: fail }, message: { get: fail } }); })",
  a_proxy: "const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); setImmediate(() => { throw proxy; })",
  a_rejected_proxy: "const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); Promise.reject(proxy)",
  an_unprintable: "setImmediate(() => { throw { toString: fail, [Symbol.for('nodejs.util.inspect.custom')]: fail }; })",
  an_overflow: "const again = () => again(); setImmediate(again)",
  an_emitted_error: 'setImmediate(() => process.emit("uncaughtException", null))',
} as const;

/** Calls that would end the process. The host refuses them, and the module gets the error. */
export const ends = {
  exits: "process.exit(3)",
  really_exits: "process.reallyExit(3)",
  aborts: "process.abort()",
  kills: "process.kill(process.pid)",
  kills_later: 'setTimeout(() => process.kill(String(process.pid), "SIGKILL"), 1)',
  is_replaced: 'process.execve("/bin/true")',
  takes_errors: "process.setUncaughtExceptionCaptureCallback(() => undefined)",
  fails_in_a_domain: 'process.getBuiltinModule("node:domain").create().on("error", fail).run(() => setImmediate(fail))',
  emits_a_signal: 'process.emit("SIGTERM")',
  exits_on_errors: 'process.on("uncaughtException", () => process.exit(1)); fail()',
  throws_on_errors: 'process.on("uncaughtException", (error) => { throw error; }); setImmediate(fail)',
  throws_on_rejections: 'process.on("unhandledRejection", (error) => { throw error; }); Promise.reject(null)',
  removes_listeners: 'process.removeAllListeners("uncaughtException"); setImmediate(fail)',
  removes_all_listeners: "process.removeAllListeners(); setImmediate(fail)",
  removes_each_listener:
    'for (const one of process.listeners("uncaughtException")) process.off("uncaughtException", one); setImmediate(fail)',
  closes_the_output: 'process.stdout.end("bye\\n"); process.stderr.destroy(); setImmediate(fail)',
} as const;

const soon = 'net.connect(1, "127.0.0.1")';

/**
 * All contexts in which code of a module runs, each with a request that triggers it. Each starts
 * work that fails later.
 */
export const contexts = {
  its_evaluation: { code: "" },
  its_function: { code: `${soon};` },
  its_load: { code: `module.load = () => { ${soon}; };` },
  its_ready: { code: `module.ready = () => { ${soon}; };` },
  its_timer: { code: `module.add_timer(0, () => { ${soon}; });` },
  its_hook: { code: `module.hook("http-finished", ({ request }) => { if (request.path.endsWith("/do")) ${soon}; });` },
  its_generator: { route: `() => (async function* () { yield "a"; await sleep(1); yield "b"; ${soon}; })()` },
  its_stream: { route: `() => new Readable({ read() { ${soon}; this.push(null); } })` },
  its_trailers: {
    route: `(event) => { event.response.trailers = () => { ${soon}; return {}; }; event.response.trailer_names = ["x"]; return "a"; }`,
  },
  its_end: { route: `(event) => { event.response.on_destroy = () => { ${soon}; }; return "a"; }` },
  its_thenable: { route: `() => ({ then: (resolve) => { ${soon}; resolve("a"); } })` },
  its_koa: { middleware: `(ctx) => { ctx.res.on("finish", () => { ${soon}; }); ctx.body = "a"; }` },
  its_body: {
    middleware: `(ctx) => { ctx.req.on("end", () => { ${soon}; }).resume(); ctx.body = "a"; }`,
    method: "POST",
  },
  its_layer: {
    code: `module.provides("http-middleware", { apps: ["its_layer"], middleware: async (ctx, next) => { await next(); ${soon}; } });`,
  },
  its_health: { code: `module.provides("health", { problem: () => { ${soon}; } });`, path: "/health/ready" },
  its_operation: {
    code: `module.provides("http", { name: "its_operation_aside", default_path: "/aside", route: { GET: () => "a" }, claims: ({ path }) => { if (path.startsWith("/its_operation")) ${soon}; } });`,
  },
} as const satisfies Record<string, CodeContext>;

export interface CodeContext {
  readonly code?: string;
  readonly route?: string;
  readonly middleware?: string;
  readonly path?: string;
  readonly method?: string;
}

const imports = `import { createHook } from "node:async_hooks";
import child from "node:child_process";
import dgram from "node:dgram";
import dns from "node:dns";
import { EventEmitter } from "node:events";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import process from "node:process";
import { PassThrough, Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { MessageChannel, Worker } from "node:worker_threads";
const fail = () => { throw null; };
`;

const provide = (route: string) =>
  `module.provides("http", { streaming_uploads: true, route: { GET: () => "here", ${route} } });`;

/** Returns the source of a module whose `GET /do` runs some code. */
export function moduleDoing(code: string): string {
  return `${imports}export default (module) => { ${provide(`"GET /do": () => { ${code}; return "done"; }`)} };`;
}

/** Returns the source of a module with one of these contexts. */
export function moduleAt(name: keyof typeof contexts): string {
  const { code = "", route = '() => "done"', middleware }: CodeContext = contexts[name];
  const begun = name === "its_evaluation" ? `${soon};\n` : "";
  const provided =
    middleware === undefined
      ? provide(`"GET /do": ${route}`)
      : `module.provides("http", { middleware: ${middleware} });`;
  return `${imports}${begun}export default (module) => { ${code} ${provided} };`;
}

/**
 * Returns the source of one module with all ways. It is isolated, and \`GET /do?NAME\` runs one of
 * them.
 */
export function isolatedModule(): string {
  const all = Object.entries({ ...ways, ...ends }).map(([name, code]) => `${name}() { ${code}; }`);
  const route = `"GET /do": ({ request }) => { ways[request.url.query](); return "done"; }`;
  return `${imports}const ways = { ${all.join(",\n")} };\nexport default (module) => { ${provide(route)} };`;
}
