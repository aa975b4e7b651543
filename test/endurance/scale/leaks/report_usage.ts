/**
 * Loaded into a host with `--import`: a client that connects to the socket in its folder gets the
 * usage of its process.
 */
import { readFile } from "node:fs/promises";
import { Session } from "node:inspector/promises";
import { createServer } from "node:net";
import { getHeapStatistics } from "node:v8";
import { isMainThread } from "node:worker_threads";
import { heapUsed } from "#test/support/heap.ts";
import { plant } from "./plant.ts";
import { type ProcessUsage, socketIn } from "./usage.ts";

const folder = process.env.MODHOST_DATA_PATH;
if (isMainThread && folder !== undefined) {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    processUsage().then((found) => socket.end(JSON.stringify(found)));
  });
  server.listen(socketIn(folder)).unref();
  plant();
}

async function processUsage(): Promise<ProcessUsage> {
  const heap = await heapUsed();
  await giveBack();
  const { external, rss } = process.memoryUsage();
  const handles = process.getActiveResourcesInfo();
  const count = (kind: RegExp) => handles.filter((each) => kind.test(each)).length;
  const anonymous = Number(/^RssAnon:\s+(\d+) kB$/m.exec(await readFile("/proc/self/status", "utf8"))?.[1]) * 1024;
  const native = anonymous - getHeapStatistics().total_physical_size - external;
  return { heap, external, rss, anonymous, native, timers: count(/^Timeout$/), sockets: count(/SocketWrap$/) };
}

/** V8 retains pages that it needed at some moment until it learns that memory is short. */
async function giveBack(): Promise<void> {
  const session = new Session();
  session.connect();
  await session.post("HeapProfiler.collectGarbage");
  session.disconnect();
}
