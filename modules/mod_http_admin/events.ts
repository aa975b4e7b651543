/** `/admin/api/events`: what happens, as server-sent events, to whoever listens. */
import { getHeapStatistics } from "node:v8";
import { event_stream } from "../../core/http/index.ts";
import type { EventStream, HttpEvent, HttpFinishedEvent, Module } from "../../core/types.ts";
import { AdminError } from "./errors.ts";

/** Streams of one server, at its socket and ports together. */
const MAX_STREAMS = 100;
/** Bytes that wait for one reader; who is slower is cut. */
const MAX_WAITING_BYTES = 256 * 1024;
/** Seconds between figures. */
const FIGURES_INTERVAL = 1;

export const topics = ["log", "requests", "figures", "changes"] as const;
export type Topic = (typeof topics)[number];

/** All streams of a server. A topic is followed, and its events are made, while somebody listens to it. */
export class Streams {
  readonly #module: Module;
  readonly #listeners = new Map<Topic, Set<(text: string) => void>>();
  readonly #ends = new Map<Topic, () => void>();
  #open = 0;

  constructor(module: Module) {
    this.#module = module;
  }

  /** @throws {AdminError} invalid, busy */
  open(event: HttpEvent, wanted: string | undefined): void {
    const chosen = topicsOf(wanted);
    if (this.#open >= MAX_STREAMS) {
      const message = `There are ${MAX_STREAMS} event streams already: close one, or come back later`;
      throw new AdminError("busy", message, { retry_after: "30" });
    }
    const stream = event_stream(event, { max_queue_bytes: MAX_WAITING_BYTES });
    this.#open += 1;
    const leave = chosen.map((topic) => this.#join(topic, sender(stream, event, topic)));
    stream.signal.addEventListener("abort", () => {
      this.#open -= 1;
      for (const each of leave) each();
    });
    void stream.comment(`topics: ${chosen.join(", ")}`).catch(() => undefined);
  }

  #join(topic: Topic, send: (text: string) => void): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set();
    this.#listeners.set(topic, listeners);
    listeners.add(send);
    if (listeners.size === 1) this.#ends.set(topic, this.#follow(topic));
    return () => {
      listeners.delete(send);
      if (listeners.size > 0) return;
      this.#ends.get(topic)?.();
      this.#ends.delete(topic);
    };
  }

  /** Made once for all listeners. */
  #tell(topic: Topic, value: unknown): void {
    const text = JSON.stringify(value);
    for (const send of this.#listeners.get(topic) ?? []) send(text);
  }

  #follow(topic: Topic): () => void {
    const { server } = this.#module;
    const tell = (value: unknown) => this.#tell(topic, value);
    if (topic === "log") return server.follow_log(tell);
    if (topic === "changes") return server.follow("server-changed", tell);
    if (topic === "requests") return server.follow("http-finished", (event) => tell(requestOf(event)));
    const figures = figuresOf(this.#module);
    const timer = setInterval(() => tell(figures()), FIGURES_INTERVAL * 1000).unref();
    return () => clearInterval(timer);
  }
}

/** Who reads too slowly is cut: what waits for it would stay in memory for as long as it likes. */
function sender(stream: EventStream, { request, response }: HttpEvent, topic: Topic): (data: string) => void {
  const cut = () => {
    if (stream.signal.aborted) return;
    if (request.httpversion.startsWith("1")) request.conn.close();
    else response.raw.destroy();
  };
  return (data) => void stream.send({ event: topic, data }).catch(cut);
}

function topicsOf(wanted = topics.join()): Topic[] {
  const names = [...new Set(wanted.split(",").map((name) => name.trim()))];
  const unknown = names.find((name) => !(topics as readonly string[]).includes(name));
  if (unknown === undefined) return names as Topic[];
  throw new AdminError("invalid", `There is no topic ${JSON.stringify(unknown)}: topics are ${topics.join(", ")}`);
}

/** Query strings carry secrets: they are left out. */
function requestOf({ request, status, bytes, duration, complete, app }: HttpFinishedEvent) {
  const { id, method, url, ip, host } = request;
  const rounded = Math.round(duration * 10) / 10;
  return { id, method, path: url.raw_path, host, ip, app, status, bytes, duration: rounded, complete };
}

/** The process as it is, and what it did since the figures before. */
function figuresOf(module: Module): () => object {
  let loop = performance.eventLoopUtilization();
  let cpu = process.cpuUsage();
  let at = performance.now();
  return () => {
    const [lastCpu, lastAt] = [cpu, at];
    const busy = performance.eventLoopUtilization(loop).utilization;
    loop = performance.eventLoopUtilization();
    cpu = process.cpuUsage();
    at = performance.now();
    const used = (cpu.user - lastCpu.user + cpu.system - lastCpu.system) / 1000;
    const { connections, requests, modules } = module.server.status();
    return {
      time: new Date().toISOString(),
      cpu: round(used / (at - lastAt)),
      event_loop: round(busy),
      rss: process.memoryUsage.rss(),
      heap: getHeapStatistics().used_heap_size,
      connections,
      requests: requests.length,
      modules: modules.length,
    };
  };
}

const round = (value: number) => Math.round(value * 1000) / 1000;
