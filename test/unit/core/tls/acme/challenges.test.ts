/** Proofs by TLS for certificate authorities, and the times of renewals and retries. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect as connectTcp, createServer as createTcpServer, type Server } from "node:net";
import { describe, test } from "node:test";
import { connect, createServer } from "node:tls";
import { Challenges } from "#core/tls/acme/challenges.ts";
import { renewalId } from "#core/tls/acme/requests.ts";
import { pauseAfter, renewalTime } from "#core/tls/acme/schedule.ts";
import { AcmeProblem } from "#core/tls/acme/transport.ts";
import { makeSelfSigned } from "#core/tls/self_signed.ts";

const portOf = (server: Server) => (server.address() as AddressInfo).port;

async function listening(server: Server): Promise<Server> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

/**
 * Starts a server that has a proof for a.test next to its own certificate. First messages arrive in
 * small pieces.
 */
async function proving() {
  const challenges = new Challenges();
  const proof = { type: "tls-alpn-01", name: "a.test", token: "t", keyAuthorization: "t.thumbprint" } as const;
  const withdraw = await challenges.present(proof);
  const own = await makeSelfSigned(["a.test"]);
  const secure = createServer({ cert: own.certificate, key: own.key }, (socket) => socket.pipe(socket));
  const behind = await listening(
    createTcpServer((socket) => challenges.take(socket, () => secure.emit("connection", socket))),
  );
  const before = await listening(
    createTcpServer((client) => {
      const server = connectTcp(portOf(behind), "127.0.0.1").setNoDelay(true);
      client.on("error", () => server.destroy());
      server.on("error", () => client.destroy());
      server.pipe(client);
      client.once("data", async (hello: Buffer) => {
        client.pause();
        for (let at = 0; at < hello.length; at += 100) {
          server.write(hello.subarray(at, at + 100));
          await new Promise((resolve) => setTimeout(resolve, 2));
        }
        client.pipe(server);
      });
    }),
  );
  return {
    challenges,
    withdraw,
    port: portOf(before),
    close: () => {
      before.close();
      behind.close();
    },
  };
}

describe("a proof by TLS", () => {
  test("is sent to clients with the protocol of authorities, and to no others", async () => {
    const { challenges, withdraw, port, close } = await proving();
    const base = { port, host: "127.0.0.1", servername: "a.test", rejectUnauthorized: false };
    const digest = createHash("sha256").update("t.thumbprint").digest();
    const authority = connect({ ...base, ALPNProtocols: ["acme-tls/1"] });
    await once(authority, "secureConnect");
    assert.equal(authority.alpnProtocol, "acme-tls/1");
    assert.ok(authority.getPeerX509Certificate()?.raw.includes(digest));
    authority.destroy();
    const client = connect(base);
    await once(client, "secureConnect");
    assert.equal(client.getPeerX509Certificate()?.raw.includes(digest), false);
    client.write("hello");
    assert.equal(String((await once(client, "data"))[0]), "hello");
    client.destroy();
    const other = connect({ ...base, servername: "b.test", ALPNProtocols: ["acme-tls/1"] });
    await assert.rejects(once(other, "secureConnect"));
    assert.ok(challenges.takesConnections);
    withdraw();
    assert.equal(challenges.takesConnections, false);
    close();
  });
});

describe("the time of a renewal", () => {
  const day = 86_400_000;
  const certificate = { validFrom: new Date(0), validTo: new Date(90 * day) };

  test("is after two thirds of the lifetime, or within the window that the authority specifies", () => {
    assert.equal(renewalTime(certificate), 60 * day);
    const window = { start: new Date(10 * day), end: new Date(20 * day) };
    assert.equal(
      renewalTime(certificate, window, () => 0.5),
      15 * day,
    );
  });

  test("is repeated after pauses that grow up to a day, and not before the authority allows it", () => {
    const middle = () => 0.5;
    const minutes = [1, 2, 3, 12, 50].map((failures) => pauseAfter(failures, new Error("no"), middle) / 60_000);
    assert.deepEqual(minutes, [1, 2, 4, 1440, 1440]);
    const spread = [0, 1].map((random) => pauseAfter(1, new Error("no"), () => random) / 60_000);
    assert.deepEqual(spread, [0.75, 1.25]);
    const text = JSON.stringify({ type: "urn:ietf:params:acme:error:rateLimited", detail: "too many" });
    const limited = (headers: Record<string, string>) => new AcmeProblem({ status: 429, headers, text });
    assert.ok(pauseAfter(1, limited({}), middle) >= 3_600_000);
    assert.ok(pauseAfter(1, limited({ "retry-after": "7200" }), middle) >= 7_200_000);
    const date = new Date(Date.now() + 7_300_000).toUTCString();
    assert.ok(pauseAfter(1, limited({ "retry-after": date }), middle) >= 7_200_000);
  });

  test("is requested by the id that RFC 9773 gives for its example", () => {
    const example = `-----BEGIN CERTIFICATE-----
MIIBQzCB66ADAgECAgUAh2VDITAKBggqhkjOPQQDAjAVMRMwEQYDVQQDEwpFeGFt
cGxlIENBMCIYDzAwMDEwMTAxMDAwMDAwWhgPMDAwMTAxMDEwMDAwMDBaMBYxFDAS
BgNVBAMTC2V4YW1wbGUuY29tMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEeBZu
7cbpAYNXZLbbh8rNIzuOoqOOtmxA1v7cRm//AwyMwWxyHz4zfwmBhcSrf47NUAFf
qzLQ2PPQxdTXREYEnKMjMCEwHwYDVR0jBBgwFoAUaYhba4dGQEHhs3uEe6CuLN4B
yNQwCgYIKoZIzj0EAwIDRwAwRAIge09+S5TZAlw5tgtiVvuERV6cT4mfutXIlwTb
+FYN/8oCIClDsqBklhB9KAelFiYt9+6FDj3z4KGVelYM5MdsO3pK
-----END CERTIFICATE-----`;
    assert.equal(renewalId(example), "aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE");
  });
});
