/** A server of the document that the word `auto` is looked up in. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { makeSelfSigned } from "#core/tls/self_signed.ts";

export interface AutoConfServer extends AsyncDisposable {
  readonly url: string;
  /** The headers of each request so far. */
  readonly asked: readonly IncomingMessage["headers"][];
  /**
   * What it answers from now on: a document, or a status; or what a function does with the answer.
   */
  answer: object | number | RequestListener;
}

export async function autoConfServer(
  answer: AutoConfServer["answer"],
  { secure = false } = {},
): Promise<AutoConfServer> {
  const asked: IncomingMessage["headers"][] = [];
  const listener: RequestListener = (request, response) => {
    asked.push(request.headers);
    const { answer } = made;
    if (typeof answer === "function") return answer(request, response);
    if (typeof answer === "number") return response.writeHead(answer).end();
    const text = JSON.stringify(answer);
    const etag = `"${Buffer.from(text).length}-${(answer as { AutoConfVersion?: number }).AutoConfVersion}"`;
    const isKnown = request.headers["if-none-match"] === etag;
    return response.writeHead(isKnown ? 304 : 200, { etag }).end(isKnown ? undefined : text);
  };
  const server = secure ? await secureServer(listener) : createServer(listener);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const made: AutoConfServer = {
    url: `http${secure ? "s" : ""}://127.0.0.1:${(server.address() as AddressInfo).port}/autoconf.json`,
    asked,
    answer,
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
