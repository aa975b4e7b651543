/** Clients that use a server while another process takes over. */
import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

export interface TakeoverMetrics {
  readonly requests: number;
  readonly uploads: number;
  readonly downloads: number;
  /** Transferred bytes in both directions. */
  readonly bytes: number;
  /** A line for each request that failed or was incomplete. */
  readonly lost: readonly string[];
  /** Duration of the longest short request in milliseconds. */
  readonly longest: number;
  readonly pids: ReadonlySet<string>;
}

interface Transfers {
  /** Number of pieces of each upload and download, and the pause between them. */
  readonly pieces: number;
  readonly pauseMs: number;
  readonly clients?: number;
}

/**
 * Sends short requests on new and on reused connections, and uploads and downloads, one after the
 * other, until `end`. No client retries a request.
 */
export function takeoverLoad(url: string, { pieces, pauseMs, clients = 2 }: Transfers) {
  const lost: string[] = [];
  const done = { requests: 0, uploads: 0, downloads: 0, bytes: 0, longest: 0 };
  const pids = new Set<string>();
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  let isOver = false;
  const expected = pieces * 6;
  const attempt = async (what: string, work: () => Promise<void>) => {
    try {
      await work();
    } catch (error) {
      lost.push(`${what}: ${(error as Error).message}`);
      // Avoids a busy loop if the server is gone for good.
      await sleep(50);
    }
  };
  const short = async (reused: boolean) => {
    while (!isOver) {
      await attempt(reused ? "request on a reused connection" : "request", async () => {
        const begun = performance.now();
        pids.add(await textOf(request(`${url}/a/pid`, { agent: reused ? agent : false }), (sent) => void sent.end()));
        done.longest = Math.max(done.longest, performance.now() - begun);
        done.requests += 1;
      });
      await sleep(20);
    }
  };
  const upload = async () => {
    while (!isOver) {
      await attempt("upload", async () => {
        const text = await textOf(request(`${url}/a/upload`, { method: "POST", agent: false }), async (sent) => {
          for (let at = 0; at < pieces; at += 1) {
            sent.write("piece\n");
            await sleep(pauseMs);
          }
          sent.end();
        });
        if (text !== String(expected)) throw new Error(`${text} bytes of ${expected} arrived`);
        done.uploads += 1;
        done.bytes += expected;
      });
      // Pauses, so that there are moments without an upload: a takeover waits for one.
      await sleep(pauseMs * pieces);
    }
  };
  const download = async () => {
    while (!isOver) {
      await attempt("download", async () => {
        const text = await textOf(
          request(`${url}/a/download?${pieces},${pauseMs}`, { agent: false }),
          (sent) => void sent.end(),
        );
        if (text.length !== expected) throw new Error(`${text.length} bytes of ${expected} arrived`);
        done.downloads += 1;
        done.bytes += expected;
      });
      await sleep(pauseMs * pieces);
    }
  };
  const running = [upload(), download()];
  for (let client = 0; client < clients; client += 1) running.push(short(true), short(false));
  return {
    /** Resolves when several requests have succeeded and transfers are running. */
    async begun() {
      while (done.requests < 4 * clients && lost.length === 0) await sleep(5);
    },
    async end(): Promise<TakeoverMetrics> {
      isOver = true;
      await Promise.all(running);
      agent.destroy();
      return { ...done, lost, pids };
    },
    /** Ends the load after a failed test, too. */
    async [Symbol.asyncDispose]() {
      isOver = true;
      await Promise.all(running);
      agent.destroy();
    },
  };
}

async function textOf(sent: ClientRequest, send: (sent: ClientRequest) => unknown): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  sent.on("response", resolve).on("error", reject);
  void send(sent);
  const response = await promise;
  const text = Buffer.concat(await response.toArray()).toString("utf8");
  if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${text}`);
  return text;
}

/** Ends a process if it exists, and resolves when it has ended. `kill` false: only waits. */
export async function untilGone(pid: number, kill = true): Promise<void> {
  try {
    if (kill) process.kill(pid, "SIGTERM");
    for (;;) {
      process.kill(pid, 0);
      await sleep(20);
    }
  } catch {} // It has ended.
}
