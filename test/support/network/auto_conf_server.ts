/** A server of the document from which nodes take the values of `auto` in their configuration. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { makeSelfSigned } from "#core/tls/self_signed.ts";

export interface AutoConfServer extends AsyncDisposable {
  readonly url: string;
  /** The headers of each request so far. */
  readonly requests: readonly IncomingMessage["headers"][];
  /** The response from now on: a document, a status, or a function that writes the response. */
  response: object | number | RequestListener;
}

export async function autoConfServer(
  initial: AutoConfServer["response"],
  { secure = false } = {},
): Promise<AutoConfServer> {
  const requests: IncomingMessage["headers"][] = [];
  const listener: RequestListener = (request, response) => {
    requests.push(request.headers);
    const chosen = made.response;
    if (typeof chosen === "function") return chosen(request, response);
    if (typeof chosen === "number") return response.writeHead(chosen).end();
    const text = JSON.stringify(chosen);
    const etag = `"${Buffer.from(text).length}-${(chosen as { AutoConfVersion?: number }).AutoConfVersion}"`;
    const isKnown = request.headers["if-none-match"] === etag;
    return response.writeHead(isKnown ? 304 : 200, { etag }).end(isKnown ? undefined : text);
  };
  const server = secure ? await secureServer(listener) : createServer(listener);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const made: AutoConfServer = {
    url: `http${secure ? "s" : ""}://127.0.0.1:${(server.address() as AddressInfo).port}/autoconf.json`,
    requests,
    response: initial,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
  return made;
}

async function secureServer(listener: RequestListener) {
  const { certificate: cert, key } = await makeSelfSigned(["localhost"]);
  return createSecureServer({ cert, key }, listener);
}

export const peerOf = (host: string): string =>
  `/ip4/${host}/tcp/4001/p2p/QmNnooDu7bfjPFoTZYxMNLWUQJyrVwtbZg5gBMjTezGAJN`;

/** A document whose network has these bootstrap peers. */
export const autoConf = (version: number, bootstrap: readonly string[], more: object = {}): object => ({
  AutoConfVersion: version,
  AutoConfSchema: 1,
  SystemRegistry: {
    AminoDHT: { URL: "https://dht.example", NativeConfig: { Bootstrap: bootstrap } },
    Other: { NativeConfig: { Bootstrap: [peerOf("198.51.100.1")] } },
    IPNI: { DelegatedConfig: { Read: ["/routing/v1/providers"], Write: [] } },
  },
  DNSResolvers: { "eth.": ["https://dns.example/dns-query"], "none.": [] },
  DelegatedEndpoints: {
    "https://index.example/": { Systems: ["IPNI"], Read: ["/routing/v1/providers"], Write: [] },
    "https://all.example": {
      Systems: ["AminoDHT", "IPNI"],
      Read: ["/routing/v1/providers", "/routing/v1/ipns"],
      Write: ["/routing/v1/ipns"],
    },
    "https://odd.example": { Systems: ["Odd"], Read: ["/odd/v0/read"], Write: ["/routing/v1/ipns"] },
  },
  ...more,
});
