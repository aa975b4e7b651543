import type { HttpProvider, WebSocketConnection, WebSocketEvent } from "#core/types.ts";
import { TestService } from "./service.ts";

/** Starts a service whose only websocket, `/app/`, is passed to the test. */
export async function serving(
  overrides: Parameters<typeof TestService.start>[1] = {},
  websocket: NonNullable<HttpProvider["websocket"]> = {},
) {
  const { promise: accepted, resolve } = Promise.withResolvers<WebSocketConnection>();
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const route = {
    "WS /": (event: WebSocketEvent) => {
      resolve(event.accept());
      // The handler lasts as long as the test, so that the server does not close the websocket.
      return ended;
    },
  };
  const host = await TestService.start({ route, websocket }, overrides);
  const dispose = async () => {
    end();
    await host[Symbol.asyncDispose]();
  };
  return { host, accepted, url: host.url("/app/"), port: host.port, [Symbol.asyncDispose]: dispose };
}
