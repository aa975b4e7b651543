/** The works of the benchmark of the host: each row is declared here. */
import type { Subject } from "#test/bench/measure.ts";
import { anonymousBytes } from "#test/bench/node/usage.ts";
import type { Metric } from "#test/bench/report.ts";
import { helloPaths } from "#test/bench/servers/paths.ts";
import { Connections, type RequestSpec, requestBytes } from "./http1.ts";
import { Sessions } from "./http2.ts";
import { Echoes } from "./websockets.ts";

export const SMALL_FILE = { name: "10k.bin", bytes: 10 * 1024 };
export const LARGE_FILE = { name: "10m.bin", bytes: 10 * 1024 * 1024 };

const CONNECTIONS = 32;
const MANY_ROUTES = 10_000;
const IDLE = 10_000;
const SOCKETS = 1000;
const JSON_BODY = JSON.stringify({
  name: "hello",
  aim: "0.95 x Koa, 1 x Fastify",
  tags: ["a", "b", "c"],
  at: 1_234_567,
  nested: { is: true, text: "x".repeat(64) },
});

export interface HostServer {
  readonly name: string;
  /** A file of `servers/`, or "" for the package. */
  readonly file: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The path, if it differs from that of the work. */
  readonly path?: string;
}

/** The two measurements of a turn; the first one is the cost. */
export type TurnMeasurements = readonly [cost: number, other: number];

/** How a measurement is displayed. */
export type Shown = Pick<Metric<TurnMeasurements>, "digits" | "unit" | "better">;

/** Sends requests to a server over persistent connections. */
export interface Asker {
  turn(count: number): Promise<void>;
  close(): void;
}

export interface HostWork {
  readonly name: string;
  readonly aim?: string;
  readonly metrics: readonly [cost: Shown, other: Shown];
  /** The last server named modhost is compared with the others. */
  readonly servers: readonly HostServer[];
  /** Requests or connections of one turn. */
  readonly count: number;
  /** Turns before those that are measured: Node compiles the code that it runs meanwhile. */
  readonly warmUp: number;
  /** Starts a new process for each turn. */
  readonly isFresh?: true;
  open?(subject: Subject): Promise<Asker>;
  measure(subject: Subject, asker: Asker | undefined, count: number): Promise<TurnMeasurements>;
}

/** Returns the measurements of a work that only starts a server. */
export const ofStart = ({ began }: Pick<Subject, "began">): TurnMeasurements => [began.milliseconds, began.cpu / 1000];

/** Measures a work that repeats requests: CPU time per request, and requests per second. */
async function measureRequests(subject: Subject, asker: Asker | undefined, count: number): Promise<TurnMeasurements> {
  const before = await subject.cpu();
  const began = performance.now();
  await asker?.turn(count);
  const seconds = (performance.now() - began) / 1000;
  return [((await subject.cpu()) - before) / count, count / seconds];
}

interface RequestOptions extends Partial<RequestSpec> {
  readonly status?: number;
  readonly secure?: boolean;
  /** Paths to request in turn, instead of the path of the server. */
  paths?(subject: Subject): readonly string[];
}

const askOver =
  ({ status = 200, secure = false, paths = ({ path }) => [path], ...spec }: RequestOptions) =>
  async (subject: Subject): Promise<Asker> => {
    const { port } = subject;
    const connections = await Connections.open({ port, secure }, CONNECTIONS);
    const requests = paths(subject).map((path) => requestBytes({ ...spec, path }, port));
    let from = 0;
    return {
      async turn(count) {
        await connections.ask(requests, count, status, from);
        from += count;
      },
      close: () => connections.close(),
    };
  };

const askHttp2 = async ({ port, path }: Subject): Promise<Asker> => {
  const sessions = await Sessions.open(port, 4, CONNECTIONS / 4);
  return { turn: (count) => sessions.ask(path, count), close: () => sessions.close() };
};

const askEchoes = async ({ port, path }: Subject): Promise<Asker> => {
  const echoes = await Echoes.open(port, path, SOCKETS);
  return { turn: (count) => echoes.ask(count), close: () => echoes.close() };
};

const rateOf = (what: string) =>
  [
    { digits: 1, unit: "µs" },
    { digits: 0, unit: `${what}/s`, better: "more" },
  ] as const;
const perRequest = { metrics: rateOf("requests"), measure: measureRequests } as const;
const small = { ...perRequest, count: 1000, warmUp: 15 } as const;

const routes = (count: number) => ({ BENCH_ROUTES: String(count) });
const file = ({ name }: { readonly name: string }) => ({ path: `/${name}` });

/** Returns the routes in an order that no cache could predict. */
const everyRoute = (count: number) => () => {
  const paths = helloPaths(count);
  return paths.map((_, at) => paths[(at * 7919) % paths.length] as string);
};

const hello = "/app149/hello";
const koa: HostServer = { name: "koa, bare", file: "koa.ts", path: "/" };
const fastify: HostServer = { name: "fastify, logger", file: "fastify.ts", env: { LOGGER: "on" }, path: hello };
const modhost: HostServer = { name: "modhost, all defaults", file: "modhost.ts", path: hello };
const node: HostServer = { name: "node:http, bare", file: "node.ts", path: "/" };

const of = (server: HostServer, env: Readonly<Record<string, string>>, more: Partial<HostServer> = {}): HostServer => ({
  ...server,
  ...more,
  env: { ...server.env, ...env },
});

const overTls = (kind: "tls" | "h2") => [koa, fastify, modhost].map((server) => of(server, { BENCH_SECURE: kind }));

const filesOf = (served: { readonly name: string }): HostServer[] => [
  of(koa, { BENCH_APP: "files" }, { name: "koa-static", ...file(served) }),
  of(fastify, {}, { name: "fastify, logger, by hand", path: `/files/${served.name}` }),
  of(modhost, {}, { path: `/static/${served.name}` }),
];

export const works: readonly HostWork[] = [
  {
    name: "hello",
    ...small,
    servers: [
      koa,
      node,
      { name: "koa + @koa/router, 150 routes", file: "koa_router.ts", path: hello },
      { name: "fastify, 150 routes", file: "fastify.ts", path: hello },
      { ...fastify, name: "fastify, 150 routes, logger" },
      of(modhost, { LOGGER: "off" }, { name: "modhost, 150 apps, log off" }),
      { ...modhost, name: "modhost, 150 apps, all defaults" },
    ],
    open: askOver({}),
  },
  {
    name: "each of 10,000 routes",
    aim: "1 x with 10",
    ...small,
    servers: [
      of(modhost, routes(10), { name: "modhost, 10 routes", path: "10" }),
      of(modhost, routes(MANY_ROUTES), { name: "modhost, 10,000 routes", path: `${MANY_ROUTES}` }),
      of(fastify, routes(10), { name: "fastify, logger, 10 routes", path: "10" }),
      of(fastify, routes(MANY_ROUTES), { name: "fastify, logger, 10,000 routes", path: `${MANY_ROUTES}` }),
    ],
    open: askOver({ paths: ({ path }) => everyRoute(Number(path))() }),
  },
  {
    name: "start",
    aim: "300 ms",
    metrics: [
      { digits: 0, unit: "ms" },
      { digits: 0, unit: "ms of CPU" },
    ],
    servers: [
      {
        name: "modhost with its storage node, 10,000 routes",
        file: "",
        env: { ...routes(MANY_ROUTES), NODE: "on" },
      },
      { name: "modhost, 10 routes", file: "", env: routes(10) },
      { name: "modhost, 10,000 routes", file: "", env: routes(MANY_ROUTES) },
      of({ name: "koa + @koa/router, 10,000 routes", file: "koa_router.ts" }, routes(MANY_ROUTES)),
      of(fastify, routes(10), { name: "fastify, 10 routes" }),
      of(fastify, routes(MANY_ROUTES), { name: "fastify, 10,000 routes" }),
    ],
    count: 1,
    warmUp: 0,
    isFresh: true,
    measure: async (subject) => ofStart(subject),
  },
  {
    name: "file of 10 KiB",
    aim: "0.95 x koa-static",
    ...small,
    count: 500,
    warmUp: 10,
    servers: filesOf(SMALL_FILE),
    open: askOver({}),
  },
  {
    name: "file of 10 MiB",
    aim: "0.95 x koa-static",
    ...small,
    count: 32,
    warmUp: 2,
    servers: filesOf(LARGE_FILE),
    open: askOver({}),
  },
  { name: "TLS", aim: "0.95 x Koa", ...small, servers: overTls("tls"), open: askOver({ secure: true }) },
  { name: "HTTP/2", aim: "0.95 x Koa", ...small, servers: overTls("h2"), open: askHttp2 },
  {
    name: "404",
    aim: "0.95 x Koa",
    ...small,
    servers: [of(koa, { BENCH_APP: "nothing" }), fastify, modhost].map((server) => ({
      ...server,
      path: "/nothing/here",
    })),
    open: askOver({ status: 404 }),
  },
  {
    name: "JSON posted",
    aim: "0.95 x Koa",
    ...small,
    servers: [
      of(koa, { BENCH_APP: "json" }, { name: "koa, body by hand" }),
      { ...fastify, path: "/json" },
      { ...modhost, path: "/json" },
      of(node, { BENCH_APP: "json" }, { name: "node:http, body by hand" }),
    ],
    open: askOver({ method: "POST", body: JSON_BODY }),
  },
  {
    name: "idle connections",
    aim: "0.91 x node:http",
    metrics: [
      { digits: 1, unit: "KiB each" },
      { digits: 1, unit: "KiB of it in use by Node" },
    ],
    servers: [node, koa, fastify, modhost],
    count: IDLE,
    warmUp: 0,
    isFresh: true,
    measure: idleMemory,
  },
  {
    name: "echo over 1,000 websockets",
    aim: "0.8 x the rate of ws",
    metrics: rateOf("messages"),
    servers: [
      { name: "ws alone", file: "ws.ts", path: "/echo/ws" },
      { ...modhost, path: "/echo/ws" },
    ],
    count: 4000,
    warmUp: 5,
    open: askEchoes,
    measure: measureRequests,
  },
];

/** The same routes in modules that run in each of the three ways. */
export const apart: readonly HostWork[] = (
  [
    ["hello", "/hello", small, {}],
    ["JSON posted", "/json", small, { method: "POST", body: JSON_BODY }],
    ["upload of 1 MiB", "/upload", { ...small, count: 64, warmUp: 3 }, { method: "POST", body: "x".repeat(2 ** 20) }],
    ["download of 1 MiB", "/download", { ...small, count: 64, warmUp: 3 }, {}],
  ] as const
).map(([name, path, kind, request]) => ({
  name,
  aim: "at most 2 x the CPU of trusted for isolated, 2.5 x for sandboxed",
  ...kind,
  servers: ["sandboxed", "isolated", "trusted"].map((run) =>
    of(modhost, { LOGGER: "off", RUN: run }, { name: `modhost, ${run}`, path: `/apart${path}` }),
  ),
  open: askOver(request),
}));

/** Measures the memory of idle connections that have had one response each. */
async function idleMemory(subject: Subject, _asker: Asker | undefined, count: number): Promise<TurnMeasurements> {
  const { port, path, pid } = subject;
  const request = [requestBytes({ path }, port)];
  const all: Connections[] = [];
  const open = async (more: number) => {
    // The queue of pending connections is limited.
    const connections = await Connections.open({ port }, more);
    all.push(connections);
    await connections.ask(request, more);
  };
  // Memory that all connections share is allocated first and not counted.
  for (let at = 0; at < 10; at += 1) await open(100);
  const used = await subject.ask("heap");
  const memoryBefore = anonymousBytes(pid);
  for (let left = count; left > 0; left -= 100) await open(Math.min(100, left));
  const usedAfter = await subject.ask("heap");
  const memoryAfter = anonymousBytes(pid);
  for (const connections of all) connections.close();
  return [(memoryAfter - memoryBefore) / count / 1024, (usedAfter - used) / count / 1024];
}
