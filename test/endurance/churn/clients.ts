/**
 * Clients that keep their connection, ask the same things over and over, and count what they get.
 */
import { once } from "node:events";
import { connect } from "node:http2";
import { text } from "node:stream/consumers";
import { RawConnection } from "#test/support/raw.ts";

export interface Probe {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly status: number;
  /** What the answer's body must hold. */
  readonly holds: string;
}

export interface Ports {
  readonly http: number;
  readonly https: number;
}

export interface Answer {
  readonly status: number;
  readonly body: string;
}

export interface Client extends Disposable {
  readonly name: string;
  ask(probe: Probe): Promise<Answer>;
}

/** What is wrong with an answer; undefined when nothing is. */
export function mistake({ method = "GET", path, status, holds }: Probe, answer: Answer): string | undefined {
  if (answer.status === status && answer.body.includes(holds)) return undefined;
  return `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body.slice(0, 200))}`;
}

/** Node's own fetch, which is undici with a pool of connections. */
export function fetchClient({ http }: Ports): Client {
  return {
    name: "fetch",
    async ask({ path, method = "GET", headers = {}, body }) {
      const answer = await fetch(`http://127.0.0.1:${http}${path}`, {
        method,
        headers,
        redirect: "manual",
        ...(body === undefined ? {} : { body }),
      });
      return { status: answer.status, body: await answer.text() };
    },
    [Symbol.dispose]: () => undefined,
  };
}

/** One HTTP/2 connection. */
export function http2Client({ https }: Ports): Client {
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

/** One socket that is never given up: a connection that the server closes is a failure. */
export async function rawClient({ http }: Ports): Promise<Client> {
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

/** Something that has begun before the module is replaced or withdrawn. */
export interface Held {
  /** Brings it to its end after that; gives what is wrong, if anything is. */
  finish(): Promise<string | undefined>;
}

/** A request that a handler has begun to read, and whose body is still to come. */
export async function holdRequest({ http }: Ports, probe: Probe): Promise<Held> {
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

/** A websocket that gets back what it sends, and that the server closes with one of these codes. */
export async function holdWebsocket({ http }: Ports, path: string, codes: readonly number[]): Promise<Held> {
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
 * A client at work: asks one probe after the other until it is stopped, and always takes the last
 * answer.
 */
export class Worker {
  readonly failures: string[] = [];
  answered = 0;
  readonly #client: Client;
  readonly #probes: readonly Probe[];
  #stopping = false;
  #progress = Promise.withResolvers<void>();
  readonly #work: Promise<void>;

  constructor(client: Client, probes: readonly Probe[]) {
    this.#client = client;
    this.#probes = probes;
    this.#work = this.#run();
  }

  /** Resolves after so many more answers, or at the first failure. */
  async more(answers: number): Promise<void> {
    const goal = this.answered + answers;
    while (this.answered < goal && this.failures.length === 0) await this.#progress.promise;
  }

  stop(): Promise<void> {
    this.#stopping = true;
    return this.#work;
  }

  async #run(): Promise<void> {
    for (let next = 0; !this.#stopping && this.failures.length === 0; next = (next + 1) % this.#probes.length) {
      const probe = this.#probes[next] as Probe;
      const wrong = await this.#client.ask(probe).then(
        (answer) => mistake(probe, answer),
        (error: unknown) => `${probe.path}: ${error instanceof Error ? error.message : error}`,
      );
      if (wrong === undefined) this.answered += 1;
      else this.failures.push(`${this.#client.name}: ${wrong}`);
      this.#progress.resolve();
      this.#progress = Promise.withResolvers();
    }
  }
}
