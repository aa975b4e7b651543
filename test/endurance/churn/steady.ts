/** A module that no change affects, with a stream and a websocket that stay open. */
import { once } from "node:events";
import type { Module } from "#core/types.ts";

export const plain = { content_type: "text/plain; charset=utf-8" };

/** No change affects it: its streams and websockets continue. */
export const steady = {
  name: "steady",
  load(module: Module) {
    module.depends("http");
    let next = Promise.withResolvers<string>();
    module.provides("http", {
      default_headers: plain,
      route: {
        "GET /": () => "steady",
        "POST /push": ({ request }) => {
          next.resolve(request.body);
          next = Promise.withResolvers();
          return "pushed";
        },
        "GET /stream": async function* () {
          yield "begun";
          for (;;) yield await next.promise;
        },
        "WS /ws": async (event) => {
          const socket = event.accept();
          for await (const message of socket) await socket.send(message);
        },
      },
    });
  },
};

/** Opens a stream and a websocket that stay open. */
export async function openSteady(port: number) {
  const at = `127.0.0.1:${port}/steady`;
  const socket = new WebSocket(`ws://${at}/ws`);
  await once(socket, "open");
  const closed = once(socket, "close").then(() => undefined);
  const stream = (await fetch(`http://${at}/stream`)).body?.getReader();
  const piece = async () => new TextDecoder().decode((await stream?.read())?.value);
  await piece();
  return {
    /** Sends something through both. Resolves to what is wrong, or undefined. */
    async exchange(turn: number): Promise<string | undefined> {
      const text = `turn ${turn}`;
      const echo = once(socket, "message") as Promise<[MessageEvent]>;
      socket.send(text);
      const message = await Promise.race([echo, closed]);
      if (message?.[0].data !== text) return "the websocket is closed";
      const next = piece();
      await fetch(`http://${at}/push`, { method: "POST", body: text });
      const got = await next;
      return got === text ? undefined : `the stream gave ${JSON.stringify(got)}`;
    },
    close() {
      socket.close();
      void stream?.cancel();
    },
  };
}
