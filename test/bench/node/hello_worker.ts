/**
 * Asks for something small again and again, in a thread of its own: whoever makes large calls is
 * too busy to measure.
 */
import { Agent, request } from "node:http";
import { parentPort, workerData } from "node:worker_threads";

/** What is asked for. */
export interface Asked {
  readonly url: string;
  readonly method: "GET" | "POST";
}

/** Milliseconds from an answer to the next call. */
const PAUSE_MS = 3;

const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const { url, method } = workerData as Asked;
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
  request(url, { agent, method }, (answer) => {
    answer.resume().on("end", () => {
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
