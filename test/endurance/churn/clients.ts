/** Clients that keep their connection, repeat the same requests, and count the responses. */
import { once } from "node:events";
import { connect } from "node:http2";
import { text } from "node:stream/consumers";
import { RawConnection } from "#test/support/raw.ts";
import type { Ports } from "#test/support/transports.ts";

export interface Probe {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly status: number;
  /** Text that the body of the response must contain. */
  readonly holds: string;
}

export interface ProbeResponse {
  readonly status: number;
  readonly body: string;
}

export interface ProbeClient extends Disposable {
  readonly name: string;
  ask(probe: Probe): Promise<ProbeResponse>;
}

/** Returns what is wrong with a response, or undefined. */
export function mistake({ method = "GET", path, status, holds }: Probe, response: ProbeResponse): string | undefined {
  if (response.status === status && response.body.includes(holds)) return undefined;
  return `${method} ${path}: ${response.status} ${JSON.stringify(response.body.slice(0, 200))}`;
}

/** Node's own fetch: undici with a pool of connections. */
export function fetchClient({ http }: Ports): ProbeClient {
  return {
    name: "fetch",
    async ask({ path, method = "GET", headers = {}, body }) {
      const response = await fetch(`http://127.0.0.1:${http}${path}`, {
        method,
        headers,
        redirect: "manual",
        ...(body === undefined ? {} : { body }),
      });
      return { status: response.status, body: await response.text() };
    },
    [Symbol.dispose]: () => undefined,
  };
}

/** A client with one HTTP/2 connection. */
export function http2Client({ https }: Ports): ProbeClient {
  const session = connect(`https://127.0.0.1:${https}`, { rejectUnauthorized: false });
  session.on("error", () => undefined);
  return {
    name: "HTTP/2",
    async ask({ path, method = "GET", headers = {}, body }) {
      const stream = session.request(
        { ":method": method, ":path": path, ...headers },
        { endStream: body === undefined },
      );
      let status = 0;
      stream.on("response", (fields) => {
        status = Number(fields[":status"]);
      });
      if (body !== undefined) stream.end(body);
      return { body: await text(stream), status };
    },
    [Symbol.dispose]: () => session.destroy(),
  };
}

function head({ path, method = "GET", headers = {}, body }: Probe, ...more: string[]): string {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  if (body !== undefined) fields.push(`Content-Length: ${Buffer.byteLength(body)}`);
  return [`${method} ${path} HTTP/1.1`, "Host: localhost", ...fields, ...more, "", ""].join("\r\n");
}

/** A client with one socket, which it never replaces: it is a failure if the server closes it. */
export async function rawClient({ http }: Ports): Promise<ProbeClient> {
  const connection = await RawConnection.open(http);
  return {
    name: "raw",
    async ask(probe) {
      connection.text = "";
      connection.write(head(probe) + (probe.body ?? ""));
      const [fields] = await connection.until(/^HTTP[\s\S]*?\r\n\r\n/);
      const length = /^content-length: (\d+)\r$/im.exec(fields)?.[1];
      const [all] = await connection.until(
        length === undefined ? /^[\s\S]*\r\n0\r\n\r\n$/ : new RegExp(`^[\\s\\S]{${fields.length + Number(length)}}$`),
      );
      return { status: Number(fields.slice(9, 12)), body: all.slice(fields.length) };
    },
    [Symbol.dispose]: () => connection.destroy(),
  };
}

/** An exchange that begins before the module is replaced or unloaded. */
export interface OpenExchange {
  /** Completes the exchange afterwards. Resolves to what is wrong, or undefined. */
  finish(): Promise<string | undefined>;
}

/** Begins a request that a handler starts to read, and whose body is still incomplete. */
export async function holdRequest({ http }: Ports, probe: Probe): Promise<OpenExchange> {
  const connection = await RawConnection.open(http);
  connection.write(head(probe, "Expect: 100-continue", "Connection: close"));
  await connection.until(/^HTTP\/1\.1 100 [^\r]*\r\n\r\n/);
  return {
    async finish() {
      connection.text = "";
      connection.write(probe.body ?? "");
      const all = await connection.end();
      return mistake(probe, { status: Number(all.slice(9, 12)), body: all });
    },
  };
}

/** Opens a websocket that echoes messages. The server closes it with one of these codes. */
export async function holdWebsocket({ http }: Ports, path: string, codes: readonly number[]): Promise<OpenExchange> {
  const socket = new WebSocket(`ws://127.0.0.1:${http}${path}`);
  const closed = once(socket, "close") as Promise<[CloseEvent]>;
  await once(socket, "open");
  const text = `message ${Math.random()}`;
  const echoed = new Promise<void>((resolve) => {
    socket.addEventListener("message", ({ data }) => void (String(data).includes(text) && resolve()));
  });
  socket.send(text);
  await Promise.race([echoed, closed]);
  return {
    async finish() {
      const [{ code }] = await closed;
      return codes.includes(code) ? undefined : `${path}: closed with ${code}`;
    },
  };
}

/**
 * A running client: it sends one probe after the other until it is stopped, and reads every
 * response completely.
 */
export class Worker {
  readonly failures: string[] = [];
  responses = 0;
  readonly #client: ProbeClient;
  readonly #probes: readonly Probe[];
  #stopping = false;
  #progress = Promise.withResolvers<void>();
  readonly #work: Promise<void>;

  constructor(client: ProbeClient, probes: readonly Probe[]) {
    this.#client = client;
    this.#probes = probes;
    this.#work = this.#run();
  }

  /** Resolves after `count` more responses, or at the first failure. */
  async more(count: number): Promise<void> {
    const goal = this.responses + count;
    while (this.responses < goal && this.failures.length === 0) await this.#progress.promise;
  }

  stop(): Promise<void> {
    this.#stopping = true;
    return this.#work;
  }

  async #run(): Promise<void> {
    for (let next = 0; !this.#stopping && this.failures.length === 0; next = (next + 1) % this.#probes.length) {
      const probe = this.#probes[next] as Probe;
      const wrong = await this.#client.ask(probe).then(
        (response) => mistake(probe, response),
        (error: unknown) => `${probe.path}: ${error instanceof Error ? error.message : error}`,
      );
      if (wrong === undefined) this.responses += 1;
      else this.failures.push(`${this.#client.name}: ${wrong}`);
      this.#progress.resolve();
      this.#progress = Promise.withResolvers();
    }
  }
}
