/** A peer that reports arbitrary data about itself. */
import type { TestContext } from "node:test";
import { generateKeyPair, publicKeyToProtobuf } from "@libp2p/crypto/keys";
import type { Stream } from "@libp2p/interface";
import { noise } from "@libp2p/noise";
import { tcp } from "@libp2p/tcp";
import { yamux } from "@libp2p/yamux";
import { createLibp2p, type Libp2p } from "libp2p";
import { field, framed } from "#test/support/protobuf.ts";

export interface Talkative {
  readonly libp2p: Libp2p;
  /** Sends all messages and closes the stream. */
  report(stream: Stream): Promise<void>;
}

/**
 * `messages` has the fields of each message, in addition to its public key and agent version. They
 * are sent to every peer that asks.
 */
export async function talkative(t: TestContext, messages: readonly (readonly Uint8Array[])[]): Promise<Talkative> {
  const privateKey = await generateKeyPair("Ed25519");
  const head = [field(1, publicKeyToProtobuf(privateKey.publicKey)), field(6, Buffer.from("talkative/1.0"))];
  const frames = messages.map((fields) => framed(...head, ...fields));
  const libp2p = await createLibp2p({
    privateKey,
    addresses: { listen: ["/ip4/127.0.0.1/tcp/0"] },
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
  });
  t.after(() => libp2p.stop());
  const report = async (stream: Stream) => {
    for (const frame of frames) stream.send(frame);
    await stream.close().catch(() => undefined);
  };
  await libp2p.handle("/ipfs/id/1.0.0", report);
  return { libp2p, report };
}
