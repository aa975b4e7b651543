/** The requests to each example module while it is loaded, reloaded and unloaded. */

import { once } from "node:events";
import { readdir, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { exampleFile, type exampleNames } from "#test/contract/docs/examples/support.ts";
import type { Ports } from "#test/support/transports.ts";
import { holdRequest, holdWebsocket, type OpenExchange, type Probe } from "./clients.ts";

export interface Situation {
  readonly config?: Readonly<Record<string, unknown>>;
  readonly probes: readonly Probe[];
  /** Begins an exchange that ends when the module is replaced or unloaded. */
  hold?(ports: Ports): Promise<OpenExchange>;
  /** Removes files of a cycle's requests from the data folder. */
  tidy?(folder: string): Promise<void>;
  close?(): Promise<void>;
}

type ExampleName = (typeof exampleNames)[number];

const boundary = "----churn";
const uploaded: Probe = {
  method: "POST",
  path: "/upload/",
  headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
  body: `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nsome text\r\n--${boundary}--\r\n`,
  status: 303,
  holds: "",
};

const created: Probe = {
  method: "POST",
  path: "/todo/",
  headers: { "content-type": "application/json" },
  body: '{"title":"Milk"}',
  status: 201,
  holds: '"Milk"',
};

export const situations: Readonly<Record<ExampleName, () => Situation | Promise<Situation>>> = {
  upload: () => ({
    probes: [{ path: "/upload/", status: 200, holds: "<form" }, uploaded],
    hold: (ports) => holdRequest(ports, uploaded),
    async tidy(folder) {
      const files = await readdir(join(folder, "upload"));
      for (const name of files) await rm(join(folder, "upload", name));
      const unfinished = files.filter((name) => name.startsWith("."));
      if (unfinished.length > 0) throw new Error(`Unfinished uploads were left behind: ${unfinished.join(", ")}`);
    },
  }),

  proxy: async () => {
    const server = createServer((request, response) => {
      response.writeHead(200, { "x-path": request.url, "content-type": "text/plain; charset=utf-8" });
      request.pipe(response);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const echoed = { path: "/proxy/echo?a=1", method: "POST", body: "there and back", status: 200, holds: "and back" };
    return {
      config: { proxy_upstream: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
      probes: [{ path: "/proxy/some/path", status: 200, holds: "" }, echoed],
      hold: (ports) => holdRequest(ports, echoed),
      async close() {
        server.close();
        server.closeAllConnections();
        await once(server, "close");
      },
    };
  },

  site: () => ({
    // A module that is passed as a value has no folder of its own.
    config: { site_dir: join(exampleFile("site"), "www") },
    probes: [
      { path: "/site/", status: 200, holds: "<h1>A site</h1>" },
      { path: "/site/downloads/", status: 200, holds: "visitors.csv" },
      { path: "/site/now.json", status: 200, holds: '"now"' },
      { path: "/site/robots.txt", status: 200, holds: "Allow: /" },
    ],
  }),

  todo: () => ({
    probes: [{ path: "/todo", status: 200, holds: "[" }, created, { path: "/todo/nowhere", status: 404, holds: "" }],
    hold: (ports) => holdRequest(ports, created),
  }),

  chat: () => ({
    probes: [{ path: "/chat/", status: 200, holds: "new WebSocket" }],
    // Codes of a reload and of an unload.
    hold: (ports) => holdWebsocket(ports, "/chat/room/lobby", [1012, 1001]),
  }),
};
