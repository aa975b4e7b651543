/** Clients of a server with a self-signed certificate, whose responses are numbers. */
import { connect as connectHttp2 } from "node:http2";
import { request as secureRequest } from "node:https";

interface Client {
  readonly localAddress?: string;
  readonly cookie?: string;
}

/** Requests each path over HTTP/2 on its own connection, and returns the responses. */
export async function numberByHttp2(
  port: number,
  paths: readonly string[],
  { localAddress, cookie }: Client,
): Promise<number[]> {
  const session = connectHttp2(`https://127.0.0.1:${port}`, { rejectUnauthorized: false, localAddress } as object);
  session.on("error", () => undefined);
  try {
    const requests = paths.map(async (path) => {
      let text = "";
      for await (const piece of session.request({ ":path": path, ...(cookie && { cookie }) })) text += piece;
      return Number(text);
    });
    return await Promise.all(requests);
  } finally {
    session.close();
  }
}

/** Requests a path over HTTP/1.1, and returns the response. */
export function numberByTls(port: number, path: string, { localAddress, cookie }: Client): Promise<number> {
  const options = { port, host: "127.0.0.1", path, localAddress, headers: { ...(cookie && { cookie }) }, agent: false };
  return new Promise((resolve, reject) => {
    const sent = secureRequest({ ...options, rejectUnauthorized: false }, async (response) => {
      let text = "";
      for await (const piece of response) text += piece;
      resolve(Number(text));
    });
    sent.on("error", reject).end();
  });
}
