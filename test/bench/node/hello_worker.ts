/**
 * Repeats a small request in a thread of its own, because the thread that makes large calls is too
 * busy to measure.
 */
import { Agent, request } from "node:http";
import { parentPort, workerData } from "node:worker_threads";

/** The request that is repeated. */
export interface RepeatedRequest {
  readonly url: string;
  readonly method: "GET" | "POST";
}

/** Milliseconds from a response to the next request. */
const PAUSE_MS = 3;

const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const { url, method } = workerData as RepeatedRequest;
const waits: number[] = [];
let isOver = false;

function ask(): void {
  if (isOver) {
    agent.destroy();
    parentPort?.postMessage(waits);
    parentPort?.close();
    return;
  }
  const began = performance.now();
  request(url, { agent, method }, (response) => {
    response.resume().on("end", () => {
      waits.push(performance.now() - began);
      setTimeout(ask, PAUSE_MS);
    });
  })
    .on("error", (error) => {
      throw error;
    })
    .end();
}

parentPort?.once("message", () => {
  isOver = true;
});
ask();
